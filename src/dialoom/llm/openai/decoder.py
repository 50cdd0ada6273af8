"""The events of one chat completion, from the chunks a server sends."""

import json
from collections.abc import Mapping

import msgspec

from dialoom.base.text import replace_surrogates
from dialoom.llm.errors import ErrorKind
from dialoom.llm.events import (
    ReasoningDelta,
    RefusalDelta,
    StreamEvent,
    TextDelta,
)
from dialoom.llm.failures import WireError, read_wire_error
from dialoom.llm.json_values import fields_of, items_of, text_of
from dialoom.llm.messages import Message
from dialoom.llm.openai.chunks import (
    WireChunk,
    WireDelta,
    decode_chunk,
    read_usage,
)
from dialoom.llm.profile import WireProfile
from dialoom.llm.response import FinishReason
from dialoom.llm.surrogates import SurrogateJoiner
from dialoom.llm.think_tags import ThinkTagSplitter
from dialoom.llm.tool_deltas import CallFragment
from dialoom.llm.wire.broken import AnswerFailedError, MalformedChunkError
from dialoom.llm.wire.draft import AnswerDraft, finish_warnings
from dialoom.net.sse import SseEvent

_FINISH: Mapping[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_calls": "stop",  # the calls themselves decide
    "function_call": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
    "safety": "content_filter",
}
_FAILED: Mapping[str, ErrorKind] = {
    "error": "server_error",
    "network_error": "server_error",
    "insufficient_system_resource": "overloaded",
    "abort": "incomplete_stream",
}
# no set: what a server sends for an index may have no hash
_FIRST = (None, 0, "0")


