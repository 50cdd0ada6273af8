"""Bringing what an older graph left to the graph of today. Pure: a state and a frontier in, both out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.graph.errors import GraphProblem
from dialoom.graph.frontier import Frontier
from dialoom.graph.frozen import freeze
from dialoom.graph.ops import Op
from dialoom.graph.state import State, settled

MoveState = Callable[[dict[str, Any]], Mapping[str, Any]]

S = TypeVar("S", bound=msgspec.Struct)


class Migration(msgspec.Struct, frozen=True):
    """One step from a version of the state to a later one. `nodes` maps old names of nodes to new ones."""

    from_: int
    to: int
    move: MoveState | None
    nodes: Mapping[str, str]


class Moved(msgspec.Struct, frozen=True):
    """What migrations came to. `ops` say the same as `state`, for the log of changes that stores replay."""

    state: State
    frontier: Frontier
    ops: tuple[Op, ...] = ()


class StateVersionError(UsageError):
    """A checkpoint holds the state of a version from which no migration leads to this graph."""

    code: ClassVar[str] = "state_version"

    def __init__(self, graph: str, *, held: int, wanted: int) -> None:
        advice = (
            f"add migrate(from_={held}, to=...) to the builder"
            if held < wanted
            else "resume it with the newer graph that made it"
        )
        super().__init__(
            f"the checkpoint holds state of version {held} and graph {graph!r} is at {wanted}; {advice}"
        )
        self.held = held
        self.wanted = wanted


def version_of(migrations: Sequence[Migration]) -> int:
    """Return the version of the state that `migrations` lead to; a graph without any is at 1."""
    return max((step.to for step in migrations), default=1)


def migration_problems(migrations: Sequence[Migration]) -> Iterator[GraphProblem]:
    """Yield what is wrong with `migrations`: each begins at a version of its own and leads onward."""
    begun: set[int] = set()
    for step in migrations:
        where = f"migration {step.from_} -> {step.to}"
        if not 1 <= step.from_ < step.to:
            yield GraphProblem(
                "bad-migration", where, "versions count from 1, and it must lead to a later one"
            )
        if step.from_ in begun:
            yield GraphProblem("bad-migration", where, f"another one leaves version {step.from_}; keep one")
        begun.add(step.from_)
    ends = {step.to for step in migrations} - begun
    if len(ends) > 1:
        said = ", ".join(str(end) for end in sorted(ends)[:-1])
        yield GraphProblem("bad-migration", "migrations", f"no migration leaves version {said}; add one")


def migrated(
    graph: str, migrations: Sequence[Migration], held: int, *, state: State, frontier: Frontier
) -> Moved:
    """Return `state` and `frontier`, which are of version `held`, at the version of `migrations`.

    Raises StateVersionError when no migrations lead there, UsageError when one of them fails.
    """
    wanted, at = version_of(migrations), held
    if held == wanted:
        return Moved(state, frontier)
    state = settled(state)
    by_start = {step.from_: step for step in migrations}
    while at != wanted:
        step = by_start.get(at)
        if step is None:
            raise StateVersionError(graph, held=held, wanted=wanted)
        state = _moved_state(step, state)
        frontier = _renamed(frontier, step.nodes)
        at = step.to
    return Moved(state, frontier, tuple(Op(name, "set", value) for name, value in state.items()))


def _moved_state(step: Migration, state: State) -> State:
    if step.move is None:
        return state
    try:
        return State({name: freeze(value) for name, value in step.move(dict(state)).items()})
    except Exception as error:  # seam: migrations are foreign code
        reason = one_line(f"{type(error).__name__}: {error}")
        raise UsageError(
            f"the migration of the state from version {step.from_} to {step.to} failed: {reason}; mend it,"
            " nothing was changed"
        ) from error


def _renamed(value: S, nodes: Mapping[str, str]) -> S:
    """Return `value`, a Frontier or a part of one, with the names of nodes in it changed."""
    changes: dict[str, Any] = {}
    for name in _NAMES.intersection(value.__struct_fields__):
        held: str | tuple[str, ...] = getattr(value, name)
        changes[name] = (
            nodes.get(held, held) if isinstance(held, str) else tuple(nodes.get(node, node) for node in held)
        )
    for name in _PARTS.intersection(value.__struct_fields__):
        parts = cast("tuple[msgspec.Struct, ...]", getattr(value, name))
        changes[name] = tuple(_renamed(part, nodes) for part in parts)
    return msgspec.structs.replace(value, **changes)


_NAMES = frozenset({"node", "target", "ready", "deferred", "unrouted", "arrived"})
_PARTS = frozenset({"sends", "deferred_sends", "joins", "notes", "questions"})
