"""The events of one answer, from what a server of the Messages wire sends."""

from collections.abc import Mapping

import msgspec

from dialoom.base.text import replace_surrogates
from dialoom.llm.anthropic.blocks import Block
from dialoom.llm.anthropic.wire import (
    WireDelta,
    WireEvent,
    WireMessage,
    decode_event,
    read_counts,
    whole_usage,
)
from dialoom.llm.events import (
    OpaqueBlock,
    ReasoningDelta,
    ReasoningEnded,
    StreamEvent,
    TextDelta,
)
from dialoom.llm.failures import WireError, read_error_body
from dialoom.llm.json_values import text_of
from dialoom.llm.messages import Message
from dialoom.llm.response import FinishReason
from dialoom.llm.surrogates import SurrogateJoiner
from dialoom.llm.tool_deltas import CallFragment
from dialoom.llm.wire.broken import AnswerFailedError
from dialoom.llm.wire.draft import AnswerDraft, finish_warnings
from dialoom.net.sse import SseEvent

_FINISH: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "stop": "stop",
    "tool_use": "stop",  # the calls themselves decide
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "pause_turn": "pause",
}
# no set: what a server sends for a type may have no hash
_OF_TEXT = ("text_delta", None)


class MessageDecoder:
    """Turns events of the wire into ours and takes each into its draft; unknown ones are passed over."""

    def __init__(self, draft: AnswerDraft) -> None:
        self.draft = draft
        self.done = False
        self._joiner = SurrogateJoiner()
        self._thought_joiner = SurrogateJoiner()
        self._blocks: dict[int, Block] = {}
        self._counts: dict[str, int] = {}
        self._stop_reason: str | None = None
        self._spoke = False

    @property
    def finished(self) -> bool:
        """Whether the server has said that the answer is whole."""
        return self.done or self._stop_reason is not None

    def feed(self, event: SseEvent) -> list[StreamEvent]:
        """Return what one event says. Raises `MalformedChunkError` and `AnswerFailedError`."""
        data = event.data.strip()
        if self.done or not data or data == "[DONE]":
            return []
        if event.event == "error":
            raise AnswerFailedError(read_error_body(data.encode("utf-8", "replace")))
        wire = decode_event(data)
        if wire.error or wire.type == "error":
            raise AnswerFailedError(read_error_body(data.encode("utf-8", "replace")))
        events: list[StreamEvent] = []
        self._take(text_of(wire.type) or event.event, wire, events)
        return self.draft.take(events)

    def finish(self) -> list[StreamEvent]:
        """Return what the end completes, `ResponseCompleted` last. Raises `AnswerFailedError`."""
        if self._stop_reason is None and not self._spoke:
            raise AnswerFailedError(WireError(message="the answer is empty"), "empty_response")
        reason = self._mapped_reason()
        rest = [
            *self._flush(cut=reason == "length"),
            *finish_warnings(self._stop_reason, _FINISH),
            *self.draft.prompt_warnings(),
        ]
        return self.draft.finish(rest, reason, raw=self._stop_reason)

    def partial(self) -> Message | None:
        """Return what has arrived of an answer that will not be finished, None when nothing has."""
        self._blocks = {at: block for at, block in self._blocks.items() if block.is_call}
        return self.draft.partial(self._flush(cut=True))

    def _take(self, kind: str, wire: WireEvent, events: list[StreamEvent]) -> None:
        match kind:
            case "content_block_delta" if isinstance(wire.delta, WireDelta):
                self._grow(_index_of(wire), wire.delta, events)
            case "content_block_start":
                self._start(wire.message, events)
                self._open(_index_of(wire), wire.content_block, events)
            case "content_block_stop":
                self._close(_index_of(wire), events)
            case "message_start":
                self._start(wire.message, events)
            case "message_delta":
                self._count(wire.usage, events)
                self._stop_reason = _stop_reason_of(wire.delta) or self._stop_reason
            case "message_stop":
                self.done = self.draft.started
            case "message" if wire.content is not None:
                self._take_whole(wire, events)
            case _:
                pass  # `ping`, and whatever later versions add

    def _take_whole(self, wire: WireMessage, events: list[StreamEvent]) -> None:
        self._start(wire, events)
        self._stop_reason = text_of(wire.stop_reason) or None
        cut = self._mapped_reason() == "length"
        blocks = list(map(Block, wire.content or ()))
        for at, block in enumerate(blocks):
            self._open_block(at, block, events)
            if cut and block is blocks[-1]:
                block.given_input = ""  # which arguments of a cut call are whole nobody can tell
            self._close(at, events)
        self.done = True

    def _start(self, message: object, events: list[StreamEvent]) -> None:
        if self.draft.started:
            return
        if not isinstance(message, WireMessage):
            events.append(self.draft.start(None))
            return
        events.append(self.draft.start(message.model, message.id))
        self._count(message.usage, events)

    def _count(self, reported: object, events: list[StreamEvent]) -> None:
        for name, count in read_counts(reported).items():
            if count or name not in self._counts:  # totals only grow: a later zero is a placeholder
                self._counts[name] = count
        self.draft.count(whole_usage(self._counts), events)

    def _open(self, at: int, raw: msgspec.Raw, events: list[StreamEvent]) -> None:
        self._close(at, events)
        self._open_block(at, Block(raw), events)

    def _open_block(self, at: int, block: Block, events: list[StreamEvent]) -> None:
        self._blocks[at] = block
        if block.is_call:
            fragment = CallFragment(
                index=at,
                id=replace_surrogates(text_of(block.fields.get("id"))),
                name=replace_surrogates(text_of(block.fields.get("name"))),
            )
            events.extend(self.draft.calls.add([fragment]))
            self._spoke = True
        elif block.kind == "text":
            self._say(text_of(block.fields.get("text")), events)
        elif block.kind == "thinking":
            self._think(text_of(block.fields.get("thinking")), events)

    def _grow(self, at: int, delta: WireDelta, events: list[StreamEvent]) -> None:
        if delta.text.__class__ is str and delta.type in _OF_TEXT:
            self._start(None, events)
            self._say(delta.text, events)
            return
        block = self._blocks.get(at)
        if isinstance(delta.thinking, str):
            self._think(delta.thinking, events)
        elif block is not None and block.is_call:
            block.given_input = ""
            pieces = replace_surrogates(text_of(delta.partial_json))
            events.extend(self.draft.calls.add([CallFragment(index=at, arguments=pieces)]))
        elif block is not None:
            block.grow(delta)

    def _close(self, at: int, events: list[StreamEvent]) -> None:
        block = self._blocks.pop(at, None)
        if block is None:
            return
        self._say_held(events)
        if block.is_call:
            events.extend(self.draft.calls.add([CallFragment(index=at, arguments=block.given_input)]))
        elif block.kind == "thinking":
            events.append(ReasoningEnded(block.signature or None))
            self._spoke = True
        elif block.kind != "text":
            exact = block.exact_text()
            if exact is not None:
                events.append(OpaqueBlock(provider=self.draft.origin.provider, block=exact))
                self._spoke = True

    def _say(self, text: str, events: list[StreamEvent]) -> None:
        text = self._joiner.feed(text)
        if text:
            self._spoke = True
            events.append(TextDelta(text))

    def _think(self, text: str, events: list[StreamEvent]) -> None:
        text = self._thought_joiner.feed(text)
        if text:
            self._spoke = True
            events.append(ReasoningDelta(text))

    def _say_held(self, events: list[StreamEvent]) -> None:
        thought, words = self._thought_joiner.finish(), self._joiner.finish()
        if thought:
            events.append(ReasoningDelta(thought))
        if words:
            events.append(TextDelta(words))

    def _flush(self, *, cut: bool) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for at in tuple(self._blocks):
            self._close(at, events)
        self._say_held(events)
        events.extend(self.draft.calls.finish(cut=cut))
        return events

    def _mapped_reason(self) -> FinishReason:
        return _FINISH.get((self._stop_reason or "end_turn").lower(), "stop")


def _index_of(wire: WireEvent) -> int:
    return wire.index if isinstance(wire.index, int) else 0


def _stop_reason_of(delta: object) -> str:
    return text_of(delta.stop_reason) if isinstance(delta, WireDelta) else ""
