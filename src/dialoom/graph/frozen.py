"""Lists and dicts that only read, so that what one node holds no other node can change."""

from typing import Any, Final, NoReturn, cast

MAX_DEPTH: Final = 100
_READ_ONLY: Final = (
    "state is read-only; return the new value from the node, or work on a copy: list(x), dict(x)"
)
_LIST_WRITERS: Final = (
    "__setitem__", "__delitem__", "__iadd__", "__imul__",
    "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort",
)  # fmt: skip
_DICT_WRITERS: Final = (
    "__setitem__", "__delitem__", "__ior__",
    "clear", "pop", "popitem", "setdefault", "update",
)  # fmt: skip


class FrozenList(list[Any]):
    """A list that refuses to change. Equal to a list with the same items; copies of it are plain lists."""

    __slots__ = ()

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[Any]]]:
        return list, (list(self),)


class FrozenDict(dict[str, Any]):
    """A dict that refuses to change. Equal to a dict with the same items; copies of it are plain dicts."""

    __slots__ = ()

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:  # noqa: ARG001 - stands for many methods
    raise TypeError(_READ_ONLY)


# set from outside, because as methods they would not be proper overrides: that is their point
for _name in _LIST_WRITERS:
    setattr(FrozenList, _name, _refuse)
for _name in _DICT_WRITERS:
    setattr(FrozenDict, _name, _refuse)

UNCHANGING: Final = frozenset({str, int, float, bool, type(None), bytes, FrozenList, FrozenDict, frozenset})


def freeze(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return `value` with every built-in list, dict and set in it made read-only, at any depth.

    What is frozen already comes back as it is; subclasses become plain. Objects of other classes pass by
    identity: keep them immutable. Raises ValueError for what nests deeper than `MAX_DEPTH` or holds itself.
    """
    if type(value) in UNCHANGING:
        return value
    if depth == 0:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return FrozenList([freeze(item, depth - 1) for item in items])
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value)
        return FrozenDict({key: freeze(item, depth - 1) for key, item in pairs.items()})
    if type(value) is tuple:
        return tuple([freeze(item, depth - 1) for item in cast("tuple[Any, ...]", value)])
    if isinstance(value, set):
        return frozenset(cast("set[Any]", value))
    return value
