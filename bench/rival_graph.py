"""Runs the graph bench's workloads on rivals, in the Python that has them: `rival_graph.py`.

It stands alone: the rival's Python has nothing of dialoom. Prints the versions of what it found, then for
each line on its standard input, `RIVAL WORKLOAD`, the CPU seconds of one round per unit, or the figure.
"""

import asyncio
import atexit
import importlib
import json
import operator
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from typing import Annotated, Any, TypedDict

STEPS = 1_000
WIDTH = 1_000
CHUNKS = 10_000
RUNS = 1_000
MESSAGES = 400
MESSAGE = "x" * 140

Round = Callable[[], int]
"""Does the work once; returns how many units of it there were."""


class Count(TypedDict):
    """State of the loop."""

    n: int


class Said(TypedDict):
    """State of the fan-out."""

    said: Annotated[list[int], operator.add]


def lg_loop(node: Any, saver: Any = None) -> Any:
    graph = importlib.import_module("langgraph.graph")

    def route(state: Count) -> str:
        return "count" if state["n"] < STEPS else graph.END

    builder = graph.StateGraph(Count)
    builder.add_node("count", node)
    builder.add_edge(graph.START, "count")
    builder.add_conditional_edges("count", route)
    return builder.compile(checkpointer=saver)


def lg_count(state: Count) -> Count:
    return {"n": state["n"] + 1}


async def lg_count_async(state: Count) -> Count:
    return {"n": state["n"] + 1}


def lg_config(number: int = 0) -> dict[str, Any]:
    return {"recursion_limit": STEPS + 10, "configurable": {"thread_id": str(number)}}


def lg_step_sync() -> Round:
    app = lg_loop(lg_count)
    return lambda: app.invoke({"n": 0}, lg_config())["n"]


def lg_step_async() -> Round:
    app = lg_loop(lg_count_async)
    return lambda: asyncio.run(app.ainvoke({"n": 0}, lg_config()))["n"]


def lg_step_memory() -> Round:
    saver = importlib.import_module("langgraph.checkpoint.memory").InMemorySaver()
    app, number = lg_loop(lg_count, saver), count()
    return lambda: app.invoke({"n": 0}, lg_config(next(number)))["n"]


def lg_step_sqlite() -> Round:
    """The saver as it is by default, so with a sync for each commit."""
    app, number = lg_loop(lg_count, lg_sqlite()), count()
    return lambda: app.invoke({"n": 0}, lg_config(next(number)), durability="sync")["n"]


