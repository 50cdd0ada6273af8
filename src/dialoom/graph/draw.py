"""A picture of a graph as a Mermaid flowchart."""

from collections.abc import Iterator, Mapping
from typing import Any

from dialoom.base.text import one_line
from dialoom.graph.compile_draft import compile_draft
from dialoom.graph.errors import GraphBuildError
from dialoom.graph.lint import problems_of
from dialoom.graph.names import END, START
from dialoom.graph.table import NodeSpec, Route, Table


def to_mermaid(table: Table) -> str:
    """Return the flowchart.

    Arrows are edges, dotted ones conditional edges and ways out of an error, thick ones lead to a join. A
    node that runs over items has a double border.
    """
    ids = {START: "start", END: "finish"} | {name: f"n{at}" for at, name in enumerate(table.nodes)}
    lines = ["flowchart TD", "    start([start])"]
    lines += [f"    {ids[name]}{_box(node)}" for name, node in table.nodes.items()]
    lines.append("    finish([end])")
    for name in (START, *table.nodes):
        lines += [f"    {ids[name]} {arrow} {ids[target]}" for arrow, target in _arrows(table, name)]
    return "\n".join(lines)


def draw_definition(definition: Mapping[str, Any]) -> str:
    """Return the flowchart of a graph definition, whose functions need not be there.

    Raises GraphBuildError when it is none, or has problems.
    """
    from dialoom.graph.definition_read import Registry, draft_of

    draft = draft_of(definition, Registry(sketch=True))
    if problems := problems_of(draft):
        raise GraphBuildError(draft.name, problems)
    return to_mermaid(compile_draft(draft))


def _arrows(table: Table, name: str) -> Iterator[tuple[str, str]]:
    exits = table.exits[name]
    for target in exits.static:
        yield "-->", target
    for route in exits.routes:
        for label, target in _labels(route):
            yield ("-.->" if label == target else f'-. "{_text(label)}" .->'), target
    joins = [join for join in table.joins.values() if name in join.sources]
    for join in joins:
        yield f'== "join {join.wait}" ==>', join.target
    if not exits.static and not exits.routes and not joins:
        yield "-->", END
    if name != START and (fallback := table.nodes[name].on_error) is not None:
        yield '-. "on error" .->', fallback


def _box(node: NodeSpec) -> str:
    if node.each is None:
        return f'["{_text(node.name)}"]'
    return f'[["{_text(node.name)} (each of {_text(node.each.over)})"]]'


def _labels(route: Route) -> Iterator[tuple[str, str]]:
    yield from route.ways.items()
    if route.default is not None:
        yield "otherwise", route.default


def _text(text: str) -> str:
    return (
        one_line(text).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    )
