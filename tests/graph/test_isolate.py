"""Isolated nodes: in a process of their own, heard like any other, and killed when their time is over."""

import asyncio
import io
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dialoom.base.errors import UsageError
from dialoom.graph import (
    START,
    Chunk,
    Graph,
    GraphBuilder,
    NodeContext,
    NodeError,
    Reducers,
    RetryPolicy,
    RunControl,
    RunOptions,
    isolated,
    isolated_process,
)
from dialoom.graph.codec_frames import MAX_FRAME, Frames
from dialoom.testing.clock import ManualClock
from tests.graph import isolated_nodes
from tests.graph.graphs import PATIENCE, Heard


def one(node: Any, heard: Heard | None = None, **choices: Any) -> Graph:
    builder = GraphBuilder("isolated")
    builder.add_channel("said", Reducers.append)
    builder.add_channel("price", default=isolated_nodes.Money(4))
    builder.add_node("node", node, **choices)
    builder.add_node("next", lambda ctx: {"said": [ctx.input]}, dynamic=True)
    builder.add_edge(START, "node")
    return builder.build(observers=[heard] if heard else [])


def emitted(heard: Heard) -> list[Any]:
    return [event.value for event in heard.events if isinstance(event, Chunk)]


@pytest.mark.parametrize("how", [Graph.run_sync, lambda *given: asyncio.run(Graph.run(*given))])
def test_an_isolated_node_is_given_its_context_and_heard_like_any_other(how: Callable[..., Any]) -> None:
    heard = Heard()
    result = how(
        one(isolated(isolated_nodes.shout, types=[isolated_nodes.Money]), heard), {"said": ["hello"]}
    )
    assert (result.errors, result.state["said"]) == ((), ["hello", "node 1 1 True False"])
    assert emitted(heard) == [{"heard": ["hello"]}]


def test_the_result_of_an_async_one_leads_on() -> None:
    heard = Heard()
    builder = GraphBuilder("later")
    builder.add_channel("said", Reducers.append)
    builder.add_node("later", isolated_nodes.later)
    builder.add_node("next", lambda ctx: {"said": [ctx.input]}, dynamic=True)
    builder.add_edge(START, "later")
    assert builder.build(observers=[heard]).run_sync().state == {"said": [None, None, "sent"]}
    assert emitted(heard) == ["on its way"]


def test_the_items_of_a_map_may_be_isolated() -> None:
    builder = GraphBuilder("doubles")
    builder.add_channel("numbers", default=[1, 2, 3])
    builder.add_channel("doubled")
    builder.add_map("double", isolated(isolated_nodes.double), over="numbers", into="doubled")
    builder.add_edge(START, "double")
    assert builder.build().run_sync().state["doubled"] == [2, 4, 6]


def test_registered_classes_pass() -> None:
    node = isolated(isolated_nodes.raise_price, types=[isolated_nodes.Money])
    assert one(node).run_sync().state["price"] == isolated_nodes.Money(5)


FOREIGN = (
    "UsageError: it holds a {}, which cannot be sent to another process; use plain data, or give its class"
)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (isolated_nodes.broken, "IsolatedNodeError: ValueError: boom"),
        (isolated_nodes.refused, "not today"),
        (isolated_nodes.dies, "IsolatedNodeError: its process ended with exit code 7 before it was through"),
        (isolated_nodes.curious, "IsolatedNodeError: UsageError: an isolated node cannot ask or use once"),
        (isolated_nodes.odd, f"IsolatedNodeError: {FOREIGN.format('object')}"),
    ],
)
def test_what_goes_wrong_in_its_process_is_told(node: Any, message: str) -> None:
    (error,) = one(isolated(node, types=[isolated_nodes.Money])).run_sync().errors
    assert error.message.startswith(message)
    assert "boom" not in message or 'raise ValueError("boom")' in error.traceback


def test_it_is_tried_again_like_any_other() -> None:
    policy = RetryPolicy(attempts=2, delay=0)
    node = isolated(isolated_nodes.broken, types=[isolated_nodes.Money])
    (error,) = one(node, retry=policy).run_sync().errors
    assert error.attempts == 2


def test_a_state_of_unknown_classes_is_not_sent() -> None:
    (error,) = one(isolated(isolated_nodes.broken)).run_sync().errors
    assert error.message.startswith(FOREIGN.format("Money"))


