"""Worker threads and the background loop."""

import asyncio
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from dialoom.base.errors import UsageError
from dialoom.graph import (
    START,
    Graph,
    GraphBuilder,
    MemoryCheckpointStore,
    NodeContext,
    RunOptions,
    portal,
    threads,
)
from dialoom.graph.drive import drive
from dialoom.graph.forks import in_forked_child
from dialoom.graph.threads import MAX_LENT, WorkerPool, node_pool
from tests.graph.graphs import PATIENCE, counter, speakers, wait_for


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """An event that a test may leave workers waiting for."""
    event = threading.Event()
    yield event
    event.set()


def test_a_pool_runs_no_more_than_its_size_at_once(release: threading.Event) -> None:
    pool, running, most, lock = WorkerPool(2), 0, 0, threading.Lock()
    entered = threading.Semaphore(0)

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        entered.release()
        wait_for(release)
        with lock:
            running -= 1

    futures = [pool.submit(work) for _ in range(6)]
    assert all(entered.acquire(timeout=PATIENCE) for _ in range(2))
    release.set()
    for future in futures:
        future.result(PATIENCE)
    assert most == 2


def test_an_idle_worker_is_used_again() -> None:
    pool = WorkerPool(8)
    names = {_name_of_worker(pool) for _ in range(5)}
    assert names == {"dialoom-worker-1"}


def test_workers_do_not_keep_the_interpreter_from_exiting() -> None:
    assert WorkerPool().submit(lambda: threading.current_thread().daemon).result(PATIENCE)


def test_what_a_call_raises_is_given_to_who_waits() -> None:
    def leave() -> None:
        raise SystemExit(2)

    with pytest.raises(SystemExit):
        WorkerPool().submit(leave).result(PATIENCE)


def test_an_abandoned_call_that_had_not_begun_never_does(release: threading.Event) -> None:
    pool, ran = WorkerPool(1), []
    first = pool.submit(lambda: wait_for(release))
    waiting = pool.submit(lambda: ran.append("waiting"))
    pool.abandon(waiting)
    release.set()
    first.result(PATIENCE)
    _name_of_worker(pool)
    assert ran == []


def test_the_place_of_an_abandoned_call_is_used_by_others_until_it_returns(release: threading.Event) -> None:
    pool, started = WorkerPool(1), threading.Event()

    def stuck() -> None:
        started.set()
        wait_for(release)

    orphan = pool.submit(stuck)
    wait_for(started)
    pool.abandon(orphan)
    assert _name_of_worker(pool) == "dialoom-worker-2"
    release.set()
    orphan.result(PATIENCE)
    both = threading.Barrier(2, timeout=0.2)
    crowd = [pool.submit(both.wait) for _ in range(2)]
    with pytest.raises(threading.BrokenBarrierError):
        crowd[0].result(PATIENCE)


def test_lending_has_an_end(release: threading.Event) -> None:
    pool, started = WorkerPool(1), threading.Semaphore(0)

    def stuck() -> None:
        started.release()
        wait_for(release)

    for _ in range(MAX_LENT):
        orphan = pool.submit(stuck)
        assert started.acquire(timeout=PATIENCE)
        pool.abandon(orphan)
    last = pool.submit(stuck)
    assert started.acquire(timeout=PATIENCE)
    pool.abandon(last)
    beyond: Future[None] = pool.submit(stuck)
    assert not started.acquire(timeout=0.02)
    release.set()
    beyond.result(PATIENCE)


def test_runs_inside_nodes_cannot_use_the_pool_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialoom.graph.threads._Shared.nodes", WorkerPool(2))
    inner_sync = _wide(4, lambda _: None)

    async def nothing(_: NodeContext) -> None: ...

    builder = speakers()
    builder.add_node("async", nothing)
    builder.add_node("plain", lambda _: None)
    builder.add_edge(START, "async")
    builder.add_edge(START, "plain")
    inner_async = builder.build()

    def nested(_: NodeContext) -> None:
        assert inner_sync.run_sync().stop_reason == "finished"
        assert inner_async.run_sync().stop_reason == "finished"
        assert len(list(inner_async.stream_sync())) == 7

    outer = _wide(6, nested)
    assert outer.run_sync().errors == ()


