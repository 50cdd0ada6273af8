"""The events of one answer of `/api/chat`, line by line."""

import json
from collections.abc import Callable, Collection, Mapping

import msgspec

from dialoom.base.text import replace_surrogates
from dialoom.llm.assembly import Assembly
from dialoom.llm.events import (
    ReasoningDelta,
    ResponseCompleted,
    ResponseStarted,
    StreamEvent,
    TextDelta,
    UsageUpdate,
    Warned,
)
from dialoom.llm.failures import WireError, read_wire_error
from dialoom.llm.json_values import count_of, fields_of, items_of, text_of
from dialoom.llm.messages import Message, Origin
from dialoom.llm.response import ChatResponse, FinishReason
from dialoom.llm.tool_deltas import CallFragment, ToolCallAssembler
from dialoom.llm.usage import Usage
from dialoom.llm.wire.broken import AnswerFailedError, MalformedChunkError
from dialoom.llm.wire.prompt_size import PromptSize
from dialoom.net.sse import SseEvent

_Fields = dict[str, object]
_FINISH: Mapping[str, FinishReason] = {"length": "length"}


class OllamaDecoder:
    """Turns lines into events and adds each to `assembly`. Calls come whole, several of them in one line."""

    def __init__(
        self,
        assembly: Assembly,
        origin: Origin,
        *,
        prompt: PromptSize,
        new_id: Callable[[], str],
        taken_ids: Collection[str] = (),
    ) -> None:
        self.done = False
        self.started = False
        self._assembly = assembly
        self._origin = origin
        self._prompt = prompt
        self._calls = ToolCallAssembler(new_id, taken_ids)
        self._model = ""
        self._reason = ""

    @property
    def model(self) -> str:
        """The model that answers, by its own word or by ours."""
        return self._model or self._origin.model

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
        if not self.started:
            self.started = True
            self._model = replace_surrogates(text_of(line.get("model")))
            events.append(ResponseStarted(model=self._model))
        self._read(fields_of(line.get("message")), events)
        if line.get("done") is True:
            self.done = True
            self._reason = text_of(line.get("done_reason"))
            usage = Usage(
                input_tokens=count_of(line.get("prompt_eval_count")),
                output_tokens=count_of(line.get("eval_count")),
            )
            if usage != Usage():
                events.append(UsageUpdate(usage))
        for each in events:
            self._assembly.add(each)
        return events

    def finish(self) -> list[StreamEvent]:
        """Return what the end completes, `ResponseCompleted` last. Raises `AnswerFailedError`."""
        if not self.started:
            raise AnswerFailedError(WireError(message="the answer is empty"), "empty_response")
        events = self._flush(cut=self._reason == "length")
        if self._prompt.was_cut(self._assembly.usage.input_tokens):
            said = "the server read less than was sent: it cut the prompt; give it a larger num_ctx"
            events.append(Warned(code="prompt_truncated_by_server", message=said))
            self._assembly.add(events[-1])
        message = self._message()
        reason = _FINISH.get(self._reason, "tool_calls" if message.tool_calls else "stop")
        response = ChatResponse(
            message=message,
            finish_reason=reason,
            raw_finish_reason=self._reason or None,
            usage=self._assembly.usage,
            model=self.model,
            warnings=tuple(self._assembly.warnings),
        )
        return [*events, ResponseCompleted(response)]

    def partial(self) -> Message | None:
        """Return what has arrived of an answer that will not be finished, None when nothing has."""
        self._flush(cut=True)
        message = self._message()
        return message if message.parts else None

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
            events.extend(self._calls.add([_fragment(call, len(self._calls))]))

    def _flush(self, *, cut: bool) -> list[StreamEvent]:
        events: list[StreamEvent] = list(self._calls.finish(cut=cut))
        for event in events:
            self._assembly.add(event)
        return events

    def _message(self) -> Message:
        return self._assembly.message(msgspec.structs.replace(self._origin, model=self.model))


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
