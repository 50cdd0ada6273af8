"""Finding nodes that would run twice though one run was meant. Pure: a draft in, warnings out."""

from collections.abc import Iterator, Mapping, Sequence

from dialoom.graph.draft import Draft
from dialoom.graph.errors import GraphProblem
from dialoom.graph.names import END, START


def warnings_of(draft: Draft) -> tuple[GraphProblem, ...]:
    """Return W-MERGE for each node at which branches of unequal length meet by plain edges.

    Such a node runs once for each length. Only edges that are always followed are looked at.
    """
    onward: dict[str, list[str]] = {}
    for source, target in draft.edges:
        if target != END:
            onward.setdefault(source, []).append(target)
    found: dict[str, GraphProblem] = {}
    for fork in (START, *(node.name for node in draft.nodes)):
        for name, reason in _uneven(fork, onward):
            found.setdefault(name, GraphProblem("W-MERGE", f"node {name!r}", reason))
    return tuple(found.values())


def _uneven(fork: str, onward: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    heads = onward.get(fork, ())
    if len(heads) < 2:
        return
    steps = [_steps_from(head, {**onward, fork: ()}) for head in heads]
    for name in dict.fromkeys(target for targets in onward.values() for target in targets):
        sources = [source for source, targets in onward.items() if name in targets]
        # a way back to the fork is a loop, not a branch
        lengths = {
            depth[source] for depth in steps for source in sources if source in depth and source != fork
        }
        if name in heads:
            lengths.add(-1)
        if len(lengths) > 1:
            known = ", ".join(repr(source) for source in sources if source not in {START, name})
            reason = (
                f"branches of unequal length from {fork!r} meet here, so it runs once for each length;"
                f" to run it once: add_join([{known}], {name!r})"
            )
            yield name, reason


def _steps_from(head: str, onward: Mapping[str, Sequence[str]]) -> dict[str, int]:
    steps: dict[str, int] = {}
    row = [head]
    while row:
        steps |= dict.fromkeys(row, len(set(steps.values())))
        row = [name for source in row for name in onward.get(source, ()) if name not in steps]
    return steps