async def test_a_run_in_an_async_node_may_be_sync_when_it_needs_no_loop() -> None:
    async def node(_: NodeContext) -> None:
        assert counter().run_sync().state == {"n": 5}

    builder = speakers()
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    assert (await builder.build().run()).errors == ()


def test_waiting_for_the_background_loop_on_it_is_refused() -> None:
    async def quick(_: NodeContext) -> None: ...

    inner = speakers()
    inner.add_node("quick", quick)
    inner.add_edge(START, "quick")
    graph = inner.build()
    refused: list[str] = []

    async def nested(_: NodeContext) -> None:
        with pytest.raises(UsageError) as run:
            graph.run_sync()
        with pytest.raises(UsageError) as stream:
            next(graph.stream_sync())
        refused.extend([str(run.value), str(stream.value)])

    builder = speakers()
    builder.add_node("nested", nested)
    builder.add_edge(START, "nested")
    assert builder.build().run_sync().errors == ()
    assert refused == ["an async node cannot use run_sync or stream_sync; await run, or iterate stream"] * 2


def test_ctrl_c_while_waiting_for_the_background_loop_ends_the_run_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cleaned = []

    async def node(_: NodeContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    here, result = threading.current_thread(), Future.result

    def interrupt(future: Future[Any], timeout: float | None = None) -> Any:
        if threading.current_thread() is here:
            raise KeyboardInterrupt
        return result(future, timeout)  # the workers of stores wait in the same way

    store = MemoryCheckpointStore()
    builder = speakers()
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    monkeypatch.setattr(Future, "result", interrupt)
    with pytest.raises(KeyboardInterrupt):
        builder.build(store).run_sync(None, RunOptions(thread_id="alice"))
    monkeypatch.undo()
    assert store.load("alice") is not None


def test_code_that_waits_without_a_loop_is_told_so() -> None:
    async def waits() -> None:
        await _Forever()

    with pytest.raises(RuntimeError, match="this code waits for an event loop; declare it with async def"):
        drive(waits())


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_runs_graphs_on_threads_of_its_own() -> None:
    _wide(2, lambda _: None).run_sync()
    list(counter().stream_sync())
    child = multiprocessing.get_context("fork").Process(target=_run_both)
    child.start()
    child.join(PATIENCE)
    assert child.exitcode == 0


def test_what_a_child_must_not_inherit_it_makes_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    registered: list[Callable[[], None]] = []
    monkeypatch.setattr(os, "register_at_fork", lambda *, after_in_child: registered.append(after_in_child))
    in_forked_child(portal._start_over)
    in_forked_child(threads._start_over)
    old_portal, old_nodes, old_stores = portal.the_portal(), threads.node_pool(), threads.store_pool()
    for call in registered:
        call()
    assert portal.the_portal() is not old_portal
    assert (threads.node_pool(), threads.store_pool()) != (old_nodes, old_stores)


def test_where_processes_do_not_fork_nothing_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "register_at_fork")
    in_forked_child(lambda: None)


def test_blocking_nodes_run_on_the_pool_that_all_graphs_share() -> None:
    names: list[str] = []
    _wide(2, lambda _: names.append(threading.current_thread().name)).run_sync()
    assert all(name.startswith("dialoom-worker-") for name in names)
    assert node_pool() is node_pool()


class _Forever:
    def __await__(self) -> Iterator[None]:
        yield


def _wide(width: int, node: object) -> Graph:
    builder = GraphBuilder("wide")
    for at in range(width):
        builder.add_node(f"n{at}", node)  # type: ignore[arg-type]
        builder.add_edge(START, f"n{at}")
    return builder.build()


def _run_both() -> None:
    assert _wide(2, lambda _: None).run_sync().stop_reason == "finished"
    assert len(list(counter().stream_sync())) == 17


def _name_of_worker(pool: WorkerPool) -> str:
    return pool.submit(lambda: threading.current_thread().name).result(PATIENCE)
