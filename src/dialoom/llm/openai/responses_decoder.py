"""The events of one answer on the Responses wire, tolerant of what servers leave out or say twice."""

import json
from collections.abc import Callable

import msgspec

from dialoom.base.text import replace_surrogates
from dialoom.llm.events import (
    OpaqueBlock,
    ReasoningDelta,
    RefusalDelta,
    StreamEvent,
    TextDelta,
)
from dialoom.llm.failures import read_wire_error
from dialoom.llm.json_values import count_of, fields_of, items_of, text_of
from dialoom.llm.messages import Message
from dialoom.llm.response import FinishReason
from dialoom.llm.surrogates import SurrogateJoiner
from dialoom.llm.tool_deltas import CallFragment
from dialoom.llm.usage import Usage
from dialoom.llm.wire.broken import AnswerFailedError, MalformedChunkError
from dialoom.llm.wire.draft import AnswerDraft
from dialoom.net.sse import SseEvent

_Fields = dict[str, object]


class ResponsesDecoder:
    """Turns the wire's events into ours and takes each into its draft.

    Items are told apart by their ids, since some servers give no indexes. What an item says when it is done
    counts only where its deltas did not come.
    """

    def __init__(self, draft: AnswerDraft) -> None:
        self.draft = draft
        self.done = False
        self._joiner = SurrogateJoiner()
        self._places: dict[str, int] = {}
        self._heard: set[str] = set()
        self._opened: dict[int | None, str] = {}
        self._status: str | None = None
        self._reason = ""
        self._readers: dict[str, Callable[[_Fields, list[StreamEvent]], None]] = {
            "response.created": self._read_start,
            "response.queued": self._read_start,
            "response.in_progress": self._read_start,
            "response.output_text.delta": self._read_text,
            "response.reasoning_text.delta": self._read_thought,
            "response.reasoning_summary_text.delta": self._read_thought,
            "response.reasoning_summary_part.added": self._read_next_thought,
            "response.refusal.delta": self._read_refusal,
            "response.function_call_arguments.delta": self._read_arguments,
            "response.output_item.added": self._read_opened,
            "response.output_item.done": self._read_closed,
            "response.completed": self._read_end,
            "response.incomplete": self._read_end,
            "response.failed": self._read_end,
            "error": self._read_error,
        }

    @property
    def finished(self) -> bool:
        """Whether the server has said that the answer is whole."""
        return self.done or self._status is not None

    def feed(self, event: SseEvent) -> list[StreamEvent]:
        """Return what one event says. Raises `MalformedChunkError` and `AnswerFailedError`."""
        data = event.data.strip()
        if data == "[DONE]":
            self.done = True
        if self.done or not data:
            return []
        fields = _decode(data)
        events: list[StreamEvent] = []
        self._readers.get(text_of(fields.get("type")), self._read_bare)(fields, events)
        return self.draft.take(events)

    def finish(self) -> list[StreamEvent]:
        """Return what the end completes, `ResponseCompleted` last."""
        reason = self._mapped_reason()
        rest = self._flush(cut=reason == "length")
        return self.draft.finish(rest, reason, raw=self._reason or self._status)

    def partial(self) -> Message | None:
        """Return what has arrived of an answer that will not be finished, None when nothing has."""
        return self.draft.partial(self._flush(cut=True))

    def _read_bare(self, fields: _Fields, events: list[StreamEvent]) -> None:
        """Read JSON without a type that we know: a whole answer, an error, or something new."""
        if fields.get("object") == "response":
            self._end(fields, events)
        elif fields.get("error") and "type" not in fields:
            raise AnswerFailedError(read_wire_error(fields))

    def _read_start(self, fields: _Fields, events: list[StreamEvent]) -> None:
        self._start(fields_of(fields.get("response")), events)

    def _read_text(self, fields: _Fields, events: list[StreamEvent]) -> None:
        self._heard.add(self._item_of(fields))
        self._say(text_of(fields.get("delta")), events)

    def _read_thought(self, fields: _Fields, events: list[StreamEvent]) -> None:
        self._heard.add(self._item_of(fields))
        self._think(text_of(fields.get("delta")), events)

    def _read_next_thought(self, fields: _Fields, events: list[StreamEvent]) -> None:
        if count_of(fields.get("summary_index")):
            self._think("\n\n", events)

    def _read_refusal(self, fields: _Fields, events: list[StreamEvent]) -> None:
        self._heard.add(self._item_of(fields))
        self._refuse(text_of(fields.get("delta")), events)

    def _read_arguments(self, fields: _Fields, events: list[StreamEvent]) -> None:
        self._argue(self._item_of(fields), {"arguments": fields.get("delta")}, events)

    def _read_opened(self, fields: _Fields, events: list[StreamEvent]) -> None:
        item = fields_of(fields.get("item"))
        for place in (None, count_of(fields.get("output_index"))):
            self._opened[place] = text_of(item.get("id"))
        if item.get("type") == "function_call":
            self._argue(text_of(item.get("id")), item, events)

    def _item_of(self, fields: _Fields) -> str:
        """Return the id of the item that a delta belongs to, by its word, its index, or its place."""
        place = count_of(fields.get("output_index"))
        return text_of(fields.get("item_id")) or self._opened.get(place) or self._opened.get(None, "")

    def _read_closed(self, fields: _Fields, events: list[StreamEvent]) -> None:
        self._close(fields_of(fields.get("item")), events)

    def _read_end(self, fields: _Fields, events: list[StreamEvent]) -> None:
        whole = fields_of(fields.get("response"))
        told = text_of(fields.get("type")).removeprefix("response.")
        self._end({"status": told, **whole}, events)

    def _read_error(self, fields: _Fields, _: list[StreamEvent]) -> None:
        raise AnswerFailedError(read_wire_error(fields.get("error") or fields))

    def _start(self, whole: _Fields, events: list[StreamEvent]) -> None:
        if self.draft.started:
            self.draft.rename(whole.get("model"))
        else:
            events.append(self.draft.start(whole.get("model"), whole.get("id")))

    def _close(self, item: _Fields, events: list[StreamEvent]) -> None:
        """Read an item that is done, as far as it was not heard piece by piece."""
        item_id = text_of(item.get("id"))
        match item.get("type"):
            case "function_call":
                heard = item_id in self._heard
                self._argue(item_id, {**item, "arguments": ""} if heard else item, events)
            case "message":
                if item_id not in self._heard:
                    for part in map(fields_of, items_of(item.get("content"))):
                        self._say(text_of(part.get("text")), events)
                        self._refuse(text_of(part.get("refusal")), events)
            case "reasoning":
                self._seal(item, events)
            case _:
                self._keep(item, events)
        self._heard.add(item_id)

    def _seal(self, item: _Fields, events: list[StreamEvent]) -> None:
        """Keep a thought that can go back: without its sealed content the server would not know it."""
        if text_of(item.get("id")) not in self._heard:
            for part in map(fields_of, (*items_of(item.get("summary")), *items_of(item.get("content")))):
                self._think(text_of(part.get("text")), events)
        if item.get("encrypted_content"):
            self._keep(item, events)

    def _keep(self, item: _Fields, events: list[StreamEvent]) -> None:
        block = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
        events.append(OpaqueBlock(provider=self.draft.origin.provider, block=replace_surrogates(block)))

    def _argue(self, item_id: str, item: _Fields, events: list[StreamEvent]) -> None:
        arguments = replace_surrogates(text_of(item.get("arguments")))
        if arguments:
            self._heard.add(item_id)
        fragment = CallFragment(
            index=self._places.setdefault(item_id, len(self._places)),
            id=replace_surrogates(text_of(item.get("call_id"))),
            name=replace_surrogates(text_of(item.get("name"))),
            arguments=arguments,
        )
        events.extend(self.draft.calls.add([fragment]))

    def _end(self, whole: _Fields, events: list[StreamEvent]) -> None:
        self._start(whole, events)
        for item in map(fields_of, items_of(whole.get("output"))):
            if text_of(item.get("id")) not in self._heard:
                self._close(item, events)
        status = text_of(whole.get("status"))
        if status == "failed" or whole.get("error"):
            raise AnswerFailedError(read_wire_error(whole.get("error") or "the server gave up"))
        self._status = status
        self._reason = text_of(fields_of(whole.get("incomplete_details")).get("reason"))
        self.draft.count(_read_usage(whole.get("usage")), events)

    def _say(self, text: str, events: list[StreamEvent]) -> None:
        text = self._joiner.feed(text)
        if text:
            events.append(TextDelta(text))

    def _think(self, text: str, events: list[StreamEvent]) -> None:
        if text:
            events.append(ReasoningDelta(replace_surrogates(text)))

    def _refuse(self, text: str, events: list[StreamEvent]) -> None:
        if text:
            events.append(RefusalDelta(replace_surrogates(text)))

    def _flush(self, *, cut: bool) -> list[StreamEvent]:
        held = self._joiner.finish()
        rest: list[StreamEvent] = [TextDelta(held)] if held else []
        rest.extend(self.draft.calls.finish(cut=cut))
        return rest

    def _mapped_reason(self) -> FinishReason:
        if self._reason == "content_filter":
            return "content_filter"
        return "length" if self._status == "incomplete" else "stop"


def _decode(data: str) -> _Fields:
    """Read one event. Halves of a character, escaped in two deltas, are let through as they are."""
    try:
        value: object = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise MalformedChunkError(str(error)) from error
    fields = fields_of(value)
    if not fields:
        raise MalformedChunkError("JSON that is no event")
    return fields


def _read_usage(value: object) -> Usage:
    usage = fields_of(value)
    return Usage(
        input_tokens=count_of(usage.get("input_tokens")),
        output_tokens=count_of(usage.get("output_tokens")),
        cache_read_tokens=count_of(fields_of(usage.get("input_tokens_details")).get("cached_tokens")),
        reasoning_tokens=count_of(fields_of(usage.get("output_tokens_details")).get("reasoning_tokens")),
    )
