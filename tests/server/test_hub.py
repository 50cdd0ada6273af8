"""One numbered sequence: followed, left, come back to, never told twice and never with a hole."""

import asyncio
import json
from contextlib import closing
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.server.hub import EVERYONE, EventHub, encode_event
from dialoom.testing.clock import settle


def events(frames: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(frame.split(b"data: ", 1)[1]) for frame in frames]


def values(frames: list[bytes]) -> list[Any]:
    return [each.get("value", each["type"]) for each in events(frames)]


def said(value: object) -> dict[str, object]:
    return {"type": "CUSTOM", "name": "said", "value": value}


async def test_an_event_is_one_frame_with_its_place() -> None:
    hub = EventHub(epoch="e1")
    follower = hub.subscribe(["a"])
    hub.publish("a", {"type": "TEXT", "text": "line\nbreak"}, runId="r")
    (frame,) = follower.frames()
    assert frame == (
        b"id: e1.1\n"
        b'data: {"type":"TEXT","text":"line\\nbreak",'
        b'"metadata":{"dialoom":{"conversation":"a","seq":1,"runId":"r"}}}\n\n'
    )
    assert (follower.frames(), hub.cursor) == ([], "e1.1")


async def test_each_gets_its_topics_and_what_is_for_everyone_in_order() -> None:
    hub = EventHub()
    both, one = hub.subscribe(["a", "b"]), hub.subscribe(["b"])
    for topic, value in (("a", 1), ("b", 2), (EVERYONE, 3), ("c", 4), ("a", 5)):
        hub.publish(topic, said(value))
    assert values(both.frames()) == [1, 2, 3, 5]
    assert values(one.frames()) == [2, 3]


async def test_one_who_comes_back_gets_what_was_missed_and_no_more() -> None:
    hub = EventHub()
    for value in range(4):
        hub.publish("a", said(value))
    assert values(hub.subscribe(["a"], after=f"{hub.epoch}.2").frames()) == [2, 3]
    assert values(hub.subscribe(["a"], after=hub.cursor).frames()) == []
    assert values(hub.subscribe(["a"]).frames()) == []


async def test_what_is_no_longer_there_is_answered_with_one_resync_for_each_topic() -> None:
    hub = EventHub(max_events=3)
    for value in range(5):
        hub.publish("a", said(value))
    late = hub.subscribe(["a"], after=f"{hub.epoch}.1")
    told = [(each["name"], each["metadata"]["dialoom"].get("conversation")) for each in events(late.frames())]
    assert told == [("resync", None), ("resync", "a")]
    assert late.frames() == []
    hub.publish("a", said("next"))
    assert values(late.frames()) == ["next"]
    assert values(hub.subscribe(["a"], after=f"{hub.epoch}.3").frames()) == [3, 4, "next"]


async def test_a_cursor_of_another_run_of_the_server_or_of_nowhere_starts_anew() -> None:
    hub = EventHub(epoch="e2")
    hub.publish("a", said(1))
    for cursor in ("e1.1", "e2.99", "e2.x", "e2.", "x", "e2.-1", "e2." + "9" * 30):
        assert {each["name"] for each in events(hub.subscribe(["a"], after=cursor).frames())} == {"resync"}


async def test_the_newest_are_kept_within_bytes_and_the_quietest_topic_goes_first() -> None:
    hub = EventHub(max_bytes=1_000, max_total=1_500)
    for value in range(30):
        hub.publish("a", said(f"{value} {'x' * 100}"))
    assert 0 < len(hub.collect(["a"], hub_floor(hub, "a"))[1]) < 10
    before = hub.cursor
    for value in range(10):
        hub.publish("b", said(f"{value} {'x' * 100}"))
    assert {each["name"] for each in events(hub.subscribe(["a"], after=f"{hub.epoch}.29").frames())} == {
        "resync"
    }
    # of a topic that is gone nothing is known, so who was there before is told to start anew
    assert values(hub.subscribe(["a"], after=hub.cursor).frames()) == []
    assert before != hub.cursor


def hub_floor(hub: EventHub, topic: str) -> int:
    """Return the smallest number from which a topic can be replayed."""
    return next(after for after in range(100) if "resync" not in str(events(hub.collect([topic], after)[1])))


