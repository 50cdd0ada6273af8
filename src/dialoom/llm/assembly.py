"""The message an answer's events add up to, at any moment of its arrival."""

from typing import assert_never

from dialoom.llm.events import (
    ReasoningDelta,
    RefusalDelta,
    ResponseCompleted,
    ResponseStarted,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    ToolCallReady,
    ToolCallStarted,
    UsageUpdate,
    Warned,
)
from dialoom.llm.messages import (
    Message,
    Origin,
    Part,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCall,
    ToolCallPart,
)
from dialoom.llm.usage import Usage

_Words = type[TextPart | ReasoningPart | RefusalPart]


class _OpenCall:
    """A call whose arguments still arrive."""

    def __init__(self, call_id: str, name: str) -> None:
        self.id = call_id
        self.name = name
        self.pieces: list[str] = []

    def cut_off(self) -> ToolCall:
        return ToolCall(id=self.id, name=self.name, raw="".join(self.pieces), problem="truncated")


class Assembly:
    """Adds up events.

    Words keep their order of arrival, pieces of one kind in a row become one part; calls come last.
    """

    def __init__(self) -> None:
        self.usage = Usage()
        self.warnings: list[str] = []
        self._words: list[tuple[_Words, list[str]]] = []
        self._kind: _Words | None = None
        self._calls: dict[int, ToolCall | _OpenCall] = {}

    def add(self, event: StreamEvent) -> None:
        """Take one event in."""
        match event:
            case TextDelta():
                self._add_words(TextPart, event.text)
            case ReasoningDelta():
                self._add_words(ReasoningPart, event.text)
            case RefusalDelta():
                self._add_words(RefusalPart, event.text)
            case ToolCallStarted():
                self._calls[event.index] = _OpenCall(event.id, event.name)
            case ToolCallDelta():
                self._add_arguments(event)
            case ToolCallReady():
                self._calls[event.index] = event.call
            case UsageUpdate():
                self.usage = self.usage.updated(event.usage)
            case Warned():
                self.warnings.append(event.code)
            case ResponseStarted() | ResponseCompleted():
                pass
            case _:
                assert_never(event)

    def message(self, origin: Origin | None = None) -> Message:
        """Return what has arrived so far; a call that is not whole is marked `truncated`: never run it."""
        words: list[Part] = [kind("".join(pieces)) for kind, pieces in self._words]
        calls = (self._calls[index] for index in sorted(self._calls))
        whole = (call.cut_off() if isinstance(call, _OpenCall) else call for call in calls)
        parts = (*words, *(ToolCallPart(call) for call in whole))
        usage = None if self.usage == Usage() else self.usage
        return Message(role="assistant", parts=parts, origin=origin, usage=usage)

    def _add_words(self, kind: _Words, text: str) -> None:
        if kind is not self._kind:
            self._kind = kind
            self._words.append((kind, []))
        self._words[-1][1].append(text)

    def _add_arguments(self, delta: ToolCallDelta) -> None:
        call = self._calls.get(delta.index)
        if isinstance(call, _OpenCall):
            call.pieces.append(delta.arguments)
