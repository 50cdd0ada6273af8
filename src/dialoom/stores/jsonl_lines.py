"""Lines of a file of checkpoints: a JSON object each, with a checksum over the rest of it in front."""

import base64
import re
import zlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from dialoom.graph.checkpoint import Checkpoint
from dialoom.graph.codec import STATE, CheckpointCodec, UnreadableError
from dialoom.graph.codec_types import TypeCodec
from dialoom.stores.array_types import ARRAY_TYPES
from dialoom.stores.checkpoint_blob import BlobCodec
from dialoom.stores.sealing import Sealer

_SUMMED: Final = b'{"crc":"'
_SUM_END: Final = len(_SUMMED) + 8
_MEMBER: Final = rb'"(?:id|thread_id|version|parent_id|created)":(?:"(?:[^"\\]|\\.)*"|[^",{}\[\]]+),'
_BEGINNING: Final = re.compile(rb'\{(?:"crc":"[^"]{8}",)?((?:%s){4,5})' % _MEMBER)
_NOT_OF_ONE_LINE: Final = re.compile(rb'.\{"crc":"|[\x00-\x1f]|[^}]\Z', re.DOTALL)
_IN_THE_OPEN: Final = frozenset({"id", "thread_id", "version", "parent_id", "created"})


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What of a line must be known without reading all of it. `full`: it holds the whole state."""

    id: str
    thread_id: str
    version: int
    parent_id: str | None
    created: float
    state: msgspec.Raw = msgspec.Raw(b"")
    full: bool = False
    sealed: str = ""

    @property
    def is_full(self) -> bool:
        return self.full or bytes(self.state) != b""


class LineCodec:
    """Checkpoints as lines. With a `sealer`, all but id, thread, version, parent and time is encrypted."""

    def __init__(self, types: Iterable[type | TypeCodec], sealer: Sealer | None) -> None:
        known = [*types]
        self._plain = CheckpointCodec([*ARRAY_TYPES, *known], text=True)
        self._sealed = None if sealer is None else BlobCodec(known, sealer)

    def write(self, checkpoint: Checkpoint, *, full: bool) -> bytes:
        """Return the line, newline included. Raises StoreError for what cannot be stored."""
        omit = frozenset[str]() if full else STATE
        if self._sealed is None:
            return summed(self._plain.encode(checkpoint, omit=omit))
        secret = self._sealed.write(checkpoint, omit=omit | _IN_THE_OPEN).data
        shown: dict[str, Any] = {name: getattr(checkpoint, name) for name in sorted(_IN_THE_OPEN)}
        return summed(
            msgspec.json.encode({**shown, "full": full, "sealed": base64.b64encode(secret).decode()})
        )

    def read(self, line: bytes) -> Checkpoint:
        """Return the checkpoint; without a state unless the line is full. Raises UnreadableError."""
        body = checked(line)
        if self._sealed is None:
            return self._plain.decode(body, {})
        header = read_header(body)
        known = {name: getattr(header, name) for name in _IN_THE_OPEN}
        return self._sealed.read(base64.b64decode(header.sealed), known)


def summed(body: bytes) -> bytes:
    """Return a JSON object as a line with its checksum."""
    return b'%s%08x",%s\n' % (_SUMMED, zlib.crc32(body[1:]), body[1:])


def checked(line: bytes) -> bytes:
    """Return the JSON object of a line, which older lines are. Raises UnreadableError at a wrong checksum."""
    line = line.removesuffix(b"\n")
    if not line.startswith(_SUMMED):
        return line
    rest = line[_SUM_END + 2 :]
    if line[len(_SUMMED) : _SUM_END] != b"%08x" % zlib.crc32(rest) or line[_SUM_END : _SUM_END + 2] != b'",':
        raise UnreadableError("its checksum is wrong")
    return b"{" + rest


def read_header(body: bytes) -> Header:
    """Return what a JSON object says about itself. Raises UnreadableError unless it is a checkpoint."""
    try:
        return msgspec.json.decode(body, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableError("it is no checkpoint") from error


def told_by_damaged(line: bytes) -> Header | None:
    """Return what a damaged line still says of itself in the place where our lines begin with it.

    None unless all of that is whole JSON and the line shows no sign of being several, or a piece of one.
    """
    line = line.removesuffix(b"\n")
    begun = _BEGINNING.match(line)
    if begun is None or _NOT_OF_ONE_LINE.search(line) is not None:
        return None
    try:
        return msgspec.json.decode(b"{%s}" % begun[1].removesuffix(b","), type=_Beginning).header()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def lines_of_array(text: bytes) -> list[bytes]:
    """Return the lines that stand for a file in the older form: one JSON array of checkpoints.

    They name their `thread_id` (or `thread`), `state` and `step`; what ran next is `frontier`, or a list
    `active`. What they do not say is filled in. Raises UnreadableError for anything else.
    """
    try:
        items = msgspec.json.decode(text, type=list[_Older])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableError("it is neither lines nor an array of checkpoints") from error
    lines: list[bytes] = []
    newest: dict[str, tuple[int, str]] = {}
    for item in items:
        thread_id = item.thread_id or item.thread
        version, parent_id = newest.get(thread_id, (0, None))
        checkpoint_id = item.id or f"{item.run_id or 'older'}:{version + 1}"
        newest[thread_id] = (version + 1, checkpoint_id)
        body: dict[str, Any] = {
            "id": checkpoint_id,
            "thread_id": thread_id,
            "version": version + 1,
            "parent_id": parent_id,
            "run_id": item.run_id or "older",
            "step": item.step,
            "created": item.created,
            "fingerprint": item.fingerprint,
            "frontier": {"ready": item.active} if item.frontier is None else item.frontier,
            "ops": [],
            "state": item.state,
        }
        lines.append(summed(msgspec.json.encode(body)))
    return lines


class _Beginning(msgspec.Struct, frozen=True, kw_only=True):
    """What our lines begin with; only the time may be further on."""

    id: str
    thread_id: str
    version: int
    parent_id: str | None

    def header(self) -> Header:
        return Header(
            id=self.id,
            thread_id=self.thread_id,
            version=self.version,
            parent_id=self.parent_id,
            created=0.0,
        )


class _Older(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint of the older form."""

    state: dict[str, Any]
    step: int
    thread_id: str = ""
    thread: str = ""
    id: str = ""
    run_id: str = ""
    created: float = 0.0
    fingerprint: str = ""
    frontier: dict[str, Any] | None = None
    active: list[str] = []
