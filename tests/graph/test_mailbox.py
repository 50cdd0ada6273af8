"""Events on their way to a reader: none missed, none doubled, nobody left waiting."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from dialoom.graph import RunBegin
from dialoom.graph.loops import post
from dialoom.graph.mailbox import Mailbox
from dialoom.testing.clock import settle
from tests.graph.graphs import PATIENCE, wait_for


def event(seq: int) -> RunBegin:
    return RunBegin(run_id="r", seq=seq, thread_id="t", graph="g")


def here() -> Mailbox:
    return Mailbox(2, loop_thread=threading.get_ident())


def elsewhere() -> Mailbox:
    """A mailbox whose run is on the loop of another thread than the test's."""
    return Mailbox(2, loop_thread=0)


class Racing(Mailbox):
    """A mailbox on which something happens between a look at it and the wait for it."""

    happens: Callable[[], None] | None = None

    def _drained(self) -> bool:
        drained = super()._drained()
        self._once()
        return drained

    def full(self) -> bool:
        full = super().full()
        self._once()
        return full

    def _once(self) -> None:
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()


async def test_a_reader_on_the_loop_gets_what_comes_from_there_and_from_threads() -> None:
    for mailbox in (here(), elsewhere()):
        reader = asyncio.create_task(mailbox.atake())
        await settle()
        mailbox.put(event(1))
        assert await asyncio.wait_for(reader, PATIENCE) == event(1)
        reader = asyncio.create_task(mailbox.atake())
        await settle()
        await asyncio.to_thread(mailbox.close)
        assert await asyncio.wait_for(reader, PATIENCE) is None


async def test_what_was_put_before_the_end_is_read_before_the_end() -> None:
    mailbox = here()
    mailbox.put(event(1))
    mailbox.close()
    assert [await mailbox.atake(), await mailbox.atake()] == [event(1), None]
    assert mailbox.take() is None


def test_a_reader_on_a_thread_waits_for_the_next_event() -> None:
    mailbox, taken = elsewhere(), []
    reader = threading.Thread(target=lambda: taken.extend([mailbox.take(), mailbox.take()]))
    reader.start()
    mailbox.put(event(1))
    mailbox.close()
    reader.join(PATIENCE)
    assert taken == [event(1), None]


async def test_an_event_that_comes_between_looking_and_waiting_is_not_missed() -> None:
    mailbox = Racing(2, loop_thread=threading.get_ident())
    mailbox.happens = lambda: mailbox.put(event(1))
    assert await asyncio.wait_for(mailbox.atake(), PATIENCE) == event(1)
    mailbox.happens = lambda: mailbox.put(event(2))
    assert mailbox.take() == event(2)


async def test_room_that_comes_between_looking_and_waiting_is_not_missed() -> None:
    mailbox = Racing(2, loop_thread=0)
    for seq in (1, 2):
        mailbox.put(event(seq))
    mailbox.happens = mailbox._events.clear
    await asyncio.wait_for(mailbox.room(), PATIENCE)
    for seq in (1, 2):
        mailbox.put(event(seq))
    mailbox.happens = mailbox._events.clear
    mailbox.wait_for_room()


@pytest.mark.parametrize("freed_by", ["reading", "letting go"])
def test_a_writer_on_a_thread_waits_until_half_is_read_or_it_is_let_go(freed_by: str) -> None:
    mailbox, wrote = elsewhere(), threading.Event()

    def write() -> None:
        mailbox.wait_for_room()
        wrote.set()

    for seq in (1, 2):
        mailbox.put(event(seq))
    writer = threading.Thread(target=write)
    writer.start()
    while not mailbox._writers:
        assert not wrote.wait(0.001)
    if freed_by == "reading":
        assert mailbox.take() == event(1)
    else:
        mailbox.let_go()
    wait_for(wrote)
    writer.join(PATIENCE)


async def test_a_writer_on_the_loop_waits_too() -> None:
    mailbox = here()
    for seq in (1, 2):
        mailbox.put(event(seq))
    writer = asyncio.create_task(mailbox.room())
    await settle()
    assert not writer.done()
    assert await mailbox.atake() == event(1)
    await asyncio.wait_for(writer, PATIENCE)


async def test_a_wake_that_comes_twice_or_too_late_does_no_harm() -> None:
    mailbox = here()
    reader = asyncio.create_task(mailbox.atake())
    await settle()
    (wake,) = mailbox._readers
    wake()
    wake()
    mailbox.put(event(1))
    assert await asyncio.wait_for(reader, PATIENCE) == event(1)


def test_news_for_a_loop_that_is_gone_is_dropped() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    heard: list[int] = []
    post(loop, lambda: heard.append(1))
    assert heard == []


class Slow(list[Callable[[], None]]):
    """The list of those who wait, on which something happens just before one more is on it."""

    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__()
        self._happens = happens

    def append(self, wake: Callable[[], None], /) -> None:
        self._happens()
        super().append(wake)


async def test_what_happens_while_somebody_begins_to_wait_is_not_missed() -> None:
    mailbox = elsewhere()
    mailbox._readers = Slow(lambda: mailbox.put(event(1)))
    assert await asyncio.wait_for(asyncio.to_thread(mailbox.take), PATIENCE) == event(1)
    full = elsewhere()
    for seq in (1, 2):
        full.put(event(seq))
    full._writers = Slow(lambda: [full.next(), full.next()])
    await asyncio.wait_for(asyncio.to_thread(full.wait_for_room), PATIENCE)


def test_two_threads_pass_many_events_through_a_small_mailbox() -> None:
    mailbox, count = elsewhere(), 5_000

    def write() -> None:
        for seq in range(count):
            mailbox.wait_for_room()
            mailbox.put(event(seq))
        mailbox.close()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    taken: list[int] = []
    reader = threading.Thread(
        target=lambda: taken.extend(each.seq for each in iter(mailbox.take, None)), daemon=True
    )
    reader.start()
    reader.join(PATIENCE)
    assert taken == list(range(count))
