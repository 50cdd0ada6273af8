"""What happens, as one numbered sequence that any number of pages follow, leave and come back to.

Numbers count over all topics of one `epoch`, which is one run of the server. A page says after which number
it wants to go on; what is no longer there, or is of another epoch, is answered with one `resync` event: throw
away what you have and load it again. Replaying and following are one loop under one cursor, so nothing is
missed or told twice between them.
"""

import asyncio
import json
import secrets
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, cast

import msgspec

from dialoom.base.text import replace_surrogates
from dialoom.server.problems import ProblemError

MAX_EVENTS = 5_000
MAX_BYTES = 8 * 1024 * 1024
MAX_TOTAL = 64 * 1024 * 1024
MAX_FOLLOWERS = 1_000
QUIET_SECONDS = 15.0
PACE_SECONDS = 0.01
"""What happens within so long of what was told goes out with it, in one piece."""
EVERYONE = ""
"""The topic that every subscription follows."""

Event: TypeAlias = Mapping[str, object]


class EventHub:
    """Keeps the newest events of each topic and wakes who follows them. For one event loop.

    The first event after a pause wakes them at once; of those that come fast after it, all that came in 10 ms
    wake them together. A topic keeps 5,000 events or 8 MiB, all together 64 MiB; the topic that was quiet
    longest goes first.
    """

    def __init__(
        self, *, epoch: str = "", max_events: int = MAX_EVENTS, max_bytes: int = MAX_BYTES,
        max_total: int = MAX_TOTAL, max_followers: int = MAX_FOLLOWERS, pace: float = PACE_SECONDS,
    ) -> None:  # fmt: skip
        self.epoch = epoch or secrets.token_hex(4)
        self.closed = False
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._max_total = max_total
        self._max_followers = max_followers
        self._seq = 0
        self._total = 0
        self._floor = 0  # nothing up to here is known of topics that are gone
        self._topics: OrderedDict[str, _Topic] = OrderedDict()
        self._followers: dict[str, set[Subscription]] = {}
        self._pace = _Pace(pace)

    @property
    def followers(self) -> int:
        """Return how many follow now."""
        return len(self._followers.get(EVERYONE, ()))

    @property
    def cursor(self) -> str:
        """Return the place behind everything so far, as `id` of the events names it."""
        return f"{self.epoch}.{self._seq}"

    def publish(self, topic: str, event: Event, **about: object) -> int:
        """Tell everybody who follows `topic`; return the event's number.

        `about` stands in the event's metadata, beside the topic, which is the conversation, and the number.
        """
        self._seq += 1
        kept = self._topics.get(topic)
        if kept is None:
            kept = self._topics[topic] = _Topic(self._floor)
        self._topics.move_to_end(topic)
        frame = self._frame(self._seq, topic, event, about)
        kept.add(self._seq, frame)
        self._total += len(frame)
        while len(kept.frames) > self._max_events or kept.size > self._max_bytes:
            self._total -= kept.drop()
        while self._total > self._max_total and len(self._topics) > 1:
            _, gone = self._topics.popitem(last=False)
            self._total -= gone.size
            self._floor = max(self._floor, gone.newest)
        if followers := self._followers.get(topic):
            self._pace.wake(followers)
        return self._seq

    def subscribe(
        self, topics: Iterable[str], *, after: str = "", quiet: float = QUIET_SECONDS
    ) -> "Subscription":
        """Follow `topics`, and what is for everyone; from now on, or from behind the cursor `after`.

        After `quiet` seconds at the most its `wait` returns, though nothing happened. Raises `ProblemError`
        when as many follow as may.
        """
        if self.followers >= self._max_followers:
            raise too_many()
        followed = (EVERYONE, *dict.fromkeys(topics))
        place = self._seq if not after else self._parse(after)
        subscription = Subscription(self, followed, place, quiet=quiet)
        for topic in followed:
            self._followers.setdefault(topic, set()).add(subscription)
        return subscription

    def close(self) -> None:
        """End all subscriptions, so that their connections can be closed in peace."""
        self.closed = True
        for followers in self._followers.values():
            for follower in followers:
                follower.wake()

    def collect(self, topics: Sequence[str], after: int) -> tuple[int, list[bytes]]:
        """Return the newest number and the frames behind `after`, or those that say to start anew."""
        found: list[tuple[int, bytes]] = []
        for topic in topics:
            kept = self._topics.get(topic)
            if after < (self._floor if kept is None else kept.floor):
                return self._seq, [self._frame(self._seq, each, _RESYNC, {}) for each in topics]
            if kept is not None and kept.newest > after:
                found += kept.behind(after)
        if len(found) > 1:
            found.sort()
        return self._seq, [frame for _, frame in found]

    def leave(self, subscription: "Subscription") -> None:
        """Forget a subscription; more than once is no error."""
        for topic in subscription.topics:
            followers = self._followers.get(topic, set())
            followers.discard(subscription)
            if not followers:
                self._followers.pop(topic, None)

    def _frame(self, seq: int, topic: str, event: Event, about: Mapping[str, object]) -> bytes:
        # what the protocol of the events has no field for stands with our own: its clients take out the rest
        more = cast("Mapping[str, object]", event.get("metadata", {}))
        ours = {"seq": seq, **about, **more}
        line = encode_event(
            {**event, "metadata": {"dialoom": {"conversation": topic, **ours} if topic else ours}}
        )
        return b"id: %s.%d\ndata: %s\n\n" % (self.epoch.encode(), seq, line)

    def _parse(self, cursor: str) -> int:
        """Return the number of a cursor; -1, which is before all, when it is of another epoch."""
        epoch, _, number = cursor.partition(".")
        if epoch != self.epoch or not (number.isascii() and number.isdigit() and len(number) < 16):
            return -1
        return int(number) if int(number) <= self._seq else -1


