"""A graph as data: written, read back, drawn, and refused when it is none."""

import json
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.graph import (
    END,
    START,
    Graph,
    GraphBuilder,
    GraphBuildError,
    MemoryCheckpointStore,
    NodeContext,
    Reducers,
    RetryPolicy,
    RunOptions,
    State,
    draw_definition,
)
from dialoom.graph.definition_read import Registry, draft_of

COUNTER: dict[str, Any] = {
    "format": 1,
    "graph": "counter",
    "channels": [
        {"name": "n", "type": "int", "default": 0},
        {"name": "said", "reducer": "append", "type": "list[str]"},
    ],
    "nodes": [{"name": "count", "use": "add_one", "blocking": False}, {"name": "extra", "dynamic": True}],
    "edges": [{"from": START, "to": "count"}],
    "routes": [{"from": "count", "to": {"on": "count", "stop": END}, "default": "extra"}],
}


def add_one(ctx: NodeContext) -> dict[str, Any]:
    return {"n": ctx.state["n"] + 1, "said": ["one more"]}


def nothing(_: NodeContext) -> None: ...


def until_three(state: State) -> str:
    return "on" if state["n"] < 3 else "stop"


def counter() -> Graph:
    return GraphBuilder.from_dict(
        COUNTER, nodes={"add_one": add_one, "extra": nothing}, routes={"count": until_three}
    ).build()


def changed(at: str, **more: Any) -> dict[str, Any]:
    """COUNTER with the first entry of list `at` changed."""
    first, *rest = COUNTER[at]
    return {**COUNTER, at: [{**first, **more}, *rest]}


def problems_of(definition: Any) -> list[str]:
    """The problems of a definition whose functions are all there."""
    builder = GraphBuilder.from_dict(
        definition, nodes={"add_one": add_one, "extra": nothing}, routes={"count": until_three}
    )
    with pytest.raises(GraphBuildError) as refused:
        builder.build()
    return [str(problem) for problem in refused.value.problems]


def test_a_definition_runs_with_the_functions_its_names_stand_for() -> None:
    result = counter().run_sync()
    assert result.state == {"n": 3, "said": ["one more"] * 3}


def test_it_comes_back_as_it_was_written() -> None:
    assert counter().to_dict() == COUNTER
    assert json.loads(json.dumps(counter().to_dict())) == COUNTER


def test_a_graph_made_in_python_is_read_back_as_the_same_graph() -> None:
    class Card(msgspec.Struct):
        title: str

    def longest(old: str, new: str) -> str:
        return max(old, new, key=len)

    builder = GraphBuilder("cards")
    builder.add_channel("card", type=Card | None, default=None)
    builder.add_channel("facts", Reducers.merge, type=Annotated[dict[str, int], Reducers.merge, "a note"])
    builder.add_channel("word", Reducers.custom(longest), type=str, default="")
    builder.add_channel("mood", type=Literal["good", "bad"], default="good")
    builder.add_channel("pair", type=tuple[int, ...] | None)
    builder.add_channel("anything", default={"list": [1, 2.5, None, True, "x"]})
    builder.add_node("a", nothing)
    builder.add_node("b", nothing, blocking=False)
    builder.add_edge(START, "a")
    builder.add_edge("b", END)
    builder.add_conditional_edges("a", lambda _: "b")
    builder.add_conditional_edges("a", lambda _: END, {"b": "b"})
    graph = builder.build()
    written = graph.to_dict(types={"Card": Card})
    assert written["routes"] == [{"from": "a"}, {"from": "a", "use": "a 2", "to": {"b": "b"}}]
    assert [channel.get("type") for channel in written["channels"]] == [
        "Card | None",
        "dict[str, int]",
        "str",
        "Literal['good', 'bad']",
        "tuple[int, ...] | None",
        None,
    ]
    read = GraphBuilder.from_dict(
        written,
        nodes={"a": nothing, "b": nothing},
        routes={"a": lambda _: "b", "a 2": lambda _: END},
        reducers={"longest": Reducers.custom(longest)},
        types={"Card": Card},
    ).build()
    assert read.to_dict(types={"Card": Card}) == written
    assert read.fingerprint == graph.fingerprint
    assert read.run_sync({"word": "hello"}).state["word"] == "hello"
    assert "Invalid enum value 'ugly'" in read.run_sync({"mood": "ugly"}).errors[0].message


def test_a_thread_goes_on_in_the_graph_that_was_read_back() -> None:
    store = MemoryCheckpointStore()
    functions: dict[str, Any] = {
        "nodes": {"add_one": add_one, "extra": nothing},
        "routes": {"count": until_three},
    }
    first = GraphBuilder.from_dict(COUNTER, **functions).build(store)
    first.run_sync({}, RunOptions(thread_id="t", max_steps=1))
    second = GraphBuilder.from_dict(first.to_dict(), **functions).build(store)
    assert second.resume_sync("t").state["n"] == 3


