"""How much a value becomes when it is written out: what stands in it twice is written twice."""

from collections.abc import Collection
from typing import Final, cast

import msgspec

from dialoom.llm.files import FilePart

MAX_ITEMS: Final = 1_000_000
"""Values a result may have, at all levels together; a longer array is refused before it is taken apart."""
MAX_CHARS: Final = 64 * 1024 * 1024
"""Characters, and bytes, that all of its texts may have."""
_MAX_DEPTH: Final = 1000
"""Python's own writers give up there or before."""
_NUMBERS: Final[frozenset[type]] = frozenset({int, float, bool, type(None)})
_LEAVES: Final[frozenset[type]] = _NUMBERS | {str, bytes, FilePart}
_END: Final = object()


class Measure:
    """Counts values and characters, and refuses what is over the bounds without writing any of it.

    A thousand bytes of lists that share one list would else become a text of gigabytes.
    """

    def __init__(self) -> None:
        self._values = 0
        self._chars = 0

    def take(self, value: object) -> None:
        """Count all that `value` holds. Raises `TypeError` over a bound, `RecursionError` when too deep."""
        open_values = [iter((value,))]
        while open_values:
            item = next(open_values[-1], _END)
            if item is _END:
                open_values.pop()
            elif type(item) not in _LEAVES and self._has_more_inside(inner := _inside(item)):
                open_values.append(iter(inner))
                if len(open_values) > _MAX_DEPTH:
                    raise RecursionError("nested too deeply")

    def _has_more_inside(self, inner: Collection[object]) -> bool:
        self._values += len(inner)
        if self._values > MAX_ITEMS:
            raise TypeError(f"cannot be written as JSON: it has more than {MAX_ITEMS} values; return fewer")
        kinds = set(map(type, inner))
        if kinds <= _NUMBERS:
            return False
        self._chars += sum(len(each) for each in inner if isinstance(each, str | bytes))
        if self._chars > MAX_CHARS:
            raise TypeError(
                f"cannot be written as JSON: it has more than {MAX_CHARS} characters; return fewer"
            )
        return not kinds <= _LEAVES


def _inside(item: object) -> Collection[object]:
    """Return what `item` is written from, nothing for what is no container or writes itself."""
    match item:
        case dict():
            fields = cast("dict[object, object]", item)
            return [*fields.keys(), *fields.values()]
        case list() | tuple() | set() | frozenset():
            return cast("Collection[object]", item)
        case msgspec.Struct():
            names = item.__struct_fields__
        case _ if hasattr(type(item), "model_dump"):
            extra = getattr(item, "__pydantic_extra__", None)
            return [*getattr(item, "__dict__", {}).values(), extra]
        case _:
            names = getattr(item, "__dataclass_fields__", ())
    return [getattr(item, name, None) for name in names]
