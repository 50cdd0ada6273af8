"""The log: records that are only ever added, and the one fold that says what they leave visible."""

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import replace_surrogates
from dialoom.conversation.entries import CardEntry, Entry, TextEntry


class Append(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="op", tag="append"):
    """An entry was added.

    `key` names its delivery, so that the same delivery made twice adds one entry; None is never the same.
    """

    entry: Entry
    key: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.entry, TextEntry | CardEntry):  # pyright: ignore[reportUnnecessaryIsInstance] - foreign callers
            raise UsageError(f"a TextEntry or CardEntry is appended, and this is {type(self.entry).__name__}")
        if self.key is not None:
            if not isinstance(self.key, str):  # pyright: ignore[reportUnnecessaryIsInstance] - foreign callers
                raise UsageError(f"the key of an Append is text, and this is {type(self.key).__name__}")
            msgspec.structs.force_setattr(self, "key", replace_surrogates(self.key))


class Truncate(msgspec.Struct, frozen=True, tag_field="op", tag="truncate"):
    """All visible entries but the first `keep` were taken off the list; the log still has them."""

    keep: int

    def __post_init__(self) -> None:
        if type(self.keep) is not int or self.keep < 0:
            raise UsageError(f"a conversation cannot keep {self.keep!r} entries; give 0 or more")


Record: TypeAlias = Append | Truncate


def check_records(records: Iterable[Record]) -> tuple[Record, ...]:
    """Return `records`, or raise `UsageError` when one is something else: a log keeps all or none."""
    given = tuple(records)
    for record in given:
        if not isinstance(record, Append | Truncate):  # pyright: ignore[reportUnnecessaryIsInstance] - foreign callers
            raise UsageError(f"a log holds Append and Truncate, and this is {type(record).__name__}")
    return given


class Log:
    """Records in their order, and what they leave visible. Adding one costs the same at any length."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records: list[Record] = []
        self.visible: list[Append] = []
        self._keys: set[str] = set()
        for record in records:
            self.add(record)

    def add(self, record: Record) -> bool:
        """Add `record` and return whether it changed anything; one that changes nothing is not kept.

        A key once delivered stays known, also when its entry was truncated since.
        """
        changed = self._append(record) if isinstance(record, Append) else self._truncate(record)
        if changed:
            self.records.append(record)
        return changed

    def _append(self, record: Append) -> bool:
        if record.key is not None:
            if record.key in self._keys:
                return False
            self._keys.add(record.key)
        self.visible.append(record)
        return True

    def _truncate(self, record: Truncate) -> bool:
        if record.keep >= len(self.visible):
            return False
        del self.visible[record.keep :]
        return True


def fold(records: Iterable[Record]) -> tuple[Entry, ...]:
    """Return the entries that `records` leave visible, in order."""
    return tuple(record.entry for record in Log(records).visible)