def lg_sqlite() -> Any:
    """Return what keeps checkpoints in a file of its own."""
    folder = tempfile.mkdtemp(prefix="bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder, "checkpoints")
    return importlib.import_module("langgraph.checkpoint.sqlite").SqliteSaver(
        sqlite3.connect(path, check_same_thread=False)
    )


def lg_bytes() -> float:
    """Return the bytes on disk of a message of its own kind in a thread of `MESSAGES`."""
    graph = importlib.import_module("langgraph.graph")
    human = importlib.import_module("langchain_core.messages").HumanMessage

    def say(_: Any) -> dict[str, Any]:
        return {"messages": [human(MESSAGE)]}

    def route(state: Any) -> str:
        return "say" if len(state["messages"]) < MESSAGES else graph.END

    builder = graph.StateGraph(graph.MessagesState)
    builder.add_node("say", say)
    builder.add_edge(graph.START, "say")
    builder.add_conditional_edges("say", route)
    saver = lg_sqlite()
    builder.compile(checkpointer=saver).invoke({"messages": []}, lg_config(), durability="sync")
    saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    pages, page = (saver.conn.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    return float(pages * page) / MESSAGES


def lg_wide(node: Any) -> Any:
    graph = importlib.import_module("langgraph.graph")
    builder = graph.StateGraph(Said)
    for at in range(WIDTH):
        builder.add_node(f"n{at}", node)
        builder.add_edge(graph.START, f"n{at}")
    return builder.compile()


def lg_wide_sync() -> Round:
    def say(_: Said) -> Said:
        return {"said": [1]}

    app = lg_wide(say)
    return lambda: len(app.invoke({"said": []})["said"])


def lg_wide_async() -> Round:
    async def say(_: Said) -> Said:
        return {"said": [1]}

    app = lg_wide(say)
    return lambda: len(asyncio.run(app.ainvoke({"said": []}))["said"])


def lg_chunks() -> Round:
    graph = importlib.import_module("langgraph.graph")

    async def talk(_: Said, writer: Any) -> Said:
        for _number in range(CHUNKS):
            writer("x")
        return {"said": []}

    talk.__annotations__["writer"] = importlib.import_module("langgraph.types").StreamWriter
    builder = graph.StateGraph(Said)
    builder.add_node("talk", talk)
    builder.add_edge(graph.START, "talk")
    app = builder.compile()

    async def read() -> int:
        return len([chunk async for chunk in app.astream({"said": []}, stream_mode="custom")])

    return lambda: asyncio.run(read())


def lg_many() -> Round:
    graph = importlib.import_module("langgraph.graph")

    async def wait(_: Count) -> Count:
        await asyncio.sleep(0.001)
        return {"n": 1}

    builder = graph.StateGraph(Count)
    names = ("a", "b", "c")
    for name in names:
        builder.add_node(name, wait)
    for pair in zip((graph.START, *names), names, strict=False):
        builder.add_edge(*pair)
    app = builder.compile()

    async def run() -> int:
        await asyncio.gather(*(app.ainvoke({"n": 0}) for _ in range(RUNS)))
        return RUNS

    return lambda: asyncio.run(run())


def ng_loop() -> Any:
    ng = importlib.import_module("neograph_engine")

    @ng.node("count")
    def step(state: Any) -> list[Any]:
        return [ng.ChannelWrite("n", state.get("n") + 1)]

    def more(state: Any) -> str:
        return "on" if state.get("n") < STEPS else "off"

    assert step is not None
    ng.ConditionRegistry.register_condition("more", more)
    return ng.GraphEngine.compile(
        {
            "schema_version": ng.TOPOLOGY_SCHEMA_VERSION,
            "name": "loop",
            "channels": {"n": {"reducer": "overwrite"}},
            "nodes": {"count": {"type": "count"}},
            "edges": [{"from": ng.START_NODE, "to": "count"}],
            "conditional_edges": [
                {"from": "count", "condition": "more", "routes": {"on": "count", "off": ng.END_NODE}}
            ],
        },
        ng.NodeContext(),
    )


def ng_step_sync() -> Round:
    ng = importlib.import_module("neograph_engine")
    engine = ng_loop()

    def run() -> int:
        config = ng.RunConfig(thread_id="t", input={"n": 0}, max_steps=STEPS + 10)
        return int(engine.run(config).output["channels"]["n"]["value"])

    return run


WORKLOADS: dict[str, dict[str, Callable[[], Round]]] = {
    "langgraph": {
        "step_sync": lg_step_sync,
        "step_async": lg_step_async,
        "step_memory": lg_step_memory,
        "step_sqlite": lg_step_sqlite,
        "wide_sync": lg_wide_sync,
        "wide_async": lg_wide_async,
        "chunks": lg_chunks,
        "many": lg_many,
    },
    "neograph-engine": {"step_sync": ng_step_sync},
}

FIGURES: dict[str, dict[str, Callable[[], float]]] = {"langgraph": {"bytes": lg_bytes}}
"""What is no time: each is said as it is."""


def main() -> None:
    found = {name: _version(name) for name in WORKLOADS}
    print(json.dumps(found), flush=True)
    ready: dict[tuple[str, str], Round] = {}
    for line in sys.stdin:
        rival, workload = line.split()
        if workload in FIGURES.get(rival, {}):
            print(FIGURES[rival][workload](), flush=True)
            continue
        if (rival, workload) not in ready:
            run = ready[rival, workload] = WORKLOADS[rival][workload]()
            run()
        run = ready[rival, workload]
        began = time.process_time()
        count = run()
        print((time.process_time() - began) / count, flush=True)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
