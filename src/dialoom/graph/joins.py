"""Nodes that wait for several others. Pure: who has arrived and who still can in, who may run out."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from dialoom.graph.frontier import JoinCount
from dialoom.graph.result import NodeError
from dialoom.graph.trouble import refused

Wait = Literal["reachable", "all", "any"] | int


class Join(msgspec.Struct, frozen=True):
    """A join before `target`. `feeds` has, for each node, the sources that it is or that it can lead to."""

    target: str
    sources: tuple[str, ...]
    wait: Wait
    feeds: Mapping[str, frozenset[str]]

    @property
    def needed(self) -> int:
        """How many arrivals are enough, whatever else can still come."""
        if self.wait == "any":
            return 1
        return self.wait if isinstance(self.wait, int) else len(self.sources)


def arrive(
    joins: Mapping[str, Join], counts: Iterable[JoinCount], arrivals: Sequence[str], active: Collection[str]
) -> tuple[tuple[JoinCount, ...], list[str], list[NodeError]]:
    """Return the joins that still wait after `arrivals`, the targets that run now, and which joins never can.

    `active` are the nodes that will run, whose paths may still lead to a source.
    """
    waiting = {count.target: count for count in counts if count.target in joins}
    for name in arrivals:
        for join in joins.values():
            if name in join.sources:
                waiting[join.target] = _with_arrival(waiting.get(join.target), join, name)
    fired: list[str] = []
    while waiting:
        ripe = [join for join in joins.values() if _is_ripe(join, waiting, {*active, *fired})]
        if not ripe and not active and not fired:
            # each waits for what only another of them leads to: the first goes
            ripe = [join for join in joins.values() if _gives_way(join, waiting)][:1]
        if not ripe:
            break
        for join in ripe:
            fired.append(join.target)
            waiting[join.target] = JoinCount(join.target, waiting[join.target].arrived, fired=True)
        waiting = _unspent(joins, waiting, {*active, *fired})
    waiting = _unspent(joins, waiting, {*active, *fired})
    stalled = [] if active or fired else [_stall(joins[count.target], count) for count in waiting.values()]
    return tuple(waiting[target] for target in joins if target in waiting), fired, stalled


def _with_arrival(count: JoinCount | None, join: Join, name: str) -> JoinCount:
    if count is None or (count.fired and name in count.arrived):
        # the next round of a loop
        return JoinCount(join.target, (name,))
    arrived = {*count.arrived, name}
    return JoinCount(join.target, tuple(source for source in join.sources if source in arrived), count.fired)


def _is_ripe(join: Join, waiting: Mapping[str, JoinCount], active: Collection[str]) -> bool:
    count = waiting.get(join.target)
    if count is None or count.fired:
        return False
    if len(count.arrived) >= join.needed:
        return True
    others = (other for other in waiting if other != join.target and not waiting[other].fired)
    return join.wait == "reachable" and not _missing(join, count) & _possible(join, (*active, *others))


def _gives_way(join: Join, waiting: Mapping[str, JoinCount]) -> bool:
    return join.wait == "reachable" and join.target in waiting and not waiting[join.target].fired


def _unspent(
    joins: Mapping[str, Join], waiting: Mapping[str, JoinCount], active: Collection[str]
) -> dict[str, JoinCount]:
    """Return the joins that wait, without those that ran and to which nobody else can come."""
    unfired = {target for target, count in waiting.items() if not count.fired}
    return {
        target: count
        for target, count in waiting.items()
        if not count.fired or _missing(joins[target], count) & _possible(joins[target], (*active, *unfired))
    }


def _missing(join: Join, count: JoinCount) -> set[str]:
    return set(join.sources) - set(count.arrived)


def _possible(join: Join, active: Iterable[str]) -> set[str]:
    return {source for name in active for source in join.feeds.get(name, ())}


def _stall(join: Join, count: JoinCount) -> NodeError:
    missing = ", ".join(source for source in join.sources if source not in count.arrived)
    return refused(
        join.target,
        f"stalled join {join.target}: waiting for {missing}, which nothing leads to any more;"
        " use wait='reachable' to go on without",
    )