class ChatDecoder:
    """Turns chunks into events and takes each into its draft; what it has to guess, it warns about."""

    def __init__(self, draft: AnswerDraft, *, profile: WireProfile) -> None:
        self.draft = draft
        self.done = False
        self._profile = profile
        self._joiner = SurrogateJoiner()
        self._thought_joiner = SurrogateJoiner()
        self._splitter = ThinkTagSplitter(profile.think_tags) if profile.think_tags else None
        self._finish_reason: str | None = None
        self._spoke = False

    @property
    def finished(self) -> bool:
        """Whether the server has said that the answer is whole; counts may still follow."""
        return self.done or self._finish_reason is not None

    def feed(self, event: SseEvent) -> list[StreamEvent]:
        """Return what one event says. Raises `MalformedChunkError` and `AnswerFailedError`."""
        data = event.data.strip()
        if data == "[DONE]":
            self.done = True
        if self.done or not data:
            return []
        if event.event == "error":
            raise AnswerFailedError(_read_error_event(data))
        chunk = decode_chunk(data)
        if chunk.error:
            raise AnswerFailedError(read_wire_error(chunk.error))
        events: list[StreamEvent] = []
        if not self.draft.started and (chunk.choices or chunk.id):
            events.append(self.draft.start(chunk.model, chunk.id))
        usage = chunk.usage or (fields_of(chunk.x_groq).get("usage") if chunk.x_groq else None)
        if usage is not None:
            self.draft.count(read_usage(usage), events)
        if chunk.choices:
            self._choose(chunk, events)
        elif usage is None:
            _raise_if_error(data)
        return self.draft.take(events)

    def finish(self) -> list[StreamEvent]:
        """Return what the end completes, `ResponseCompleted` last. Raises `AnswerFailedError`."""
        self._raise_if_failed()
        reason = _FINISH.get((self._finish_reason or "stop").lower(), "stop")
        rest = [
            *self._flush(cut=reason == "length"),
            *finish_warnings(self._finish_reason, _FINISH),
            *self.draft.prompt_warnings(),
        ]
        return self.draft.finish(rest, reason, raw=self._finish_reason)

    def partial(self) -> Message | None:
        """Return what has arrived of an answer that will not be finished, None when nothing has."""
        return self.draft.partial(self._flush(cut=True))

    def _choose(self, chunk: WireChunk, events: list[StreamEvent]) -> None:
        for choice in chunk.choices or ():
            if choice is None or choice.index not in _FIRST:  # we ask for one answer only
                continue
            delta = choice.delta or choice.message
            if isinstance(delta, WireDelta):
                self._read(delta, events)
            elif delta is None and choice.text and not self._spoke:
                raise MalformedChunkError("text completions, which are no chat")
            if choice.finish_reason:
                self._finish_reason = text_of(choice.finish_reason) or self._finish_reason
            if choice.usage is not None:
                self.draft.count(read_usage(choice.usage), events)
            return

    def _read(self, delta: WireDelta, events: list[StreamEvent]) -> None:
        content = delta.content
        if content.__class__ is str:
            if content:
                self._say(content, events)
        elif content is not None:
            self._say_parts(content, events)
        if delta.reasoning_content is not None or delta.reasoning is not None:
            self._think(delta, events)
        if delta.refusal:
            self._refuse(text_of(delta.refusal), events)
        calls = items_of(delta.tool_calls)
        if not calls and delta.function_call:  # how calls were written before there were several
            calls = [{"function": delta.function_call}]
        if calls:
            events.extend(self.draft.calls.add([_fragment(fields_of(call)) for call in calls]))

    def _refuse(self, text: str, events: list[StreamEvent]) -> None:
        if text:
            self._spoke = True
            events.append(RefusalDelta(replace_surrogates(text)))

    def _say(self, text: str, events: list[StreamEvent]) -> None:
        self._spoke = True
        text = self._joiner.feed(text)
        if self._splitter is not None:
            events.extend(self._splitter.feed(text))
        elif text:
            events.append(TextDelta(text))

    def _say_parts(self, content: object, events: list[StreamEvent]) -> None:
        """Read content that is a list of typed parts, as some servers send it."""
        for part in map(fields_of, items_of(content)):
            text = text_of(part.get("text"))
            if text:
                self._say(text, events)
            for thought in map(fields_of, items_of(part.get("thinking"))):
                self._add_reasoning(text_of(thought.get("text")), events)

    def _think(self, delta: WireDelta, events: list[StreamEvent]) -> None:
        said = {"reasoning_content": delta.reasoning_content, "reasoning": delta.reasoning}
        words = (text_of(said.get(field)) for field in self._profile.reasoning_fields)
        self._add_reasoning(next((text for text in words if text), ""), events)

    def _add_reasoning(self, text: str, events: list[StreamEvent]) -> None:
        text = self._thought_joiner.feed(text)
        if text:
            self._spoke = True
            events.append(ReasoningDelta(text))

    def _flush(self, *, cut: bool) -> list[StreamEvent]:
        rest: list[StreamEvent] = []
        self._say_held(rest)
        rest.extend(self.draft.calls.finish(cut=cut))
        return rest

    def _say_held(self, events: list[StreamEvent]) -> None:
        held = self._joiner.finish()
        if self._splitter is not None:
            events.extend((*self._splitter.feed(held), *self._splitter.finish()))
        elif held:
            events.append(TextDelta(held))
        thought = self._thought_joiner.finish()
        if thought:
            events.append(ReasoningDelta(thought))

    def _raise_if_failed(self) -> None:
        failed = _FAILED.get(self._finish_reason or "")
        if failed is not None:
            words = WireError(message=f"the server gave up (finish reason {self._finish_reason!r})")
            raise AnswerFailedError(words, failed)
        if self._finish_reason is None and not self._spoke and not len(self.draft.calls):
            raise AnswerFailedError(WireError(message="the answer is empty"), "empty_response")


def _fragment(call: Mapping[str, object]) -> CallFragment:
    function = fields_of(call.get("function"))
    call_id = call.get("id")
    return CallFragment(
        index=_index(call.get("index")),
        id=replace_surrogates(text_of(call_id)) or (str(call_id) if isinstance(call_id, int) else ""),
        name=_name(text_of(function.get("name"))),
        arguments=_arguments_text(function.get("arguments")),
    )


def _name(value: str) -> str:
    """Return a tool's name without tokens of the model's own, which some servers leave behind it."""
    return replace_surrogates(value).partition("<|")[0]


def _index(value: object) -> int | None:
    """Return an index, which some servers write as text."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() and len(value) < 10 else None
    return value if isinstance(value, int) else None


def _arguments_text(arguments: object) -> str:
    """Return arguments as text; some servers send the object itself."""
    if arguments is None or isinstance(arguments, str):
        return replace_surrogates(arguments or "")
    return replace_surrogates(json.dumps(arguments, ensure_ascii=False, separators=(",", ":")))


def _raise_if_error(data: str) -> None:
    """Raise `AnswerFailedError` for an error that stands by itself, without a field `error` around it."""
    try:
        fields = fields_of(json.loads(data))
    except (ValueError, RecursionError):  # a number of thousands of digits somewhere: no words for people
        return
    if fields.get("object") == "error" or (text_of(fields.get("message")) and "code" in fields):
        raise AnswerFailedError(read_wire_error(fields))


def _read_error_event(data: str) -> WireError:
    try:
        chunk = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return WireError(message=data)
    return read_wire_error(chunk)
