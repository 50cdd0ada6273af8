"""The body of an answer, whichever of three things a server sends: events, one JSON object, or a web page."""

from dialoom.llm.failures import html_title
from dialoom.llm.wire.broken import MalformedChunkError
from dialoom.net.sse import SseEvent, SseParser

MAX_WHOLE_BYTES = 32 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class AnswerBody:
    """Gives the events of an answer's body, without I/O; how the bytes are cut makes no difference.

    What the body is shows in its first character, for headers are often wrong about it: an object or a
    page is taken whole, as one event.
    """

    def __init__(self) -> None:
        self._parser: SseParser | None = None
        self._held = bytearray()
        self._whole = False

    @property
    def whole(self) -> bool:
        """Whether the body is one object rather than a stream."""
        return self._whole

    @property
    def streamed(self) -> bool:
        """Whether the body is a stream of events."""
        return self._parser is not None

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Return the events that `piece` completes. Raises `MalformedChunkError`, `EventTooLargeError`."""
        if self._parser is not None:
            return self._parser.feed(piece)
        self._held += piece
        if len(self._held) > MAX_WHOLE_BYTES:
            raise MalformedChunkError(f"a body of more than {MAX_WHOLE_BYTES} bytes")
        if not self._whole:
            self._held = self._held.removeprefix(_BOM).lstrip()
            start = bytes(self._held[:1])
            if start not in {b"", b"{", b"[", b"<", _BOM[:1]}:
                return self._stream()
            self._whole = start in {b"{", b"[", b"<"}
        return []

    def finish(self) -> list[SseEvent]:
        """Return what the end of the body completes. Raises `MalformedChunkError` when it was a web page."""
        if self._parser is not None:
            last = self._parser.finish()
            return [last] if last else []
        whole = bytes(self._held).removeprefix(_BOM).strip()
        self._held.clear()
        if whole.startswith(b"<"):
            raise MalformedChunkError(f"an HTML page ({html_title(whole)})")
        return [SseEvent("message", whole.decode("utf-8", "replace"), "", None)] if whole else []

    def _stream(self) -> list[SseEvent]:
        self._parser = SseParser()
        held = bytes(self._held)
        self._held.clear()
        return self._parser.feed(held)