class Processes:
    """Hears which processes a node has begun."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.known = threading.Event()

    def on_event(self, event: object) -> None:
        if isinstance(event, Chunk):
            self.ids = event.value
            self.known.set()

    async def end(self) -> None:
        """Wait until none of them runs."""
        async with asyncio.timeout(PATIENCE):
            while any(_is_running(each) for each in self.ids):  # noqa: ASYNC110 - nothing tells us
                await asyncio.sleep(0.01)


def _is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # it ended, perhaps while it was read
        return False


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")


@needs_proc
@pytest.mark.parametrize("end", ["timeout", "control", "deadline", "task"])
async def test_it_is_killed_with_all_it_began(end: str) -> None:
    processes, control, clock = Processes(), RunControl(), ManualClock()
    builder = GraphBuilder("stuck")
    builder.add_node("stuck", isolated(isolated_nodes.for_ever), timeout=3.0 if end == "timeout" else None)
    builder.add_edge(START, "stuck")
    graph = builder.build(observers=[processes], clock=clock)
    options = RunOptions(control=control, timeout=3.0 if end == "deadline" else None)
    run = asyncio.create_task(graph.run(None, options))
    assert await asyncio.to_thread(processes.known.wait, PATIENCE)
    if end == "control":
        control.cancel()
    elif end == "task":
        run.cancel()
    else:
        await clock.advance(3.0)
    await asyncio.wait({run}, timeout=PATIENCE)
    await processes.end()
    if end == "task":
        assert run.cancelled()
    elif end == "timeout":
        told = NodeError(
            node="stuck", message="NodeTimeoutError: it took longer than its timeout of 3 seconds"
        )
        assert run.result().errors == (told,)
    else:
        assert run.result().stop_reason == ("cancelled" if end == "control" else "timeout")


@needs_proc
async def test_a_sync_run_kills_it_at_its_deadline_too() -> None:
    processes, builder = Processes(), GraphBuilder("stuck")
    builder.add_node("stuck", isolated(isolated_nodes.for_ever))
    builder.add_edge(START, "stuck")
    graph = builder.build(observers=[processes])
    for seconds in (2.0, 20.0, 60.0):  # as long as the machine needs to start it
        result = await asyncio.to_thread(graph.run_sync, None, RunOptions(timeout=seconds))
        assert result.stop_reason == "timeout"
        if processes.known.is_set():
            break
    assert len(processes.ids) == 2
    await processes.end()


def test_a_function_another_process_cannot_find_is_refused() -> None:
    def inner(_: NodeContext) -> None: ...

    for fn in (inner, lambda _: None, Heard()):
        with pytest.raises(
            UsageError, match="cannot be found by another process; put it at the top of a module"
        ):
            isolated(fn)  # pyright: ignore[reportArgumentType] - what the test is about


def test_frames_are_bounded_and_a_cut_one_is_the_end() -> None:
    sink = io.BytesIO()
    Frames(io.BytesIO(), sink).write("a", 2**70)
    whole = sink.getvalue()
    assert Frames(io.BytesIO(whole), sink).read() == ("a", 2**70)
    assert Frames(io.BytesIO(whole[:-1]), sink).read() is None
    with pytest.raises(
        UsageError, match=f"sent {MAX_FRAME + 1} bytes at once, at most {MAX_FRAME} are taken"
    ):
        Frames(io.BytesIO((MAX_FRAME + 1).to_bytes(4, "big")), sink).read()
    with pytest.raises(UsageError, match="are too much for another process"):
        Frames(io.BytesIO(), sink).write("x" * MAX_FRAME)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xc1", id="no msgpack"),
        pytest.param(msgspec.msgpack.encode(msgspec.msgpack.Ext(2, b"")), id="a type without a name"),
        pytest.param(msgspec.msgpack.encode(msgspec.msgpack.Ext(1, b"\x01")), id="a tag that is no pair"),
        pytest.param(
            msgspec.msgpack.encode(msgspec.msgpack.Ext(1, msgspec.msgpack.encode(["uuid", "?"]))),
            id="no uuid",
        ),
    ],
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match="the other process sent what is no frame: "):
        Frames(io.BytesIO(len(data).to_bytes(4, "big") + data), io.BytesIO()).read()


def test_where_groups_of_processes_are_unknown_its_own_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.killpg")
    (error,) = one(isolated(isolated_nodes.broken, types=[isolated_nodes.Money])).run_sync().errors
    assert error.message == "IsolatedNodeError: ValueError: boom"


def told_to(*calls: tuple[Any, ...]) -> list[Any]:
    """Return what the process of an isolated node says when it is told `calls` and left to end by itself."""
    told = io.BytesIO()
    frames = Frames(io.BytesIO(), told, [isolated_nodes.Money])
    for call in calls:
        frames.write(*call)
    command = [sys.executable, "-m", "dialoom.graph.isolated_child"]
    done = subprocess.run(command, input=told.getvalue(), stdout=subprocess.PIPE, check=True)
    frames = Frames(io.BytesIO(done.stdout), told, [isolated_nodes.Money])
    return list(iter(frames.read, None))


CONTEXT = ({"said": ["hello"], "price": isolated_nodes.Money(4)}, "node", 1, None, None, 1, "run", "thread")
HERE = "tests.graph.isolated_nodes"


def test_its_process_says_one_thing_after_the_other_and_ends() -> None:
    money = [f"{HERE}:Money"]
    assert told_to((f"{HERE}:shout", money), CONTEXT)[:2] == [("emit", {"heard": ["hello"]}), ("heartbeat",)]
    last = {
        "writes": {"said": [None]},
        "goto": ("next",),
        "halt": False,
        "error": None,
        "sends": [["next", "sent", None]],
    }
    assert told_to((f"{HERE}:later", money), CONTEXT) == [("emit", "on its way"), ("result", last)]
    assert told_to((f"{HERE}:raise_price", money), CONTEXT) == [("value", {"price": isolated_nodes.Money(5)})]
    (said,) = told_to((f"{HERE}:curious", money), CONTEXT)
    assert said[:2] == (
        "error",
        "UsageError: an isolated node cannot ask or use once; do that in a node before or behind it",
    )


def test_its_process_ends_in_silence_when_it_is_told_no_more() -> None:
    assert told_to((f"{HERE}:shout", [])) == []
    (said,) = told_to()
    assert said[:2] == ("error", "ValueError: Empty module name")


def test_a_process_that_says_what_no_node_says_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated_process, "CHILD", "tests.graph.isolated_liar")
    (error,) = one(isolated(isolated_nodes.broken, types=[isolated_nodes.Money])).run_sync().errors
    assert error.message == "IsolatedNodeError: its process said what no node says"
