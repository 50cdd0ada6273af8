"""Bytes, cut anywhere, into lines: in linear time and bounded memory, without any I/O."""

from dialoom.mcp.transport import Line, Oversize

MOST_KEPT = 4096


class LineBuffer:
    """Collects what a pipe brings. The same bytes give the same lines however they are cut.

    A line of more than `limit` bytes is not kept: `Oversize` takes its place. Empty lines are left out.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = min(limit, MOST_KEPT)
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail = b""

    def feed(self, chunk: bytes) -> list[Line]:
        """Return the lines that `chunk` completes."""
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        first, *more = chunk.split(b"\n")
        self._keep(first)
        lines = [self._take()]
        for piece in more[:-1]:
            self._keep(piece)
            lines.append(self._take())
        self._keep(more[-1])
        return [line for line in lines if line]

    def finish(self) -> list[Line]:
        """Return the last line, which no line break ended."""
        line = self._take()
        return [line] if line else []

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._size += len(piece)
        self._parts.append(piece)
        if self._size > self._limit:
            whole = b"".join((self._tail, *self._parts))
            self._head = self._head or whole[: self._kept]
            self._tail = whole[-self._kept :]
            self._parts.clear()

    def _take(self) -> Line:
        if self._head:
            line: Line = Oversize(self._head, self._tail.rstrip(b"\r"), self._size)
        else:
            line = b"".join(self._parts).rstrip(b"\r")
        self._parts.clear()
        self._size = 0
        self._head = self._tail = b""
        return line
