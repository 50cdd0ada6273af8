"""What both AG-UI faces share: the parts of a request, and the stream that tells of one run."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import closing
from typing import Annotated, Any, TypeAlias

import msgspec
from starlette.responses import Response, StreamingResponse

from dialoom.server.hub import Event, EventHub, Subscription, encode_event
from dialoom.server.sse import MEDIA_TYPE, PING

Fields: TypeAlias = dict[str, Any]
ThreadId: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]
RunName: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
_ENDS = frozenset({"RUN_FINISHED", "RUN_ERROR"})
_CALL = frozenset({"TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"})


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """A run of one topic: `run_id` as we call it, "" for one that is over, and `name` as its client does.

    The tool calls whose ids are `known` the client has already; told again, their arguments would be doubled.
    """

    topic: str
    run_id: str
    name: str
    known: frozenset[str] = frozenset()


def agui_response(
    hub: EventHub, subscription: Subscription, first: Sequence[Event], followed: Followed
) -> Response:
    """Return the stream that says `first`, then what the run does until it ends. It stops no run."""
    lines = _lines(hub, subscription, first, followed)
    return StreamingResponse(lines, headers={"X-Accel-Buffering": "no"}, media_type=MEDIA_TYPE)


async def _lines(
    hub: EventHub, subscription: Subscription, first: Sequence[Event], followed: Followed
) -> AsyncGenerator[bytes]:
    with closing(subscription):
        for event in first:
            yield _data(event)
        while followed.run_id and not hub.closed:
            frames = await subscription.wait()
            if not frames:
                yield PING
            for frame in frames:
                event = _event_of(frame)
                about = event["metadata"]["dialoom"]
                of_run = about.get("runId", followed.run_id) == followed.run_id
                if about.get("conversation") != followed.topic or not of_run or _is_known(event, followed):
                    continue
                if event.get("name") == "resync":  # the end may be among what is no longer there
                    yield _data(_too_late(followed))
                    return
                if "runId" in event:
                    event["runId"] = followed.name
                yield _data(event)
                if event["type"] in _ENDS:
                    return


def _is_known(event: Event, followed: Followed) -> bool:
    return event["type"] in _CALL and event["toolCallId"] in followed.known


def _too_late(followed: Followed) -> Event:
    told = "this stream fell too far behind; call again to join the run"
    return {"type": "RUN_ERROR", "runId": followed.name, "code": "resync", "message": told}


def _event_of(frame: bytes) -> Fields:
    return msgspec.json.decode(frame[frame.index(b"data: ") + 6 :], type=Fields)


def _data(event: Event) -> bytes:
    return b"data: %s\n\n" % encode_event(event)
