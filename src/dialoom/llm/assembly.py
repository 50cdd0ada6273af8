"""The message an answer's events add up to, at any moment of its arrival."""

from collections.abc import Mapping
from typing import assert_never

from dialoom.llm.events import (
    FellBack,
    OpaqueBlock,
    ReasoningDelta,
    ReasoningEnded,
    RefusalDelta,
    ResponseCompleted,
    ResponseStarted,
    Retrying,
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
    OpaquePart,
    Origin,
    Part,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCall,
    ToolCallPart,
)
from dialoom.llm.usage import Usage

_Kind = type[TextPart | ReasoningPart | RefusalPart]
_PART_OF: Mapping[type[TextDelta | ReasoningDelta | RefusalDelta], _Kind] = {
    TextDelta: TextPart,
    ReasoningDelta: ReasoningPart,
    RefusalDelta: RefusalPart,
}


class _Words:
    """A part whose words still arrive."""

    def __init__(self, kind: _Kind) -> None:
        self.kind = kind
        self.pieces: list[str] = []
        self.signature: str | None = None

    def part(self) -> Part:
        text = "".join(self.pieces)
        return ReasoningPart(text, self.signature) if self.kind is ReasoningPart else self.kind(text)


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

    Words keep their order of arrival, pieces of one kind in a row become one part; calls come last. When
    the answer starts anew, so does its message.
    """

    def __init__(self) -> None:
        self._start_anew()

    def add(self, event: StreamEvent) -> None:
        """Take one event in."""
        match event:
            case TextDelta() | ReasoningDelta() | RefusalDelta():
                self._add_words(_PART_OF[type(event)], event.text)
            case ReasoningEnded():
                self._end_thought(event.signature)
            case ToolCallStarted() | ToolCallDelta() | ToolCallReady():
                self._add_call(event)
            case OpaqueBlock():
                self._open = None
                self._said.append(OpaquePart(event.provider, event.block))
            case UsageUpdate():
                self.usage = self.usage.updated(event.usage)
            case Warned():
                self.warnings.append(event.code)
            case Retrying() | FellBack():
                self._start_anew()
            case ResponseStarted() | ResponseCompleted():
                pass
            case _:
                assert_never(event)

    def message(self, origin: Origin | None = None) -> Message:
        """Return what has arrived so far; a call that is not whole is marked `truncated`: never run it."""
        said = [each.part() if isinstance(each, _Words) else each for each in self._said]
        calls = (self._calls[index] for index in sorted(self._calls))
        whole = (call.cut_off() if isinstance(call, _OpenCall) else call for call in calls)
        parts = (*said, *(ToolCallPart(call) for call in whole))
        usage = None if self.usage == Usage() else self.usage
        return Message(role="assistant", parts=parts, origin=origin, usage=usage)

    def _start_anew(self) -> None:
        self.usage = Usage()
        self.warnings: list[str] = []
        self._said: list[_Words | OpaquePart] = []
        self._open: _Words | None = None
        self._calls: dict[int, ToolCall | _OpenCall] = {}

    def _add_words(self, kind: _Kind, text: str) -> None:
        words = self._open
        if words is None or words.kind is not kind:
            words = self._open = _Words(kind)
            self._said.append(words)
        words.pieces.append(text)

    def _end_thought(self, signature: str | None) -> None:
        if signature is not None:
            self._add_words(ReasoningPart, "")  # a signed thought may have no words to show
            assert self._open is not None
            self._open.signature = signature
        self._open = None

    def _add_call(self, event: ToolCallStarted | ToolCallDelta | ToolCallReady) -> None:
        call = self._calls.get(event.index)
        match event:
            case ToolCallStarted():
                self._calls[event.index] = _OpenCall(event.id, event.name)
            case ToolCallReady():
                self._calls[event.index] = event.call
            case ToolCallDelta():
                if isinstance(call, _OpenCall):
                    call.pieces.append(event.arguments)
