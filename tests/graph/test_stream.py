"""Reading a run while it goes on."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from dialoom.base.errors import UsageError
from dialoom.graph import (
    START,
    Chunk,
    Graph,
    GraphBuilder,
    MemoryCheckpointStore,
    NodeContext,
    NodeResult,
    RunControl,
    RunFailedError,
    RunFinished,
    RunOptions,
)
from dialoom.testing.clock import settle
from tests.graph.graphs import PATIENCE, Heard, counter, line, speakers, wait_for


@pytest.fixture(autouse=True)
async def nothing_is_left_running() -> AsyncIterator[None]:
    yield
    assert asyncio.all_tasks() == {asyncio.current_task()}


def one_node(node: Callable[[NodeContext], Any], **options: Any) -> Graph:
    builder = speakers()
    builder.add_node("node", node, **options)
    builder.add_edge(START, "node")
    return builder.build()


@pytest.mark.promise("graph-093", "graph-094")
async def test_a_stream_gives_the_events_in_order_and_then_the_result() -> None:
    graph = line("a")
    stream = graph.stream({"said": ["hi"]})
    names = [type(event).__name__ async for event in stream]
    assert names == ["RunBegin", "NodeBegin", "NodeEnd", "StepCommitted", "RunFinished"]
    assert stream.result.state == (await graph.run({"said": ["hi"]})).state
    assert [event async for event in stream] == []


def test_a_sync_stream_does_the_same() -> None:
    stream = line("a").stream_sync({"said": ["hi"]})
    events = list(stream)
    assert [event.seq for event in events] == [1, 2, 3, 4, 5]
    assert stream.result.state == {"said": ["hi", "a"]}
    assert list(stream) == []


@pytest.mark.promise("graph-095")
async def test_a_resumed_run_streams_too() -> None:
    graph = counter(MemoryCheckpointStore(), until=3)
    await graph.run(None, RunOptions(thread_id="alice", max_steps=1))
    stream = graph.resume_stream("alice", options=RunOptions(max_steps=1))
    assert [type(event).__name__ async for event in stream][-1] == "RunFinished"
    assert stream.result.state == {"n": 2}
    finishing = graph.resume_stream_sync("alice", inputs={"n": 2})
    assert isinstance(list(finishing)[-1], RunFinished)
    assert finishing.result.state == {"n": 3}


@pytest.mark.promise("graph-096")
@pytest.mark.parametrize("blocking", [True, None])
async def test_a_chunk_arrives_while_its_node_is_still_running(blocking: bool | None) -> None:
    heard = threading.Event()

    def node(ctx: NodeContext) -> None:
        ctx.emit("first")
        wait_for(heard)
        ctx.emit("second")

    chunks = []
    async for event in one_node(node, blocking=blocking).stream():
        if isinstance(event, Chunk):
            chunks.append(event.value)
            heard.set()
    assert chunks == ["first", "second"]


def test_a_chunk_arrives_at_a_sync_reader_while_its_node_is_still_running() -> None:
    heard = threading.Event()

    def node(ctx: NodeContext) -> None:
        ctx.emit("first")
        wait_for(heard)

    for event in one_node(node).stream_sync():
        if isinstance(event, Chunk):
            heard.set()
    assert heard.is_set()


async def test_an_async_node_waits_for_a_slow_reader() -> None:
    ahead = 0

    async def node(ctx: NodeContext) -> None:
        nonlocal ahead
        for at in range(100):
            await ctx.aemit(at)
            ahead = at

    values = []
    async for event in one_node(node).stream(buffer=4):
        await settle()
        if isinstance(event, Chunk):
            values.append(event.value)
            assert ahead - event.value <= 5
    assert values == list(range(100))


async def test_a_worker_thread_waits_for_a_slow_reader() -> None:
    sent: list[int] = []

    def node(ctx: NodeContext) -> None:
        for at in range(50):
            ctx.emit(at)
            sent.append(at)

    values = []
    async for event in one_node(node).stream(buffer=4):
        await asyncio.sleep(0)
        if isinstance(event, Chunk):
            values.append(event.value)
            assert len(sent) - event.value <= 6
    assert values == list(range(50))


async def test_a_run_waits_between_supersteps_for_a_slow_reader() -> None:
    steps = 0

    def count(ctx: NodeContext) -> NodeResult:
        nonlocal steps
        steps = ctx.step
        return NodeResult.ok(goto="count" if ctx.step < 50 else "__end__")

    builder = GraphBuilder("slow reader")
    builder.add_node("count", count, blocking=False)
    builder.add_edge(START, "count")
    seen = 0
    async for event in builder.build().stream(buffer=3):
        await settle()
        seen = max(seen, getattr(event, "step", 0))
        assert steps - seen <= 3
    assert steps == 50


async def test_code_on_the_loop_that_cannot_wait_runs_ahead_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dialoom.graph.mailbox.HARD_LIMIT", 20)

    async def node(ctx: NodeContext) -> None:
        for at in range(1000):
            ctx.emit(at)

    stream = one_node(node).stream(buffer=4)
    values = [event.value async for event in stream if isinstance(event, Chunk)]
    assert values == list(range(18))
    assert stream.result.errors[0].message == (
        "UsageError: the reader of this stream is 20 events behind; "
        "a node awaits ctx.aemit(value), a tool emits less often"
    )


@pytest.mark.parametrize("how", ["close", "with", "break", "error"])
async def test_a_reader_that_stops_early_stops_the_run(how: str) -> None:
    cleaned = asyncio.Event()

    async def node(ctx: NodeContext) -> None:
        try:
            await ctx.aemit("first")
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    store = MemoryCheckpointStore()
    builder = speakers()
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    stream = builder.build(store).stream(None, RunOptions(thread_id="alice"))
    if how == "close":
        await _until_chunk(stream)
        await stream.aclose()
        await stream.aclose()
    elif how == "with":
        async with stream:
            await _until_chunk(stream)
    elif how == "error":
        with pytest.raises(RuntimeError, match="reader failed"):
            async with stream:
                await _until_chunk(stream)
                raise RuntimeError("reader failed")
    else:
        await _until_chunk(stream)
        del stream
        gc.collect()
    await asyncio.wait_for(cleaned.wait(), PATIENCE)
    await settle()
    head = store.load("alice")
    assert head is not None
    assert head.frontier.ready == ("node",)
    if how != "break":
        assert stream.result.stop_reason == "cancelled"


async def test_a_reader_that_stops_frees_a_writer_that_waits_for_it() -> None:
    left = threading.Event()

    def node(ctx: NodeContext) -> None:
        for at in range(100):
            ctx.emit(at)
        left.set()

    stream = one_node(node).stream(buffer=2)
    await _until_chunk(stream)
    await stream.aclose()
    assert await asyncio.to_thread(left.wait, PATIENCE)
    assert stream.result.stop_reason == "cancelled"


async def test_cancelling_the_reader_ends_the_run_first() -> None:
    cleaned = []

    async def node(ctx: NodeContext) -> None:
        try:
            await ctx.aemit("first")
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    async def read() -> None:
        async for _ in stream:
            pass

    stream = one_node(node).stream()
    reader = asyncio.create_task(read())
    await settle()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert cleaned == [True]
    assert stream.result.stop_reason == "cancelled"


async def test_a_stop_request_ends_a_stream_with_its_last_event() -> None:
    control = RunControl()

    async def node(ctx: NodeContext) -> None:
        while True:
            await ctx.aemit("more")
            control.cancel()

    events = [event async for event in one_node(node).stream(None, RunOptions(control=control), buffer=2)]
    assert isinstance(events[-1], RunFinished)
    assert events[-1].stop_reason == "cancelled"
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


def test_a_sync_reader_that_stops_early_stops_the_run() -> None:
    for how in ("close", "with", "break"):
        cleaned = threading.Event()

        async def node(ctx: NodeContext, cleaned: threading.Event = cleaned) -> None:
            try:
                await ctx.aemit("first")
                await asyncio.Event().wait()
            finally:
                cleaned.set()

        stream = one_node(node).stream_sync()
        if how == "with":
            with stream:
                next(event for event in stream if isinstance(event, Chunk))
        else:
            next(event for event in stream if isinstance(event, Chunk))
        if how == "close":
            stream.close()
            stream.close()
        if how == "break":
            del stream
            gc.collect()
        else:
            assert stream.result.stop_reason == "cancelled"
        wait_for(cleaned)


def test_ctrl_c_in_a_sync_reader_ends_the_run_first(monkeypatch: pytest.MonkeyPatch) -> None:
    async def node(ctx: NodeContext) -> None:
        await asyncio.Event().wait()

    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    stream = one_node(node).stream_sync()
    next(stream)
    with monkeypatch.context() as patched:
        patched.setattr("dialoom.graph.mailbox.Mailbox.take", interrupt)
        with pytest.raises(KeyboardInterrupt):
            next(stream)
    assert stream.result.stop_reason == "cancelled"


async def test_a_stream_nobody_reads_does_nothing() -> None:
    stream = counter().stream()
    async with stream:
        pass
    with pytest.raises(UsageError, match="the stream is not over; read it to its end, or close it, before"):
        _ = stream.result
    with counter().stream_sync() as sync_stream:
        pass
    with pytest.raises(UsageError, match="the stream is not over"):
        _ = sync_stream.result


async def test_there_is_no_result_before_the_end() -> None:
    async def waits(_: NodeContext) -> None:
        await asyncio.Event().wait()

    graph = one_node(waits)
    async with graph.stream() as stream:
        await anext(stream)
        with pytest.raises(UsageError, match="the stream is not over"):
            _ = stream.result
    assert stream.result.stop_reason == "cancelled"
    with graph.stream_sync() as sync_stream:
        next(sync_stream)
        with pytest.raises(UsageError, match="the stream is not over"):
            _ = sync_stream.result
    assert sync_stream.result.stop_reason == "cancelled"


async def test_what_run_raises_is_raised_to_the_reader() -> None:
    graph = one_node(lambda _: NodeResult.fail("no luck"))
    with pytest.raises(RunFailedError, match="no luck"):
        _ = [event async for event in graph.stream(None, RunOptions(raise_on_error=True))]
    with pytest.raises(RunFailedError, match="no luck"):
        list(graph.stream_sync(None, RunOptions(raise_on_error=True)))
    with pytest.raises(UsageError, match="keeps no checkpoints"):
        _ = [event async for event in graph.resume_stream("alice")]


@pytest.mark.parametrize("buffer", [0, -1])
def test_a_buffer_holds_at_least_one_event(buffer: int) -> None:
    with pytest.raises(UsageError, match=f"buffer is {buffer}; give 1 or more events"):
        counter().stream(buffer=buffer)
    with pytest.raises(UsageError, match=f"buffer is {buffer}; give 1 or more events"):
        counter().stream_sync(buffer=buffer)


async def _until_chunk(stream: Any) -> None:
    async for event in stream:
        if isinstance(event, Chunk):
            return


async def test_observers_hear_what_the_reader_of_a_stream_reads() -> None:
    async def talk(ctx: NodeContext) -> None:
        for word in ("a", "b"):
            await ctx.aemit(word)

    heard = Heard()
    builder = speakers()
    builder.add_node("talk", talk)
    builder.add_edge(START, "talk")
    async with builder.build(observers=[heard]).stream() as stream:
        read = [event async for event in stream]
    assert heard.events == read
    assert [event.value for event in read if isinstance(event, Chunk)] == ["a", "b"]
