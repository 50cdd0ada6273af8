"""The AG-UI face: one call runs a conversation and streams its events, for clients that speak that protocol.

The thread is a conversation of this server, which keeps what was said: of the messages a client brings, only
a newest one of the user is taken. A client that calls while a run goes on joins it: it gets what was said,
the answer so far, and the rest. Leaving stops nothing.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated

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
from dialoom.server.run_tale import RunView
from dialoom.server.shown import Shelf, Shown, ShownText
from dialoom.server.sse import MEDIA_TYPE
from dialoom.server.talks import Talks
from dialoom.server.watched import WatchedStore

MAX_SNAPSHOT = 200


class AguiMessage(msgspec.Struct, frozen=True):
    """A message as clients bring it."""

    id: Annotated[str, msgspec.Meta(max_length=200)]
    role: str
    content: object = None


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
        followed = Followed(topic=asked.thread_id, run_id=run_id, name=asked.run_id)
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
        elif (run_id := self._talks.running(thread)) is not None:
            return await self._join(asked, run_id, subscription), run_id
        elif words.strip():
            await self._talks.send(thread, words, attachments=[], key=asked.messages[-1].id)
        else:
            await self._talks.resume(thread)
        current = self._talks.newest(thread)
        if current is None:
            raise ProblemError(409, "nothing_to_run", "no run waits for this answer")
        if self._talks.find(current).status == "running":
            return [], current
        said = await self._join(asked, current, subscription)  # a message that was answered before
        names = {"threadId": thread, "runId": asked.run_id}
        return [*said, {"type": "RUN_FINISHED", **names, "outcome": {"type": "success"}}], ""

    async def _join(self, asked: RunAgentInput, run_id: str, subscription: Subscription) -> list[Event]:
        shown = (await self._shelf.window(asked.thread_id, before=None, limit=MAX_SNAPSHOT))[1]
        subscription.frames()  # what happened up to here is in what is said first
        return list(_joined(asked, shown, self._talks.find(run_id)))


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


def _joined(asked: RunAgentInput, shown: list[Shown], run: RunView) -> Iterator[Event]:
    """Yield what brings a client that joins late to where the run is."""
    yield {"type": "RUN_STARTED", "threadId": asked.thread_id, "runId": asked.run_id}
    messages = [_message(asked.thread_id, each) for each in shown]
    yield {"type": "MESSAGES_SNAPSHOT", "messages": messages}
    if run.text:
        yield {"type": "TEXT_MESSAGE_START", "messageId": run.message_id, "role": "assistant"}
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": run.message_id, "delta": run.text}


def _message(thread: str, shown: Shown) -> Fields:
    name = f"{thread}/{shown.index}"
    if not isinstance(shown, ShownText):
        return {"id": name, "role": "activity", "activityType": shown.type, "content": shown.card or {}}
    message: Fields = {"id": name, "role": shown.role, "content": shown.content}
    if shown.tool_call_id is not None:
        message["toolCallId"] = shown.tool_call_id
    if shown.tool_calls:
        message["toolCalls"] = [
            {"id": each.id, "type": "function", "function": {"name": each.name, "arguments": each.raw}}
            for each in shown.tool_calls
        ]
    return message
