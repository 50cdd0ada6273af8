"""The AG-UI face: one call runs a conversation and streams its events, for clients that speak that protocol.

The thread is a conversation of this server, which keeps what was said: of the messages a client brings, only
a newest one of the user is taken. A client that calls while a run goes on joins it: it gets what was said,
the answer so far, and the rest. Leaving stops nothing.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, cast

import msgspec
from starlette.responses import Response

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import ConflictError, UsageError
from dialoom.conversation.conversation import Conversation
from dialoom.conversation.header import Header
from dialoom.conversation.store import ConversationNotFoundError
from dialoom.server.agui_stream import Fields, Followed, RunName, ThreadId, agui_response
from dialoom.server.hub import Event, EventHub, Subscription
from dialoom.server.problems import ProblemError
from dialoom.server.routes import AnyRoute, Call, Nothing, Route
from dialoom.server.run_tale import RunView, interrupted
from dialoom.server.shown import Shelf, Shown, ShownText
from dialoom.server.sse import MEDIA_TYPE
from dialoom.server.talks import Talks
from dialoom.server.watched import WatchedStore

MAX_SNAPSHOT = 200
_MAX_LOOKS = 20
"""So many times a run may add an entry while a client that joins it is told of those before."""


class AguiCall(msgspec.Struct, frozen=True):
    """A tool call that a client has."""

    id: str


class AguiMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A message as clients bring it."""

    id: Annotated[str, msgspec.Meta(max_length=200)]
    role: str
    content: object = None
    tool_calls: list[AguiCall] | None = None


