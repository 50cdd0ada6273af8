"""The value of an append channel: a list seen up to one length, so that a snapshot costs nothing."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, overload

from dialoom.graph.frozen import FrozenList


class AppendLog(Sequence[Any]):
    """A read-only sequence over the first `length` items of a list that may grow behind it.

    `extended` shares that list as long as this is its newest view and copies it otherwise, so every view
    keeps what it showed. Views of one list belong to one run: a run that starts from another's state
    makes its own with `of`. `list(view)` is a copy to work on.
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: list[Any], length: int) -> None:
        self._items = items
        self._length = length

    @classmethod
    def of(cls, items: Iterable[Any] = ()) -> "AppendLog":
        own = list(items)
        return cls(own, len(own))

    def extended(self, items: Iterable[Any]) -> "AppendLog":
        """Return the log with `items` behind what this one shows."""
        shared = self._items if len(self._items) == self._length else self._items[: self._length]
        shared.extend(items)
        return AppendLog(shared, len(shared))

    def frozen(self) -> FrozenList:
        return FrozenList(self)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> FrozenList: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return FrozenList(self._items[at] for at in range(*index.indices(self._length)))
        at = index + self._length if index < 0 else index
        if not 0 <= at < self._length:
            raise IndexError(f"index {index} is outside the {self._length} items of this channel")
        return self._items[at]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Any]:
        return islice(self._items, self._length)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, AppendLog):
            return self._length == other._length and list(self) == list(other)
        return list(self) == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment] - equal to lists, which have no hash either

    def __add__(self, other: Iterable[Any]) -> list[Any]:
        return [*self, *other]

    def __radd__(self, other: Iterable[Any]) -> list[Any]:
        return [*other, *self]

    def __repr__(self) -> str:
        return repr(list(self))
