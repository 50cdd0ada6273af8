"""A picture of a graph as a Mermaid flowchart."""

from collections.abc import Iterator

from dialoom.base.text import one_line
from dialoom.graph.names import END, START
from dialoom.graph.table import Route, Table


def to_mermaid(table: Table) -> str:
    """Return the flowchart: arrows for edges, dotted ones with their label for conditional edges."""
    ids = {START: "start", END: "finish"} | {name: f"n{at}" for at, name in enumerate(table.nodes)}
    lines = ["flowchart TD", "    start([start])"]
    lines += [f'    {ids[name]}["{_text(name)}"]' for name in table.nodes]
    lines.append("    finish([end])")
    for name in (START, *table.nodes):
        lines += [f"    {ids[name]} {arrow} {ids[target]}" for arrow, target in _arrows(table, name)]
    return "\n".join(lines)


def _arrows(table: Table, name: str) -> Iterator[tuple[str, str]]:
    exits = table.exits[name]
    for target in exits.static:
        yield "-->", target
    for route in exits.routes:
        for label, target in _labels(route):
            yield ("-.->" if label == target else f'-. "{_text(label)}" .->'), target
    if not exits.static and not exits.routes:
        yield "-->", END


def _labels(route: Route) -> Iterator[tuple[str, str]]:
    yield from route.ways.items()
    if route.default is not None:
        yield "otherwise", route.default


def _text(text: str) -> str:
    return (
        one_line(text).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    )
