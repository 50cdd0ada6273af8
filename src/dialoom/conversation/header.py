"""What a conversation is called and how it is set up: everything about it but what was said."""

import re
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import force_setattr

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line, replace_surrogates
from dialoom.conversation.plain import json_object

WorkflowMode: TypeAlias = str | int | bool | None
"""The hosting product's own word for how a conversation is worked through; kept as it is."""

MAX_TITLE = 1000
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DEVICE = re.compile(r"CON|PRN|AUX|NUL|COM[0-9]|LPT[0-9]", re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_EARLIEST = datetime.min.replace(tzinfo=UTC).timestamp()
_DOTNET_FORMATS = tuple(
    f"{date} {time}{zone}"
    for date, time in (
        ("%m/%d/%Y", "%H:%M:%S"),
        ("%m/%d/%Y", "%I:%M:%S %p"),
        ("%Y/%m/%d", "%H:%M:%S"),
        ("%Y-%m-%d", "%H:%M:%S"),
    )
    for zone in ("", " %z")
)
"""What `DateTime.ToString` makes of a moment in the invariant culture, in en-US and in zh-CN."""
_LATEST = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation without its log.

    `id` names files and rows, so it is 1 to 64 of `A-Z a-z 0-9 _ -` and no device name. `branch_from` is the
    conversation this one replaces. `created` and `updated` are seconds since the epoch, to the millisecond.
    `settings` are JSON values; `meta` keeps unknown fields of a file it came from.
    """

    id: str
    title: str = ""
    branch_from: str | None = None
    created: float
    updated: float
    workflow_mode: WorkflowMode = None
    settings: dict[str, object] = {}
    meta: dict[str, object] = {}

    def __post_init__(self) -> None:
        check_id(self.id)
        if self.branch_from is not None:
            check_id(self.branch_from)
        force_setattr(self, "title", one_line(self.title, MAX_TITLE))
        if isinstance(self.workflow_mode, str):
            force_setattr(self, "workflow_mode", replace_surrogates(self.workflow_mode))
        force_setattr(self, "created", moment(self.created))
        force_setattr(self, "updated", moment(self.updated))
        force_setattr(self, "settings", json_object(self.settings, "settings of a conversation"))
        force_setattr(self, "meta", json_object(self.meta, "meta of a conversation"))


class HeaderChange(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a header to replace; those left out stay."""

    title: str | UnsetType = UNSET
    workflow_mode: WorkflowMode | UnsetType = UNSET
    settings: dict[str, object] | UnsetType = UNSET

    def apply(self, header: Header, now: float) -> Header:
        """Return `header` with these fields, changed at `now` or, if that is later, when it was last."""
        fields = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not UNSET}
        return msgspec.structs.replace(header, **fields, updated=max(header.updated, now))


def check_id(conversation_id: str) -> str:
    """Return `conversation_id`, or raise `UsageError` when it could not name a file everywhere."""
    is_text = isinstance(conversation_id, str)  # pyright: ignore[reportUnnecessaryIsInstance] - foreign callers
    if is_text and _ID.fullmatch(conversation_id) and not _DEVICE.fullmatch(conversation_id):
        return conversation_id
    raise UsageError(
        f"{one_line(repr(conversation_id), 80)} cannot name a conversation; use 1 to 64 of A-Z a-z 0-9 _ - "
        "and no device name"
    )


def moment(seconds: float) -> float:
    """Return `seconds` since the epoch to the millisecond, so that text holds it without loss."""
    if not _EARLIEST <= seconds <= _LATEST:
        raise UsageError(f"{seconds} is no moment of the calendar; give seconds since 1970")
    return round(seconds * 1000) / 1000


def to_rfc3339(seconds: float) -> str:
    """Return a moment as text in UTC, like `2026-11-30T12:00:00.000Z`."""
    stamp = _EPOCH + round(seconds * 1000) * _MILLISECOND
    return stamp.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def from_rfc3339(text: str) -> float:
    """Read a moment; one that names no zone is UTC. Raises `UsageError`."""
    return moment(_seconds(_from_iso(text)))


def from_stored_time(text: str) -> float:
    """Read a moment of a file: RFC 3339, or another way in which .NET writes it, where the month comes first.

    What lies off the calendar, as .NET's first and last moment do in most zones, becomes its nearest end.
    Raises `UsageError`.
    """
    try:
        stamp = _from_iso(text)
    except UsageError:
        found = next(filter(None, (_from_format(text, each) for each in _DOTNET_FORMATS)), None)
        if found is None:
            raise
        stamp = found
    return moment(min(max(_seconds(stamp), _EARLIEST), _LATEST))


def _from_iso(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{one_line(text, 40)!r} is no time; write it like 2026-11-30T12:00:00Z") from error


def _from_format(text: str, layout: str) -> datetime | None:
    try:
        return datetime.strptime(text, layout)
    except ValueError:
        return None


def _seconds(stamp: datetime) -> float:
    if stamp.tzinfo is None:
        stamp = stamp.replace(tzinfo=UTC)
    return (stamp - _EPOCH) // _MILLISECOND / 1000