def too_many() -> ProblemError:
    """Return the refusal of a stream or a connection beyond those that may be open."""
    return ProblemError(
        503,
        "too_many_streams",
        "as many connections are open as may be; close a page, or try again in a second",
        headers={"Retry-After": "1"},
    )


_RESYNC: Event = {"type": "CUSTOM", "name": "resync", "value": {}}


class Subscription:
    """Somebody's place in the sequence; one task waits in it. Close it, or its timer keeps it alive."""

    def __init__(self, hub: EventHub, topics: tuple[str, ...], after: int, *, quiet: float) -> None:
        self.topics = topics
        self._hub = hub
        self._after = after
        self._quiet = quiet
        self._woken = True  # there may be something already
        self._loop = asyncio.get_running_loop()
        # an asyncio.Event would do too, and cost a fifth more for each event
        self._waiter: asyncio.Future[None] | None = None
        # one timer that goes on, because one for each wait would cost more than the event
        self._timer = self._loop.call_later(quiet, self._tick)

    def wake(self) -> None:
        self._woken = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def frames(self) -> list[bytes]:
        """Return the frames of all that happened since the last call, at once."""
        self._woken = False
        self._after, frames = self._hub.collect(self.topics, self._after)
        return frames

    async def wait(self) -> list[bytes]:
        """Return the next frames; none when it was quiet for a while, or the hub has closed."""
        if not self._woken:
            self._waiter = self._loop.create_future()
            await self._waiter
        return self.frames()

    def close(self) -> None:
        self._timer.cancel()
        self._hub.leave(self)

    def _tick(self) -> None:
        self.wake()
        self._timer = self._loop.call_later(self._quiet, self._tick)


class _Pace:
    """Wakes who follows, all together and once in so many seconds: each time costs each of them a write."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = 0.0
        self._late: set[Subscription] = set()

    def wake(self, followers: Iterable[Subscription]) -> None:
        if self._late:  # they are woken soon, and these with them
            self._late.update(followers)
            return
        loop = asyncio.get_running_loop()
        if loop.time() < self._next:
            self._late.update(followers)
            loop.call_at(self._next, self._wake_late)
            return
        self._next = loop.time() + self._seconds
        for follower in followers:
            follower.wake()

    def _wake_late(self) -> None:
        late, self._late = self._late, set()
        self.wake(late)


class _Topic:
    """The newest frames of one topic, with their numbers."""

    def __init__(self, floor: int) -> None:
        self.frames: deque[tuple[int, bytes]] = deque()
        self.size = 0
        self.floor = floor
        self.newest = floor

    def add(self, seq: int, frame: bytes) -> None:
        self.frames.append((seq, frame))
        self.size += len(frame)
        self.newest = seq

    def drop(self) -> int:
        """Forget the oldest frame; return its bytes."""
        self.floor, frame = self.frames.popleft()
        self.size -= len(frame)
        return len(frame)

    def behind(self, after: int) -> list[tuple[int, bytes]]:
        """Return what is newer than `after`; it costs what it returns, not what is kept."""
        found: list[tuple[int, bytes]] = []
        for item in reversed(self.frames):
            if item[0] <= after:
                break
            found.append(item)
        return found


def encode_event(event: Event) -> bytes:
    """Write one event as one line of JSON, whatever half characters somebody let in."""
    try:
        return msgspec.json.encode(event)
    except UnicodeEncodeError:
        return replace_surrogates(json.dumps(event, ensure_ascii=False)).encode()
