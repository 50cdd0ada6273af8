"""How a write meets what a channel holds."""

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, cast

import msgspec

from dialoom.graph.ops import OpKind

Combine = Callable[[Any, Any], Any]


class Reducer(msgspec.Struct, frozen=True):
    """A rule with a name. `kind` is what a write is committed as; `combine` is a custom rule's function.

    `since(old, new)` is the write that makes `new` of `old`, for what a subgraph adds to a value it was
    given; without it the new value is written. `empty()` is what a channel holds before the first write.
    """

    name: str
    kind: OpKind
    combine: Combine | None = None
    since: Combine | None = None
    empty: Callable[[], Any] | None = None


class Removed(msgspec.Struct, frozen=True):
    """Written to an `upsert` channel: the item with this id goes."""

    id: Any


def _upserted(key: Callable[[Any], Any], old: Iterable[Any], written: Iterable[Any]) -> list[Any]:
    items = {key(item): item for item in old}
    for item in written:
        if isinstance(item, Removed):
            items.pop(item.id, None)
        else:
            items[key(item)] = item
    return list(items.values())


def _field(name: str) -> Callable[[Any], Any]:
    def read(item: Any) -> Any:
        return cast("Mapping[str, Any]", item)[name] if isinstance(item, Mapping) else getattr(item, name)

    return read


def _growth(old: Any, new: Any) -> Any:
    return new - old


def _united(old: Iterable[Any], written: Iterable[Any]) -> frozenset[Any]:
    return frozenset(old) | frozenset(written)


class Reducers:
    """The rules a channel can have; give one to `GraphBuilder.add_channel`.

    - `overwrite`: the last write counts, in the order in which nodes were added.
    - `append`: a write is a list of items that go to the end.
    - `merge`: a write is a mapping whose keys are laid over what is there.
    - `sum`: a write is added to what is there, 0 at first.
    - `set_union`: a write is items of which a set holds each once.
    - `upsert(key)`: a write is a list of items; one with the id of an item that is there takes its place,
      others go to the end, `Reducers.remove(id)` in the list takes one out.
    """

    overwrite = Reducer("overwrite", "set")
    append = Reducer("append", "extend")
    merge = Reducer("merge", "update")

    sum = Reducer("sum", "set", operator.add, _growth, int)
    set_union = Reducer("set_union", "set", _united, empty=frozenset)

    @staticmethod
    def upsert(key: str) -> Reducer:
        """Return a rule for lists of items that have an id: the field or the mapping key named `key`."""
        return Reducer(f"upsert:{key}", "set", partial(_upserted, _field(key)), empty=list)

    @staticmethod
    def remove(item_id: object) -> Removed:
        """Return what takes the item with that id out of an `upsert` channel."""
        return Removed(item_id)

    @staticmethod
    def custom(combine: Combine, *, name: str = "") -> Reducer:
        """Return a rule that stores `combine(old, written)`, or a first write without a default as it is.

        `combine` must be pure: it runs when a superstep commits and never again on replay.
        """
        return Reducer(name or getattr(combine, "__name__", "custom"), "set", combine)