class AguiText(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """A piece of a message: words."""

    text: str


class AguiAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """An answer to an interrupt: the card's id, and what its action takes."""

    interrupt_id: Annotated[str, msgspec.Meta(max_length=200)]
    payload: Fields = {}


class RunAgentInput(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a client asks for; state, tools and context of its own are not used here."""

    thread_id: ThreadId
    run_id: RunName
    messages: list[AguiMessage] = []
    resume: list[AguiAnswer] = []


class Agui:
    """Serves conversations over AG-UI."""

    def __init__(
        self, talks: Talks, store: WatchedStore, shelf: Shelf, hub: EventHub, *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._talks = talks
        self._store = store
        self._shelf = shelf
        self._hub = hub
        self._clock = clock

    def routes(self) -> list[AnyRoute]:
        return [
            Route(
                "POST", "/agui/dialog", self.run, body=RunAgentInput, media=MEDIA_TYPE,
                refusals=(409,), summary="Run a conversation over AG-UI, or join its run",
            ),
        ]  # fmt: skip

    async def run(self, call: Call[Nothing, RunAgentInput]) -> Response:
        asked = call.body
        words = _words(asked)
        if words.strip():
            await self._ensure(asked.thread_id)
        subscription = self._hub.subscribe([asked.thread_id])
        try:
            prelude, run_id = await self._begin(asked, words, subscription)
        except BaseException:
            subscription.close()
            raise
        followed = Followed(
            topic=asked.thread_id, run_id=run_id, name=asked.run_id, known=_known(asked, prelude)
        )
        return agui_response(self._hub, subscription, prelude, followed)

    async def _ensure(self, thread_id: str) -> None:
        """See that there is a conversation of this id."""
        try:
            await self._store.header(thread_id)
        except ConversationNotFoundError:
            now = self._clock.now()
            with suppress(ConflictError):  # another call of the client was first
                await self._store.create(Conversation(Header(id=thread_id, created=now, updated=now)))

    async def _begin(
        self, asked: RunAgentInput, words: str, subscription: Subscription
    ) -> tuple[list[Event], str]:
        """Start what is asked for, or join what goes on.

        Return what to say first, and the id of the run to follow then: "" for none, when it is over.
        """
        thread = asked.thread_id
        if asked.resume:
            for answer in asked.resume:
                action = "submit" if "values" in answer.payload else "decide"
                await self._talks.act(thread, answer.interrupt_id, action, answer.payload)
        elif (run_id := self._talks.runs.running(thread)) is not None:
            return await self._join(asked, run_id, subscription), run_id
        elif words.strip():
            await self._talks.send(thread, words, attachments=[], key=asked.messages[-1].id)
        elif (dialog := await self._talks.open(thread)).is_unfinished and not dialog.waiting:
            await self._talks.resume(thread)
        else:
            return await self._over(asked), ""
        current = self._talks.runs.newest(thread)
        if current is None:
            raise ProblemError(409, "nothing_to_run", "no run waits for this answer")
        if self._talks.runs.find(current).status == "running":
            return [], current
        return await self._over(asked), ""  # a message that was answered before

    async def _join(self, asked: RunAgentInput, run_id: str, subscription: Subscription) -> list[Event]:
        shown = await self._told(asked.thread_id)
        subscription.frames()  # what happened up to here is in what is said first
        said = _joined(asked, [*shown, *_under_way(self._talks.runs.find(run_id))])
        return [*said, *self._talks.runs.opened(run_id)]

    async def _over(self, asked: RunAgentInput) -> list[Event]:
        """Return what tells of a thread in which nothing goes on, to the end of its newest run."""
        said = _joined(asked, await self._told(asked.thread_id))
        dialog = await self._talks.open(asked.thread_id)
        names = {"threadId": asked.thread_id, "runId": asked.run_id}
        outcome = interrupted(dialog.waiting, dialog.waits_until) if dialog.waiting else {"type": "success"}
        return [*said, {"type": "RUN_FINISHED", **names, "outcome": outcome}]

    async def _told(self, thread: str) -> list[Fields]:
        """Return the newest messages of a thread, with all that a run under way has made entries of.

        What is an entry and not stored yet would be missing: it is no longer the run's to say.
        """
        dialog = await self._talks.open(thread)
        for _ in range(_MAX_LOOKS):
            await dialog.save()
            window, shown = await self._shelf.window(thread, before=None, limit=MAX_SNAPSHOT)
            if window.total >= dialog.message_count:
                return [message for each in shown for message in _messages(thread, each)]
        raise ProblemError(
            503, "busy", "this run is too fast to join; try again", headers={"Retry-After": "1"}
        )


def _known(asked: RunAgentInput, prelude: list[Event]) -> frozenset[str]:
    """Return the ids of the tool calls that a client has, by itself and by what it is told first."""
    brought = {call.id for message in asked.messages for call in message.tool_calls or ()}
    told = [message for event in prelude for message in cast("list[Fields]", event.get("messages", []))]
    return frozenset(brought | {call["id"] for message in told for call in message.get("toolCalls", ())})


def _words(asked: RunAgentInput) -> str:
    """Return what the user says now, "" for nothing. Raises `UsageError` for what is not text."""
    newest = asked.messages[-1] if asked.messages else None
    if newest is None or newest.role != "user":
        return ""
    match newest.content:
        case None:
            return ""
        case str():
            return newest.content
        case content:
            try:
                return "\n".join(each.text for each in msgspec.convert(content, list[AguiText]))
            except msgspec.ValidationError as error:
                raise UsageError("only text is taken here; upload files at /api/v1/files") from error


def _joined(asked: RunAgentInput, messages: list[Fields]) -> Iterator[Event]:
    """Yield what brings a client that joins late to where the thread is."""
    yield {"type": "RUN_STARTED", "threadId": asked.thread_id, "runId": asked.run_id}
    yield {"type": "MESSAGES_SNAPSHOT", "messages": messages}


def _under_way(run: RunView) -> Iterator[Fields]:
    """Yield the messages of which a run has said a part."""
    if run.reasoning:
        yield _thought(run.message_id, run.reasoning)
    if run.text:
        yield {"id": run.message_id, "role": "assistant", "content": run.text}


def _thought(message_id: str, reasoning: str) -> Fields:
    return {"id": f"{message_id}/reasoning", "role": "reasoning", "content": reasoning}


def _messages(thread: str, shown: Shown) -> Iterator[Fields]:
    """Yield what the protocol has in place of an entry; thoughts are messages of their own there."""
    name = f"{thread}/{shown.index}"
    if not isinstance(shown, ShownText):
        yield {"id": name, "role": "activity", "activityType": shown.type, "content": shown.card or {}}
        return
    if shown.reasoning:
        yield _thought(name, shown.reasoning)
    message: Fields = {"id": name, "role": shown.role, "content": shown.content}
    if shown.tool_call_id is not None:
        message["toolCallId"] = shown.tool_call_id
    if shown.tool_calls:
        message["toolCalls"] = [
            {"id": each.id, "type": "function", "function": {"name": each.name, "arguments": each.raw}}
            for each in shown.tool_calls
        ]
    yield message