async def test_whoever_leaves_is_told_nothing_more() -> None:
    hub = EventHub()
    follower = hub.subscribe(["a"])
    assert await follower.wait() == []  # the first wait looks at what there is
    waiting = asyncio.ensure_future(follower.wait())
    follower.close()
    follower.close()
    hub.publish("a", said(1))
    await settle()
    assert not waiting.done()
    waiting.cancel()


async def test_a_follower_is_woken_by_an_event_by_a_quiet_while_and_by_the_end() -> None:
    hub = EventHub()
    follower, restless = hub.subscribe(["a"]), hub.subscribe(["b"], quiet=0.01)
    async with asyncio.timeout(60):
        assert await follower.wait() == []
        waiting = asyncio.ensure_future(follower.wait())
        await settle()
        hub.publish("a", said(1))
        assert values(await waiting) == [1]
        assert [await restless.wait() for _ in range(3)] == [[], [], []]
        waiting = asyncio.ensure_future(follower.wait())
        await settle()
        hub.close()
        assert (await waiting, hub.closed) == ([], True)
    follower.close()
    restless.close()


async def test_what_happens_fast_wakes_a_follower_once_and_what_comes_after_a_pause_at_once() -> None:
    hub = EventHub(pace=0.01)
    follower, woken, late = hub.subscribe(["a"]), list[list[Any]](), asyncio.Event()

    async def follow() -> None:
        while not woken or woken[-1] != [99]:
            woken.append(values(await follower.wait()))
            if len(woken) == 3:
                late.set()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(follow())
        await settle()
        hub.publish("a", said(0))
        await settle()
        for value in range(1, 99):
            hub.publish("a", said(value))
        await late.wait()
        hub.publish("a", said(99))
    follower.close()
    assert woken == [[], [0], list(range(1, 99)), [99]]


async def test_what_waits_for_its_moment_is_told_when_the_server_ends() -> None:
    hub = EventHub(pace=3600)
    follower = hub.subscribe(["a"])
    assert await follower.wait() == []
    hub.publish("a", said(1))
    assert values(await follower.wait()) == [1]
    waiting = asyncio.ensure_future(follower.wait())
    hub.publish("a", said(2))
    await settle()
    assert not waiting.done()
    hub.close()
    assert values(await waiting) == [2]
    follower.close()


def test_half_a_character_never_reaches_the_wire() -> None:
    assert encode_event(said("\ud83d x \ud83d\ude00")) == (
        '{"type": "CUSTOM", "name": "said", "value": "\ufffd x 😀"}'.encode()
    )


@settings(max_examples=200, deadline=None)
@given(
    published=st.lists(st.sampled_from(["a", "b", EVERYONE]), max_size=40),
    stops=st.lists(st.integers(0, 40), max_size=6),
    limit=st.integers(1, 12),
)
def test_however_one_leaves_and_comes_back_nothing_is_missed_or_told_twice(
    published: list[str], stops: list[int], limit: int
) -> None:
    hub = EventHub(max_events=limit)
    seen: list[int] = []
    cursor, resynced = hub.cursor, 0
    for number, topic in enumerate(published, 1):
        hub.publish(topic, said(number))
        if number in stops:
            cursor, resynced = _catch_up(hub, cursor, seen, resynced)
    _catch_up(hub, cursor, seen, resynced)
    followed = [number for number, topic in enumerate(published, 1) if topic != "b"]
    assert seen == sorted(set(seen))
    assert set(seen) <= set(followed)
    if not any("resync" in str(each) for each in events(hub.collect(["a", EVERYONE], 0)[1])):
        assert seen == followed  # where nothing was dropped, nothing is missing


def _catch_up(hub: EventHub, cursor: str, seen: list[int], resynced: int) -> tuple[str, int]:
    async def read() -> list[bytes]:
        with closing(hub.subscribe(["a"], after=cursor)) as follower:
            return follower.frames()

    for event in events(asyncio.run(read())):
        if event["name"] == "resync":
            resynced += 1
        else:
            seen.append(event["value"])
    return hub.cursor, resynced
