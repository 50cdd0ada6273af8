"""The graph bench's workloads, on dialoom and in plain Python: each returns how many units of work it did."""

import asyncio
import atexit
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.rival_graph import CHUNKS, MESSAGE, MESSAGES, RUNS, STEPS, WIDTH, Round
from dialoom.base.events import Event
from dialoom.graph import (
    END,
    START,
    CheckpointStore,
    Graph,
    GraphBuilder,
    MemoryCheckpointStore,
    NodeContext,
    Reducers,
    RunOptions,
)
from dialoom.stores.sqlite_checkpoints import SqliteCheckpointStore
from dialoom.stores.write_behind import WriteBehindStore

OPTIONS = RunOptions(max_steps=10_000)
NAP = 0.001
APPENDED = 5_000
EDGE = 100


def step_sync() -> Round:
    graph = _loop(_count)
    return lambda: graph.run_sync({}, OPTIONS).steps


def step_async() -> Round:
    graph = _loop(_count_async)
    return lambda: asyncio.run(graph.run({}, OPTIONS)).steps


def step_memory() -> Round:
    return lambda: _loop(_count, MemoryCheckpointStore()).run_sync({}, OPTIONS).steps


def step_sqlite() -> Round:
    graph = _loop(_count, _store())
    return lambda: graph.run_sync({}, OPTIONS).steps


def step_behind() -> Round:
    store = WriteBehindStore(_store())
    atexit.register(store.close)
    graph = _loop(_count, store)

    def run() -> int:
        steps = graph.run_sync({}, OPTIONS).steps
        store.flush()
        return steps

    return run


def bytes_per_message() -> float:
    """Return the bytes on disk that a message takes in a thread of `MESSAGES`."""
    builder = GraphBuilder("chat")
    builder.add_channel("messages", Reducers.append)
    message = {"role": "user", "content": MESSAGE}
    builder.add_node("say", lambda _: {"messages": [message]}, blocking=False)
    builder.add_edge(START, "say")
    builder.add_conditional_edges("say", lambda state: "say" if len(state["messages"]) < MESSAGES else END)
    with tempfile.TemporaryDirectory(prefix="dialoom-bench-") as folder:
        path = Path(folder, "messages")
        with SqliteCheckpointStore(path) as store:
            builder.build(store).run_sync({}, OPTIONS)
        return path.stat().st_size / MESSAGES


def plain_loop() -> Round:
    def route(state: dict[str, int]) -> bool:
        return state["n"] < STEPS

    def node(state: dict[str, int]) -> dict[str, int]:
        return {"n": state["n"] + 1}

    def run() -> int:
        state, on = {"n": 0}, True
        while on:
            state = {**state, **node(state)}
            on = route(state)
        return STEPS

    return run


def wide_sync() -> Round:
    graph = _fan_out(_one)
    return lambda: len(graph.run_sync().state["out"])


def wide_async() -> Round:
    graph = _fan_out(_one_async)
    return lambda: len(asyncio.run(graph.run()).state["out"])


def plain_fan_out() -> Round:
    def node() -> dict[str, list[int]]:
        return {"out": [1]}

    def run() -> int:
        out: list[int] = []
        for _ in range(WIDTH):
            out.extend(node()["out"])
        return len(out)

    return run


class Listener:
    """An observer that counts."""

    def __init__(self) -> None:
        self.heard = 0

    def on_event(self, event: Event) -> None:  # noqa: ARG002 - the observer's signature
        self.heard += 1


def chunk_to_observer() -> Round:
    def talk(ctx: NodeContext) -> None:
        for _ in range(CHUNKS):
            ctx.emit("x")

    listener = Listener()
    builder = GraphBuilder("talk")
    builder.add_node("talk", talk, blocking=False)
    builder.add_edge(START, "talk")
    graph = builder.build(observers=[listener])
    return lambda: graph.run_sync().steps * CHUNKS


def chunk_to_reader() -> Round:
    async def talk(ctx: NodeContext) -> None:
        for _ in range(CHUNKS):
            await ctx.aemit("x")

    builder = GraphBuilder("talk")
    builder.add_node("talk", talk)
    builder.add_edge(START, "talk")
    graph = builder.build()

    async def read() -> int:
        return len([event async for event in graph.stream()])

    return lambda: asyncio.run(read())


def many_runs() -> Round:
    builder = GraphBuilder("nap")
    builder.add_channel("n", type=int, default=0)
    names = ("a", "b", "c")
    for name in names:
        builder.add_node(name, _nap)
    for source, target in zip((START, *names), names, strict=False):
        builder.add_edge(source, target)
    graph = builder.build()

    async def run() -> int:
        return len(await asyncio.gather(*(graph.run() for _ in range(RUNS))))

    return lambda: asyncio.run(run())


def plain_naps() -> Round:
    async def three() -> None:
        for _ in range(3):
            await asyncio.sleep(NAP)

    async def run() -> int:
        return len(await asyncio.gather(*(three() for _ in range(RUNS))))

    return lambda: asyncio.run(run())


def growth() -> tuple[float, float]:
    """Return CPU seconds of the first and of the last 100 of 5000 supersteps that append a message each."""
    marks: dict[int, float] = {}

    def say(ctx: NodeContext) -> dict[str, list[str]]:
        marks[ctx.step] = time.process_time()
        return {"said": ["a message of some forty characters or so"]}

    builder = GraphBuilder("talk")
    builder.add_channel("said", Reducers.append, type=list[str])
    builder.add_node("say", say, blocking=False)
    builder.add_edge(START, "say")
    builder.add_conditional_edges("say", lambda state: "say" if len(state["said"]) < APPENDED else END)
    builder.build(MemoryCheckpointStore()).run_sync({}, OPTIONS)
    return marks[2 * EDGE] - marks[EDGE], marks[APPENDED] - marks[APPENDED - EDGE]


def _count(ctx: NodeContext) -> dict[str, int]:
    return {"n": ctx.state["n"] + 1}


async def _count_async(ctx: NodeContext) -> dict[str, int]:
    return {"n": ctx.state["n"] + 1}


def _one(_: NodeContext) -> dict[str, list[int]]:
    return {"out": [1]}


async def _one_async(_: NodeContext) -> dict[str, list[int]]:
    return {"out": [1]}


async def _nap(_: NodeContext) -> dict[str, int]:
    await asyncio.sleep(NAP)
    return {"n": 1}


def _store() -> SqliteCheckpointStore:
    """Return a store in a file of its own, which goes when the program ends."""
    folder = tempfile.mkdtemp(prefix="dialoom-bench-")
    atexit.register(shutil.rmtree, folder)
    store = SqliteCheckpointStore(Path(folder, "steps"), synchronous="normal")
    atexit.register(store.close)
    return store


def _loop(node: Any, store: CheckpointStore | None = None) -> Graph:
    builder = GraphBuilder("loop")
    builder.add_channel("n", type=int, default=0)
    builder.add_node("count", node, blocking=False)
    builder.add_edge(START, "count")
    builder.add_conditional_edges("count", lambda state: "count" if state["n"] < STEPS else END)
    return builder.build(store)


def _fan_out(node: Any) -> Graph:
    builder = GraphBuilder("fan-out")
    builder.add_channel("out", Reducers.append)
    for at in range(WIDTH):
        builder.add_node(f"n{at}", node, blocking=False)
        builder.add_edge(START, f"n{at}")
    return builder.build()