def school() -> GraphBuilder:
    """A graph with everything a definition can say of nodes and joins."""
    builder = GraphBuilder("school")
    builder.add_channel("pupils", default=["ann", "eve"])
    builder.add_channel("marks")
    builder.add_node("open", nothing, retry=RetryPolicy(attempts=5, backoff="linear", jitter=0.5))
    builder.add_map("mark", nothing, over="pupils", into="marks", max_concurrency=2, on_item_error="collect")
    builder.add_node("sing", nothing, timeout=2.5, on_error="hush")
    builder.add_node("hush", nothing, dynamic=True)
    builder.add_node("close", nothing)
    builder.add_edge(START, "open")
    builder.add_edge("open", "mark")
    builder.add_edge("open", "sing")
    builder.add_join(["mark", "sing"], "close", wait=2)
    return builder


def test_retries_maps_joins_and_ways_out_of_an_error_are_part_of_a_definition() -> None:
    graph = school().build()
    definition = graph.to_dict()
    assert definition["nodes"] == [
        {"name": "open", "retry": {"attempts": 5, "backoff": "linear", "jitter": 0.5}},
        {
            "name": "mark",
            "map": {"over": "pupils", "into": "marks", "max_concurrency": 2, "on_item_error": "collect"},
        },
        {"name": "sing", "timeout": 2.5, "on_error": "hush"},
        {"name": "hush", "dynamic": True},
        {"name": "close"},
    ]
    assert definition["joins"] == [{"from": ["mark", "sing"], "to": "close", "wait": 2}]
    functions = {name["name"]: nothing for name in definition["nodes"]}
    again = GraphBuilder.from_dict(json.loads(json.dumps(definition)), nodes=functions).build()
    assert again.to_dict() == definition
    assert (again.fingerprint, again.to_mermaid()) == (graph.fingerprint, graph.to_mermaid())
    assert again.run_sync().state == {"pupils": ["ann", "eve"], "marks": [None, None]}


def test_what_shapes_a_graph_is_in_its_fingerprint() -> None:
    def variant(**change: Any) -> str:
        definition = school().build().to_dict()
        for name, value in change.items():
            definition[name][0 if name == "joins" else 2].update(value)
        functions = {node["name"]: nothing for node in definition["nodes"]}
        return GraphBuilder.from_dict(definition, nodes=functions).build().fingerprint

    same = school().build().fingerprint
    assert variant() == same
    assert variant(nodes={"timeout": 9.0}) == same
    assert variant(joins={"wait": "any"}) != same
    assert variant(nodes={"on_error": "close"}) != same


def test_a_retry_policy_that_cannot_be_is_a_problem() -> None:
    assert problems_of(changed("nodes", retry={"attempts": 0})) == [
        "[bad-retry] node 'count': attempts is 0; give 1 to 1000"
    ]


def test_a_retry_policy_with_code_cannot_be_written() -> None:
    builder = GraphBuilder("picky")
    builder.add_node("a", nothing, retry=RetryPolicy(retry_on=lambda _: True))
    builder.add_edge(START, "a")
    with pytest.raises(UsageError, match="node 'a' cannot be written: retry_on of its retry policy is code"):
        builder.build().to_dict()


def test_a_graph_keeps_the_definition_it_was_built_from() -> None:
    builder = GraphBuilder("still")
    builder.add_node("a", nothing)
    builder.add_edge(START, "a")
    graph = builder.build()
    before = graph.to_dict()
    builder.add_node("b", nothing)
    builder.add_edge("a", "b")
    assert graph.to_dict() == before


@given(st.data())
def test_any_shape_of_graph_round_trips(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5, unique=True))
    json_values = st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
    builder = GraphBuilder("any")
    for at, default in enumerate(data.draw(st.lists(json_values, max_size=4))):
        builder.add_channel(f"c{at}", default=default)
    for name in names:
        builder.add_node(name, nothing, dynamic=data.draw(st.booleans()))
        builder.add_edge(START, name)
    for source, target in data.draw(
        st.lists(st.tuples(st.sampled_from(names), st.sampled_from([*names, END])), max_size=6)
    ):
        builder.add_edge(source, target)
    for source in data.draw(st.lists(st.sampled_from(names), max_size=3)):
        targets = data.draw(st.none() | st.dictionaries(st.text(), st.sampled_from(names), max_size=3))
        builder.add_conditional_edges(source, lambda _: END, targets)
    try:
        graph = builder.build()
    except GraphBuildError:
        return  # a name that is not one printable line, say
    definition = msgspec.json.decode(msgspec.json.encode(graph.to_dict()))
    routes = {route.get("use", route["from"]): lambda _: END for route in definition.get("routes", [])}
    again = GraphBuilder.from_dict(definition, nodes=dict.fromkeys(names, nothing), routes=routes).build()
    assert again.to_dict() == graph.to_dict() == definition
    assert (again.fingerprint, again.to_mermaid()) == (graph.fingerprint, graph.to_mermaid())


