"""Server-sent events, by the grammar of the HTML standard, without any I/O."""

import msgspec

from dialoom.base.errors import DialoomError

MAX_LINE_BYTES = 4 * 1024 * 1024
MAX_EVENT_BYTES = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class EventTooLargeError(DialoomError):
    """A line or an event passed its bound; the stream cannot be read on."""

    code = "event_too_large"


class SseEvent(msgspec.Struct, frozen=True):
    """One event. `id` is the last one the stream has named, `retry` the milliseconds this event named."""

    event: str
    data: str
    id: str
    retry: int | None


class SseParser:
    """Turns bytes, cut anywhere, into events; the same bytes give the same events however they are cut."""

    def __init__(
        self, *, max_line_bytes: int = MAX_LINE_BYTES, max_event_bytes: int = MAX_EVENT_BYTES
    ) -> None:
        self._max_line = max_line_bytes
        self._max_event = max_event_bytes
        self._started = False
        self._after_cr = False
        self._line: list[bytes] = []
        self._line_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._event = b""
        self._id = ""
        self._retry: int | None = None

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Return the events that `chunk` completes. Raises `EventTooLargeError`."""
        if not self._started:
            chunk = self._without_bom(chunk)
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[0] == 0x0A:  # the other half of a CRLF that was cut in two
                chunk = chunk[1:]
        if not chunk:
            return []
        if b"\n" not in chunk and b"\r" not in chunk:
            self._keep(chunk)
            return []
        if self._line:
            chunk = b"".join((*self._line, chunk))
            self._line.clear()
            self._line_bytes = 0
        return self._read(chunk)

    def finish(self) -> SseEvent | None:
        """Return the event that the end of the stream cut short, None when there is none.

        The standard drops such an event. A reader that can tell a whole one, for instance by its JSON,
        may still use it.
        """
        found = self.feed(b"\n\n")
        return found[-1] if found else None

    def _without_bom(self, chunk: bytes) -> bytes:
        chunk = b"".join((*self._line, chunk))
        self._line.clear()
        self._line_bytes = 0
        if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
            self._keep(chunk)
            return b""
        self._started = True
        return chunk.removeprefix(_BOM)

    def _keep(self, piece: bytes) -> None:
        self._line.append(piece)
        self._line_bytes += len(piece)
        if self._line_bytes > self._max_line:
            raise EventTooLargeError(f"a line of the event stream is longer than {self._max_line} bytes")

    def _read(self, chunk: bytes) -> list[SseEvent]:
        lines = chunk.splitlines()
        end = chunk[-1]
        if end == 0x0D:
            self._after_cr = True
        elif end != 0x0A:
            self._keep(lines.pop())
        if len(chunk) > self._max_line and any(len(line) > self._max_line for line in lines):
            raise EventTooLargeError(f"a line of the event stream is longer than {self._max_line} bytes")
        events: list[SseEvent] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
                self._data_bytes += len(self._data[-1]) + 1
                if self._data_bytes > self._max_event:
                    raise self._too_much()
            elif not line:
                if self._data:
                    events.append(self._dispatch())
                self._event = b""
                self._retry = None
            elif line[0] != 0x3A:  # a colon opens a comment
                self._set_field(line)
        return events

    def _too_much(self) -> EventTooLargeError:
        return EventTooLargeError(f"an event of the stream has more than {self._max_event} bytes of data")

    def _set_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":  # without a colon, so without a value
            self._data.append(value)
            self._data_bytes += 1
            if self._data_bytes > self._max_event:
                raise self._too_much()
        elif name == b"event":
            self._event = value
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) <= 18:
            self._retry = int(value)

    def _dispatch(self) -> SseEvent:
        data = self._data
        raw = data[0] if len(data) == 1 else b"\n".join(data)
        self._data = []
        self._data_bytes = 0
        kind = self._event.decode("utf-8", "replace") if self._event else "message"
        return SseEvent(kind, raw.decode("utf-8", "replace"), self._id, self._retry)
