"""A graph draws itself."""

import pytest

from dialoom.graph import END, START, GraphBuilder, NodeContext


def nothing(_: NodeContext) -> None: ...


def test_a_graph_draws_its_edges_and_conditional_edges() -> None:
    builder = GraphBuilder("picture")
    for name in ("classify", 'say "hi" <b>', "other"):
        builder.add_node(name, nothing)
    builder.add_edge(START, "classify")
    builder.add_conditional_edges("classify", lambda _: "yes", {"yes & no": 'say "hi" <b>'}, default="other")
    builder.add_edge('say "hi" <b>', "other")
    assert builder.build().to_mermaid() == "\n".join(
        [
            "flowchart TD",
            "    start([start])",
            '    n0["classify"]',
            '    n1["say &quot;hi&quot; &lt;b&gt;"]',
            '    n2["other"]',
            "    finish([end])",
            "    start --> n0",
            '    n0 -. "yes &amp; no" .-> n1',
            "    n0 -.-> finish",
            '    n0 -. "otherwise" .-> n2',
            "    n1 --> n2",
            "    n2 --> finish",
        ]
    )


@pytest.mark.parametrize("route", [None, {"b": "b"}])
def test_an_answer_that_is_the_name_of_its_target_needs_no_label(route: dict[str, str] | None) -> None:
    builder = GraphBuilder("picture")
    builder.add_node("a", nothing)
    builder.add_node("b", nothing)
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", lambda _: END, route)
    lines = builder.build().to_mermaid().splitlines()
    assert "    n0 -.-> n1" in lines
    assert "    n0 -.-> finish" in lines


def test_maps_joins_and_ways_out_of_an_error_are_drawn_too() -> None:
    builder = GraphBuilder("school")
    builder.add_channel("pupils")
    builder.add_channel("marks")
    builder.add_map("mark", nothing, over="pupils", into="marks")
    builder.add_node("sing", nothing, on_error="hush")
    builder.add_node("hush", nothing)
    builder.add_node("close", nothing)
    builder.add_edge(START, "mark")
    builder.add_edge(START, "sing")
    builder.add_join(["mark", "sing"], "close", wait="all")
    assert builder.build().to_mermaid() == "\n".join(
        [
            "flowchart TD",
            "    start([start])",
            '    n0[["mark (each of pupils)"]]',
            '    n1["sing"]',
            '    n2["hush"]',
            '    n3["close"]',
            "    finish([end])",
            "    start --> n0",
            "    start --> n1",
            '    n0 == "join all" ==> n3',
            '    n1 == "join all" ==> n3',
            '    n1 -. "on error" .-> n2',
            "    n2 --> finish",
            "    n3 --> finish",
        ]
    )
