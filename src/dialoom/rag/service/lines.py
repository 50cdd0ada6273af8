"""Bytes become lines of bounded length. No input or output."""

import msgspec

MAX_LINE_BYTES = 1_048_576
_HEAD = 512


class TooLongLine(msgspec.Struct, frozen=True):
    """A line that was not kept; `head` is how it begins."""

    head: bytes


class LineSplitter:
    """Cuts what comes in at line feeds, whatever the pieces; a line over the bound is passed over."""

    def __init__(self, most: int = MAX_LINE_BYTES) -> None:
        self._most = most
        self._kept = bytearray()
        self._passing = False

    def feed(self, piece: bytes) -> list[bytes | TooLongLine]:
        """The lines that `piece` completes, without their ends; blank ones are left out."""
        lines: list[bytes | TooLongLine] = []
        *whole, rest = piece.split(b"\n")
        for part in whole:
            self._keep(part)
            lines += self.finish()
        self._keep(rest)
        return lines

    def finish(self) -> list[bytes | TooLongLine]:
        """What the end of the stream, or of a line, completes: one line or none."""
        line = bytes(self._kept)
        passing, self._passing = self._passing, False
        self._kept.clear()
        if passing:
            return [TooLongLine(line[:_HEAD])]
        return [line] if line.strip() else []

    def _keep(self, part: bytes) -> None:
        if self._passing:
            return
        self._kept += part
        if len(self._kept) > self._most:
            self._passing = True
            del self._kept[_HEAD:]
