"""Checkpoints as bytes: msgpack or JSON, tagged by name, compressed when large, never pickle."""

import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from dialoom.base.errors import StoreError
from dialoom.base.text import one_line
from dialoom.graph.checkpoint import Checkpoint
from dialoom.graph.codec_fields import FieldWriter
from dialoom.graph.codec_types import TypeCodec, TypeRegistry
from dialoom.graph.codec_values import Misfit, Tagged, ValueReader, ValueWriter, tagged_text
from dialoom.graph.note_changes import without_known
from dialoom.graph.state import EMPTY, State

COMPRESS_FROM: Final = 64 * 1024
MAX_BYTES: Final = 256 * 1024 * 1024
STATE: Final = frozenset({"state"})
_TAG_CODE: Final = 1
_PLAIN, _ZLIB = b"\x00", b"\x01"


class UnreadableError(StoreError):
    """What is stored of a checkpoint cannot be read; other threads can."""

    code = "unreadable"


class CheckpointCodec:
    """Writes and reads checkpoints, any field of them, with the classes of `types` inside.

    A value of a class that is neither built in nor in `types` is refused when written, with the path to it;
    read by a program that does not know its class, it is an `Opaque`. No name in the data is ever imported.
    """

    def __init__(
        self, types: Iterable[type | TypeCodec] = (), *, text: bool = False, max_bytes: int = MAX_BYTES
    ) -> None:
        registry = TypeRegistry(types)
        self._max_bytes = max_bytes
        self._msgpack = msgspec.msgpack.Encoder()
        self._encode: Callable[[Any], bytes] = msgspec.json.encode if text else self._msgpack.encode
        self._decode: Callable[[bytes], Any] = (
            msgspec.json.decode if text else msgspec.msgpack.Decoder(ext_hook=self._tagged).decode
        )
        tag = tagged_text if text else self._tag
        self._writer = ValueWriter(registry, tag, text=text)
        self._fields = FieldWriter(self._writer)
        self._careful = ValueWriter(registry, tag, text=text, careful=True)
        self._reader = ValueReader(registry, text=text)

    def encode(self, checkpoint: Checkpoint, *, omit: frozenset[str] = STATE) -> bytes:
        """Return the fields of `checkpoint` except `omit`; without the state only what changed of the notes.

        Raises StoreError naming what cannot be stored.
        """
        if checkpoint.frontier.notes and "state" in omit and checkpoint.parent_id is not None:
            checkpoint = msgspec.structs.replace(checkpoint, frontier=without_known(checkpoint.frontier))
        try:
            data = self._encode(self._fields.fields(checkpoint, omit=omit))
        except (Misfit, UnicodeEncodeError):
            raise StoreError(self._describe_misfit(checkpoint, omit)) from None
        if len(data) > self._max_bytes:
            raise StoreError(
                f"checkpoint {checkpoint.id!r} has {len(data)} bytes, at most {self._max_bytes} are kept;"
                " keep large values elsewhere and their names in the state"
            )
        return data

    def decode(self, data: bytes, known: Mapping[str, Any]) -> Checkpoint:
        """Return the checkpoint, with the fields `known` from elsewhere; its state empty if that was omitted.

        Raises UnreadableError for anything that is not what `encode` wrote.
        """
        try:
            raw = self._decode(data)
            fields = {name: self._reader.value(value) for name, value in cast("dict[str, Any]", raw).items()}
            fields["state"] = State(fields.get("state", EMPTY))
            return msgspec.convert({**fields, **known}, Checkpoint)
        except Exception as error:  # seam: registered classes are foreign code
            told = one_line(f"{type(error).__name__}: {error}", 120)
            raise UnreadableError(f"its data cannot be read ({told})") from error

    def _tag(self, name: str, payload: Any) -> msgspec.msgpack.Ext:
        return msgspec.msgpack.Ext(_TAG_CODE, self._msgpack.encode([name, payload]))

    def _tagged(self, code: int, data: memoryview) -> Tagged:
        if code != _TAG_CODE:
            raise ValueError(f"no type has code {code}")
        name, payload = self._decode(bytes(data))
        return Tagged(str(name), payload)

    def _describe_misfit(self, checkpoint: Checkpoint, omit: frozenset[str]) -> str:
        for op in checkpoint.ops:
            reason = self._misfit(op.value)
            if reason is not None:
                return self._locate(op.value, f"channel {op.channel!r}", reason)
        fields = FieldWriter(self._careful)
        try:
            fields.fields(checkpoint, omit=omit)
        except Misfit as misfit:
            return _refusal(f"checkpoint {checkpoint.id!r}", str(misfit))
        return (
            f"checkpoint {checkpoint.id!r} names something with half a surrogate pair; give it another name"
        )

    def _locate(self, value: Any, path: str, reason: str) -> str:
        """Return the refusal of `value`, which does not fit for `reason`, naming the part at fault."""
        for step, part in self._careful.children(value):
            inner = self._misfit(part)
            if inner is not None:
                return self._locate(part, path + step, inner)
        return _refusal(one_line(path), reason)

    def _misfit(self, value: Any) -> str | None:
        try:
            self._careful.value(value)
        except Misfit as misfit:
            return str(misfit)
        return None


def _refusal(where: str, reason: str) -> str:
    return (
        f"{where} holds {reason}, which cannot be stored;"
        " write plain data, or give the store its class: types=[...]"
    )


def pack(data: bytes) -> bytes:
    """Return `data` marked as plain, or compressed when it is large."""
    if len(data) <= COMPRESS_FROM:
        return _PLAIN + data
    return _ZLIB + zlib.compress(data, 1)


def unpack(packed: bytes, *, limit: int = MAX_BYTES) -> bytes:
    """Return what was packed, at most `limit` bytes of it. Raises UnreadableError for anything else."""
    if packed[:1] == _PLAIN:
        return packed[1:]
    if packed[:1] != _ZLIB:
        raise UnreadableError("its data has an unknown form")
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(packed[1:], limit)
    except zlib.error as error:
        raise UnreadableError("its data cannot be decompressed") from error
    if not stream.eof:
        raise UnreadableError("its data is cut off or too large")
    return data
