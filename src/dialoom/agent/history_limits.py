"""How much of its history an agent's model gets. What was said stays whole; only the view is cut.

Exports for `dialoom.agent`: `HistoryLimits`, `trim`.
"""

from collections.abc import Sequence

import msgspec

from dialoom.llm.files import FilePart
from dialoom.llm.messages import Message, Part, TextPart, ToolResultPart
from dialoom.llm.trim import Bounds, TurnWindow, refuse_below_one


class HistoryLimits(Bounds, frozen=True, kw_only=True):
    """The most a model gets: `turns`, `messages`, `characters`, `tokens`, `files`, `file_bytes`.

    None is no limit. `files` are pictures, recordings and documents, of people and of tools. `count_tokens`
    gives the tokens of a message; without it they are estimated, rather too many. Raises `UsageError` on a
    limit that is no whole number from 1 on.
    """

    files: int | None = None
    file_bytes: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_below_one(self, ("files", "file_bytes"))

    def window(self) -> "HistoryWindow":
        """Return what fits a growing history into these limits at a cost that does not grow with it."""
        return HistoryWindow(self)


class HistoryWindow:
    """Fits a growing history into limits: the oldest files become words, then whole turns are left out."""

    def __init__(self, limits: HistoryLimits) -> None:
        self._limits = limits
        self._turns = TurnWindow(limits)

    def fit(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the view of `messages`; of a history that has grown since, only what is new is measured.

        When a file goes out that was in the view before, all is measured again.
        """
        if self._limits.files is None and self._limits.file_bytes is None:
            return self._turns.fit(messages)
        room = _Room(self._limits)
        return self._turns.fit([room.fit(message) for message in reversed(messages)][::-1])


def trim(messages: Sequence[Message], limits: HistoryLimits) -> tuple[Message, ...]:
    """Return the view of `messages` within `limits`.

    Of the files the newest stay, wherever they are; each older one becomes a line that says what it was. Then
    whole turns are left out, oldest first. System messages, messages with a `mark` and the newest turn stay
    even when they alone are more than the limits; no call is parted from its result.
    """
    return limits.window().fit(messages)


class _Room:
    """What room is left for files, asked from the newest to the oldest: behind one that is out all are."""

    def __init__(self, limits: HistoryLimits) -> None:
        self._files = limits.files
        self._bytes = limits.file_bytes
        self._is_full = False

    def fit(self, message: Message) -> Message:
        """Return `message` with the files there is room for."""
        if not message.files:
            return message
        parts = [self._part(part) for part in reversed(message.parts)][::-1]
        return msgspec.structs.replace(message, parts=tuple(parts))

    def _part(self, part: Part) -> Part:
        match part:
            case FilePart():
                return part if self._takes(part) else TextPart(f"{_left_out(part)}\n")
            case ToolResultPart(files=files) if files:
                kept = tuple([file for file in reversed(files) if self._takes(file)][::-1])
                lines = map(_left_out, files[: len(files) - len(kept)])
                return msgspec.structs.replace(part, content="\n".join((part.content, *lines)), files=kept)
            case _:
                return part

    def _takes(self, file: FilePart) -> bool:
        files = None if self._files is None else self._files - 1
        size = None if self._bytes is None else self._bytes - len(file.data)
        self._is_full = self._is_full or min(files or 0, size or 0) < 0
        if not self._is_full:
            self._files, self._bytes = files, size
        return not self._is_full


def _left_out(file: FilePart) -> str:
    return f"[{file.told}: left out, there are newer files]"
