"""All channels of one thread at one moment, read-only."""

from typing import Any, NoReturn

from dialoom.graph.frozen import FrozenDict
from dialoom.graph.log import AppendLog


class State(FrozenDict):
    """Channel name to value. A node reads it; it changes only by what nodes return.

    Lists and dicts in it are read-only too; an append channel is an `AppendLog` while a run goes on.
    """

    __slots__ = ()

    def __missing__(self, key: str) -> NoReturn:
        raise KeyError(f"channel {key!r} has no value; check the name, give it a default, or write it first")


EMPTY = State()


def settled(state: State) -> State:
    """Return `state` with logs as plain read-only lists: ready for JSON, sharing nothing with a run."""
    for value in state.values():
        if type(value) is AppendLog:
            return State({name: settled_value(value) for name, value in state.items()})
    return state


def settled_value(value: Any) -> Any:
    return value.frozen() if isinstance(value, AppendLog) else value
