"""A body of JSON lines, cut anywhere, as events: one for each line."""

from dialoom.net.sse import MAX_LINE_BYTES, EventTooLargeError, SseEvent


class JsonLines:
    """Gives the lines of a body, without I/O; how the bytes are cut makes no difference."""

    whole = False

    def __init__(self) -> None:
        self._rest = bytearray()
        self._lines = 0

    @property
    def streamed(self) -> bool:
        """Whether a line has come: what follows it may be cut off, what comes first may not."""
        return self._lines > 0

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Return the lines that `piece` completes. Raises `EventTooLargeError`."""
        at = len(self._rest)
        self._rest += piece
        if b"\n" not in piece:
            self._check()
            return []
        end = self._rest.rindex(b"\n", at) + 1
        lines = bytes(self._rest[:end]).splitlines()
        del self._rest[:end]
        self._check()
        events = _events(lines)
        self._lines += len(events)
        return events

    def finish(self) -> list[SseEvent]:
        """Return the line that the end of the body completes."""
        line = bytes(self._rest)
        self._rest.clear()
        return _events([line])

    def _check(self) -> None:
        if len(self._rest) > MAX_LINE_BYTES:
            raise EventTooLargeError(f"a line of the answer is longer than {MAX_LINE_BYTES} bytes")


def _events(lines: list[bytes]) -> list[SseEvent]:
    return [SseEvent("message", line.decode("utf-8", "replace"), "", None) for line in lines if line.strip()]
