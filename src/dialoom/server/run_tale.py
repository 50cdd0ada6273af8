"""One run as AG-UI events, and as what a page that joins late has to be told of it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias, assert_never

import msgspec

from dialoom.conversation.entries import Entry, TextEntry
from dialoom.conversation.header import to_rfc3339
from dialoom.dialog import (
    DialogEvent,
    MessageAppended,
    Noticed,
    RunFailed,
    RunFinished,
    RunStarted,
    StreamBegan,
    StreamDelta,
    StreamEnded,
    StreamReasoning,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
)
from dialoom.rag.renumber import CitationNumbers
from dialoom.server.hub import Event
from dialoom.server.numbered import Numbering
from dialoom.server.watched import custom

RunStatus: TypeAlias = Literal["running", "waiting", "finished", "failed", "cancelled"]


class RunCall(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A tool call of the round under way."""

    id: str
    name: str
    arguments: str = ""
    result: str | None = None
    is_error: bool = False
    started_at: str
    ended_at: str | None = None


class RunView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A run, with what it said and did that is no entry yet.

    `error` is why it failed, `code` the same for programs. `message_id` is what the events call the message
    under way, `sources` the passages that it cites so far.
    """

    id: str
    message_id: str
    conversation_id: str
    status: RunStatus
    started_at: str
    text: str
    sources: list[object]
    reasoning: str
    tool_calls: list[RunCall]
    waiting: list[str]
    code: str
    error: str


def interrupted(card_ids: Iterable[str], until: float | None) -> dict[str, object]:
    """Return how a run ended that waits for these cards, `until` a moment or for ever."""
    common = {"reason": "input_required", **({} if until is None else {"expiresAt": to_rfc3339(until)})}
    return {"type": "interrupt", "interrupts": [{"id": card_id, **common} for card_id in card_ids]}


class RunTale:
    """Takes the events of one run in their order; `now` gives the moment as text, `entry` a message.

    `numbering` gives, as a model begins to speak, the passages that it may cite, and how they are numbered;
    `until`, when a run waits, the moment at which it is given up.
    """

    def __init__(
        self,
        run_id: str,
        conversation_id: str,
        *,
        now: Callable[[], str],
        entry: Callable[[int], Entry],
        numbering: Callable[[], Numbering] = lambda: Numbering([]),
        until: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.run_id = run_id
        self.conversation_id = conversation_id
        self._now = now
        self._entry = entry
        self._numbering_of_next = numbering
        self._until = until
        self._numbering = Numbering([])
        self._numbers: CitationNumbers | None = None
        self._sources: list[object] = []
        self._started_at = now()
        self._status: RunStatus = "running"
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[str, RunCall] = {}
        self._waiting: tuple[str, ...] = ()
        self._code = self._error = ""
        self._round = 0
        self._open: set[str] = set()
        self._step = ""

    @property
    def status(self) -> RunStatus:
        return self._status

    @property
    def is_going(self) -> bool:
        """Whether it goes on, or waits for a person."""
        return self._status in {"running", "waiting"}

    def view(self) -> RunView:
        return RunView(
            id=self.run_id,
            message_id=self._message("TEXT"),
            conversation_id=self.conversation_id,
            status=self._status,
            started_at=self._started_at,
            text="".join(self._text),
            sources=self._sources,
            reasoning="".join(self._reasoning),
            tool_calls=list(self._calls.values()),
            waiting=list(self._waiting),
            code=self._code,
            error=self._error,
        )

    def opened(self) -> Iterator[Event]:
        """Yield the beginnings of what has no end yet: for who comes late, and has what was said of it."""
        if self._step:
            yield {"type": "STEP_STARTED", "stepName": self._step}
        yield from map(self._opened, sorted(self._open))

    def pass_on(self) -> None:
        """Know that another run goes on with what this one waited for, or instead of it."""
        if self._status == "waiting":
            self._status, self._waiting = "finished", ()

    def give_up(self) -> Iterator[Event]:
        """Yield what it is to those who follow that nobody waits for an answer of a person any more."""
        if self._status == "waiting":
            self._status, self._waiting = "cancelled", ()
            yield {
                "type": "RUN_FINISHED", **self._names(), "outcome": {"type": "cancelled"},
                "metadata": {"stopReason": "expired"},
            }  # fmt: skip

    def tell(self, event: DialogEvent) -> Iterator[Event]:
        """Yield what `event` is to those who follow."""
        match event:
            case RunStarted():
                yield {"type": "RUN_STARTED", **self._names()}
            case StreamBegan() | StreamDelta() | StreamReasoning() | StreamEnded():
                yield from self._on_words(event)
            case ToolStarted() | ToolProgressed() | ToolFinished():
                yield from self._on_tool(event)
            case MessageAppended(index=index):
                yield from self._settle(self._entry(index))
            case Noticed(code=code, message=message):
                yield custom("run.noticed", {"code": code, "message": message})
            case RunFinished():
                yield from self._finish(event)
            case RunFailed(code=code, message=message):
                self._status, self._code, self._error = "failed", code, message
                yield from self._close_texts()
                yield from self._leave()
                yield {"type": "RUN_ERROR", **self._names(), "code": code, "message": message}
            case _:
                assert_never(event)

    def _on_words(self, event: StreamBegan | StreamDelta | StreamReasoning | StreamEnded) -> Iterator[Event]:
        match event:
            case StreamBegan():
                yield from self._begin_round()
            case StreamDelta(text=text):
                yield from self._say(text if self._numbers is None else self._numbers.feed(text))
            case StreamReasoning(text=text):
                yield from self._think(text)
            case StreamEnded():
                yield from self._close_texts()
                yield from self._leave()
            case _:
                assert_never(event)

    def _begin_round(self) -> Iterator[Event]:
        """Begin to take an answer in; pieces of one that was not ended are void."""
        yield from self._close_texts()
        yield from self._leave()
        self._round += 1
        self._text, self._reasoning, self._sources = [], [], []
        self._numbering = self._numbering_of_next()
        self._numbers = self._numbering.begin()
        yield from self._enter("model")

    def _enter(self, step: str) -> Iterator[Event]:
        if step != self._step:
            yield from self._leave()
            self._step = step
            yield {"type": "STEP_STARTED", "stepName": step}

    def _leave(self) -> Iterator[Event]:
        if self._step:
            step, self._step = self._step, ""
            yield {"type": "STEP_FINISHED", "stepName": step}

    def _say(self, text: str) -> Iterator[Event]:
        if not text:
            return
        yield from self._cite()
        yield from self._close("REASONING")
        yield from self._begin_message("TEXT")
        self._text.append(text)
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": self._message("TEXT"), "delta": text}

    def _cite(self) -> Iterator[Event]:
        """Yield the passages behind new numbers, before the words that cite them."""
        order, told = self._numbers.order if self._numbers else [], len(self._sources)
        if len(order) > told:
            self._sources = self._numbering.cites(order)
            yield custom("run.cited", {"sources": self._sources[told:]})

    def _held(self) -> str:
        """Return what was held back because later words might have decided it."""
        return "" if self._numbers is None else self._numbers.close()

    def _think(self, text: str) -> Iterator[Event]:
        yield from self._begin_message("REASONING")
        self._reasoning.append(text)
        yield {
            "type": "REASONING_MESSAGE_CONTENT", "messageId": self._message("REASONING"), "delta": text,
        }  # fmt: skip

    def _begin_message(self, kind: str) -> Iterator[Event]:
        if kind not in self._open:
            self._open.add(kind)
            yield self._opened(kind)

    def _opened(self, kind: str) -> Event:
        role = "assistant" if kind == "TEXT" else "reasoning"
        return {"type": f"{kind}_MESSAGE_START", "messageId": self._message(kind), "role": role}

    def _close_texts(self) -> Iterator[Event]:
        yield from self._say(self._held())
        yield from self._close("REASONING")
        yield from self._close("TEXT")

    def _close(self, kind: str) -> Iterator[Event]:
        if kind in self._open:
            self._open.discard(kind)
            yield {"type": f"{kind}_MESSAGE_END", "messageId": self._message(kind)}

    def _on_tool(self, event: ToolStarted | ToolProgressed | ToolFinished) -> Iterator[Event]:
        match event:
            case ToolStarted(call_id=call_id, tool=tool):
                yield from self._enter("tools")
                call = self._calls.get(call_id) or RunCall(id=call_id, name=tool, started_at=self._now())
                self._calls[call_id] = call
                began: Event = {"type": "TOOL_CALL_START", "toolCallId": call_id, "toolCallName": tool}
                # of a run that goes on after an approval, the message that called is one of another run
                yield {**began, "parentMessageId": self._message("TEXT")} if self._round else began
                yield {"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": call.arguments}
                yield {"type": "TOOL_CALL_END", "toolCallId": call_id}
            case ToolProgressed(call_id=call_id, value=value):
                yield custom("tool.progress", {"toolCallId": call_id, "value": value})
            case ToolFinished(call_id=call_id, is_error=is_error):
                if call_id in self._calls:
                    ended = msgspec.structs.replace(
                        self._calls[call_id], is_error=is_error, ended_at=self._now()
                    )
                    self._calls[call_id] = ended
                yield custom("tool.finished", {"toolCallId": call_id, "isError": is_error})
            case _:
                assert_never(event)

    def _settle(self, entry: Entry) -> Iterator[Event]:
        """What became an entry is no longer the run's to show; a call's arguments are known from there."""
        if not isinstance(entry, TextEntry):
            return
        if entry.role == "assistant":
            yield from self._say(self._held())  # it is in the entry too
            self._text, self._reasoning, self._sources = [], [], []
            for call in entry.tool_calls:
                self._calls[call.id] = RunCall(
                    id=call.id, name=call.name, arguments=call.raw, started_at=self._now()
                )
        elif entry.role == "tool" and entry.tool_call_id is not None:
            self._calls.pop(entry.tool_call_id, None)
            yield {
                "type": "TOOL_CALL_RESULT", "messageId": f"{self.run_id}/{entry.tool_call_id}",
                "toolCallId": entry.tool_call_id, "content": entry.content, "role": "tool",
                "metadata": {"isError": entry.is_error},
            }  # fmt: skip

    def _finish(self, event: RunFinished) -> Iterator[Event]:
        yield from self._close_texts()
        yield from self._leave()
        self._text, self._reasoning, self._sources, self._calls = [], [], [], {}
        self._waiting = event.waiting
        outcome: dict[str, object]
        if event.stop_reason == "needs_approval":
            self._status = "waiting"
            outcome = interrupted(event.waiting, self._until())
        elif event.stop_reason == "cancelled":
            self._status, outcome = "cancelled", {"type": "cancelled"}
        else:
            self._status, outcome = "finished", {"type": "success"}
        yield {
            "type": "RUN_FINISHED", **self._names(), "outcome": outcome,
            "metadata": {"stopReason": event.stop_reason},
        }  # fmt: skip

    def _names(self) -> dict[str, object]:
        return {"threadId": self.conversation_id, "runId": self.run_id}

    def _message(self, kind: str) -> str:
        return f"{self.run_id}/{self._round}" + ("/reasoning" if kind == "REASONING" else "")
