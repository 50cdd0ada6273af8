"""Calls that follow what happens: one stream for a browser, or one conversation for a script."""

import re
from typing import Annotated

import msgspec
from starlette.responses import Response

from dialoom.conversation.store import ListedConversationStore
from dialoom.server.hub import EventHub, too_many
from dialoom.server.problems import ProblemError
from dialoom.server.routes import AnyRoute, Call, Nothing, Route
from dialoom.server.sse import MEDIA_TYPE, EventStream

MAX_FOLLOWED = 50
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_Cursor = Annotated[str, msgspec.Meta(max_length=60)]


class FollowQuery(msgspec.Struct, frozen=True):
    """Which conversations, by commas, and after which cursor; changes of all headers come in any case."""

    conversations: Annotated[str, msgspec.Meta(max_length=65 * MAX_FOLLOWED)] = ""
    after: _Cursor = ""


class AfterQuery(msgspec.Struct, frozen=True):
    """The cursor behind which to go on; without it, from now on."""

    after: _Cursor = ""


class Streams:
    """Serves the hub's events."""

    def __init__(self, hub: EventHub, store: ListedConversationStore) -> None:
        self._hub = hub
        self._store = store

    def routes(self) -> list[AnyRoute]:
        return [
            Route(
                "GET", "/api/v1/events", self.follow, query=FollowQuery, media=MEDIA_TYPE,
                headers=("Last-Event-ID",), summary="Follow conversations as server-sent events",
            ),
            Route(
                "GET", "/api/v1/conversations/{id}/events", self.follow_one, query=AfterQuery,
                media=MEDIA_TYPE, headers=("Last-Event-ID",), summary="Follow one conversation",
            ),
        ]  # fmt: skip

    async def follow(self, call: Call[FollowQuery, Nothing]) -> Response:
        names = [each for each in call.query.conversations.split(",") if each and each != "*"]
        if len(names) > MAX_FOLLOWED or not all(map(_ID.fullmatch, names)):
            raise ProblemError(422, "invalid_input", f"follow up to {MAX_FOLLOWED} ids, parted by commas")
        return self._stream(names, _cursor(call, call.query.after))

    async def follow_one(self, call: Call[AfterQuery, Nothing]) -> Response:
        conversation_id = call.id()
        await self._store.header(conversation_id)
        return self._stream([conversation_id], _cursor(call, call.query.after))

    def _stream(self, names: list[str], after: str) -> Response:
        if self._hub.closed:
            raise too_many()
        return EventStream(self._hub, self._hub.subscribe(names, after=after))


def _cursor(call: Call[AfterQuery, Nothing] | Call[FollowQuery, Nothing], after: str) -> str:
    # a browser that reconnects repeats the address and adds how far it has come since
    return call.header("last-event-id")[:60] or after
