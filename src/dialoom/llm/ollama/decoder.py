"""The events of one answer of `/api/chat`, line by line."""

import json
from collections.abc import Mapping

import msgspec

from dialoom.base.text import replace_surrogates
from dialoom.llm.events import (
    ReasoningDelta,
    StreamEvent,
    TextDelta,
)
from dialoom.llm.failures import WireError, read_wire_error
from dialoom.llm.json_values import count_of, fields_of, items_of, text_of
from dialoom.llm.messages import Message
from dialoom.llm.response import FinishReason
from dialoom.llm.tool_deltas import CallFragment
from dialoom.llm.usage import Usage
from dialoom.llm.wire.broken import AnswerFailedError, MalformedChunkError
from dialoom.llm.wire.draft import AnswerDraft
from dialoom.net.sse import SseEvent

_Fields = dict[str, object]
_FINISH: Mapping[str, FinishReason] = {"length": "length"}


class OllamaDecoder:
    """Turns lines into events and takes each into its draft. Calls come whole, several in one line."""

    def __init__(self, draft: AnswerDraft) -> None:
        self.draft = draft
        self.done = False
        self._reason = ""

    @property
    def finished(self) -> bool:
        """Whether the server has said that the answer is whole."""
        return self.done

    def feed(self, event: SseEvent) -> list[StreamEvent]:
        """Return what one line says. Raises `MalformedChunkError` and `AnswerFailedError`."""
        if self.done:
            return []
        line = _decode(event.data)
        if line.get("error"):
            raise AnswerFailedError(read_wire_error(line))
        events: list[StreamEvent] = []
        if not self.draft.started:
            events.append(self.draft.start(line.get("model")))
        self._read(fields_of(line.get("message")), events)
        if line.get("done") is True:
            self.done = True
            self._reason = text_of(line.get("done_reason"))
            usage = Usage(
                input_tokens=count_of(line.get("prompt_eval_count")),
                output_tokens=count_of(line.get("eval_count")),
            )
            self.draft.count(usage, events)
        return self.draft.take(events)

    def finish(self) -> list[StreamEvent]:
        """Return what the end completes, `ResponseCompleted` last. Raises `AnswerFailedError`."""
        if not self.draft.started:
            raise AnswerFailedError(WireError(message="the answer is empty"), "empty_response")
        rest = [
            *self._flush(cut=self._reason == "length"),
            *self.draft.prompt_warnings(remedy="a larger num_ctx"),
        ]
        return self.draft.finish(rest, _FINISH.get(self._reason, "stop"), raw=self._reason or None)

    def partial(self) -> Message | None:
        """Return what has arrived of an answer that will not be finished, None when nothing has."""
        return self.draft.partial(self._flush(cut=True))

    def _read(self, message: _Fields, events: list[StreamEvent]) -> None:
        text = text_of(message.get("content"))
        thought = text_of(message.get("thinking")) or text_of(
            message.get("reasoning_content")
        )  # as proxies do
        if thought:
            events.append(ReasoningDelta(replace_surrogates(thought)))
        if text:
            events.append(TextDelta(replace_surrogates(text)))
        for call in map(fields_of, items_of(message.get("tool_calls"))):
            events.extend(self.draft.calls.add([_fragment(call, len(self.draft.calls))]))

    def _flush(self, *, cut: bool) -> list[StreamEvent]:
        return list(self.draft.calls.finish(cut=cut))


def _fragment(call: _Fields, index: int) -> CallFragment:
    function = fields_of(call.get("function"))
    arguments = function.get("arguments")
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return CallFragment(
        index=index,
        id=replace_surrogates(text_of(call.get("id"))),
        name=replace_surrogates(text_of(function.get("name"))),
        arguments=replace_surrogates(raw),
    )


def _decode(line: str) -> _Fields:
    try:
        fields = fields_of(msgspec.json.decode(line))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise MalformedChunkError(str(error)) from error
    if not fields:
        raise MalformedChunkError("JSON that is no part of an answer")
    return fields