def test_names_that_stand_for_nothing_are_problems_of_the_build_all_at_once() -> None:
    definition = {
        **COUNTER,
        "channels": [
            {"name": "n", "type": "Number"},
            {"name": "m", "reducer": "most"},
            {"name": "k", "type": "a.b"},
        ],
    }
    builder = GraphBuilder.from_dict(definition, nodes={"extra": nothing})
    with pytest.raises(GraphBuildError) as refused:
        builder.build()
    absent = "there is no function 'count' in routes=; there are: none"
    types = "Any, None, bool, bytes, dict, float, int, list, object, set, str, tuple"
    assert [str(problem) for problem in refused.value.problems] == [
        f"[bad-type] channel 'n': there is no type 'Number'; pass it in types=, or use one of: {types}",
        "[unknown-name] channel 'm': there is no reducer 'most'; there are: append, merge, overwrite",
        "[bad-type] channel 'k': 'a.b' is not a type; write one like list[str] or dict[str, int] | None",
        "[unknown-name] node 'count': there is no function 'add_one' in nodes=; there are: extra",
        f"[unknown-name] conditional edges of 'count': {absent}",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "list[",
        "__import__('os').getcwd()",
        "list[int]()",
        "Literal[1.5]",
        "list[...]",
        "1",
        "(" * 400,
        "x" * 501,
        "lambda: int",
        "int if True else str",
        "\x00",
        "list[int][str]",
    ],
)
def test_a_text_that_is_no_type_is_a_problem(text: str) -> None:
    (problem,) = problems_of(changed("channels", type=text, default=None))
    assert problem.startswith("[bad-type] channel 'n': ")


@pytest.mark.parametrize(
    ("definition", "where", "reason"),
    [
        ([], "$", "Expected `object`, got `array`; mend it"),
        ({}, "$", "Object missing required field `format`; mend it"),
        ({**COUNTER, "format": 2}, "$.format", "it is 2 and this version reads 1; update dialoom"),
        ({**COUNTER, "node": []}, "$", "Object contains unknown field `node`; mend it"),
        (changed("nodes", name=7), "$.nodes[0].name", "Expected `str`, got `int`; mend it"),
        (changed("routes", to={"on": 1}), "$.routes[0].to[...]", "Expected `str`, got `int`; mend it"),
        (
            {**COUNTER, "edges": [{"from": "a", "to": "b"}] * 10_001},
            "$.edges",
            "10001 entries are more than 10000; divide the graph",
        ),
    ],
)
def test_what_is_no_definition_is_refused_at_once_with_the_place(
    definition: Any, where: str, reason: str
) -> None:
    with pytest.raises(GraphBuildError) as refused:
        GraphBuilder.from_dict(definition, nodes={})
    (problem,) = refused.value.problems
    assert (problem.code, problem.where, problem.message) == ("bad-definition", where, reason)


def test_a_default_that_nests_without_end_is_a_problem() -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    assert problems_of(changed("channels", default=deep, type=None)) == [
        "[bad-default] channel 'n': nested deeper than 100 levels"
    ]


@pytest.mark.parametrize(
    ("kind", "default", "reason"),
    [
        (set, {1}, r"its default holds \{1\}, which JSON cannot say"),
        (float, float("inf"), "its default holds inf, which JSON cannot say"),
        (dict, {1: 2}, "its default has the key 1, and keys in JSON are text"),
        (Annotated[int, msgspec.Meta(ge=0)], 0, "its type .* has no text; pass a name for it in types="),
        (UsageError, UsageError("x"), "its type <class .*UsageError'> has no text"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_channel(kind: Any, default: object, reason: str) -> None:
    builder = GraphBuilder("odd")
    builder.add_channel("odd", type=kind, default=default)
    builder.add_node("a", nothing)
    builder.add_edge(START, "a")
    with pytest.raises(UsageError, match=f"^channel 'odd' cannot be written: {reason}"):
        builder.build().to_dict()


def test_two_reducers_of_one_name_are_refused() -> None:
    builder = GraphBuilder("odd")
    builder.add_channel("a", Reducers.custom(max, name="append"), default=0)
    builder.add_node("a", nothing)
    builder.add_edge(START, "a")
    with pytest.raises(
        UsageError, match="channel 'a' cannot be written: another reducer is called 'append' too"
    ):
        builder.build().to_dict()


def test_a_definition_is_drawn_without_its_functions() -> None:
    definition = {**changed("channels", type="Unknown", reducer="unknown", default=None)}
    assert draw_definition(definition) == counter().to_mermaid()
    with pytest.raises(GraphBuildError, match=r"graph 'counter' has 1 problem: \[unknown-node\]"):
        draw_definition({**COUNTER, "edges": [{"from": START, "to": "nobody"}]})


def test_the_functions_of_a_sketch_refuse_to_run() -> None:
    draft = draft_of(COUNTER, Registry(sketch=True))
    builder = GraphBuilder("sketch")
    builder.add_node("count", draft.nodes[0].fn)
    builder.add_edge(START, "count")
    (error,) = builder.build().run_sync().errors
    assert error.message == (
        "NotImplementedError: this graph was made to be drawn, and its functions are not there"
    )
