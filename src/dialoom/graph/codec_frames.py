"""Values over a pipe: msgpack frames of bounded length, classes by name, never pickle."""

from collections.abc import Iterable
from typing import Any, BinaryIO, Final

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.graph.codec_types import TypeRegistry
from dialoom.graph.codec_values import Misfit, Tagged, ValueReader, ValueWriter

MAX_FRAME: Final = 64 * 1024 * 1024
_TAG_CODE: Final = 1
_HEAD: Final = 4


class Frames:
    """Writes and reads values, with the classes of `types` inside, on two streams.

    The other end is a process of this program, yet what comes is bounded: a frame has at most `MAX_FRAME`
    bytes.
    """

    def __init__(self, source: BinaryIO, sink: BinaryIO, types: Iterable[type] = ()) -> None:
        registry = TypeRegistry(types)
        self._source = source
        self._sink = sink
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(ext_hook=self._tagged)
        self._writer = ValueWriter(registry, self._tag)
        self._reader = ValueReader(registry)

    def write(self, *values: Any) -> None:
        """Send `values`. Raises UsageError for what no frame can hold, OSError when nobody reads."""
        try:
            data = self._encoder.encode(self._writer.value(values))
        except (Misfit, UnicodeEncodeError) as error:
            raise UsageError(
                f"it holds {error}, which cannot be sent to another process;"
                " use plain data, or give its class: types=[...]"
            ) from error
        if len(data) > MAX_FRAME:
            raise UsageError(
                f"{len(data)} bytes are too much for another process, which takes {MAX_FRAME}; send less"
            )
        self._sink.write(len(data).to_bytes(_HEAD, "big") + data)
        self._sink.flush()

    def read(self) -> tuple[Any, ...] | None:
        """Return what was sent, None at the end of it. Raises UsageError for what is no frame."""
        head = self._source.read(_HEAD)
        length = int.from_bytes(head, "big")
        if len(head) < _HEAD:
            return None
        if length > MAX_FRAME:
            raise UsageError(f"the other process sent {length} bytes at once, at most {MAX_FRAME} are taken")
        data = self._source.read(length)
        if len(data) < length:
            return None
        try:
            return self._reader.value(self._decoder.decode(data))
        except (ValueError, TypeError, LookupError, ArithmeticError, msgspec.MsgspecError) as error:
            raise UsageError(f"the other process sent what is no frame: {one_line(str(error))}") from error

    def _tag(self, name: str, payload: Any) -> msgspec.msgpack.Ext:
        return msgspec.msgpack.Ext(_TAG_CODE, self._encoder.encode([name, payload]))

    def _tagged(self, code: int, data: memoryview) -> Tagged:
        if code != _TAG_CODE:
            raise ValueError(f"no type has code {code}")
        name, payload = self._decoder.decode(bytes(data))
        return Tagged(str(name), payload)
