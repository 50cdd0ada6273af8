"""What a superstep costs, against the same work in plain Python: call, merge the writes, ask where to go."""

import asyncio
from collections.abc import Callable
from typing import Any

from bench.report import Row, interleaved
from dialoom.graph import (
    END,
    START,
    Graph,
    GraphBuilder,
    MemoryCheckpointStore,
    NodeContext,
    Reducers,
    RunOptions,
)

PACKAGES: tuple[str, ...] = ("msgspec",)
STEPS = 2_000
WIDTH = 1_000
OPTIONS = RunOptions(max_steps=STEPS + 1)
FLOOR = "plain Python"


def rows() -> list[Row]:
    """Return CPU per superstep and per node of a wide superstep, each with the floor of the same minute."""
    step, step_async = _loop(_count), _loop(_count_async)
    kept = _loop(_count, MemoryCheckpointStore())
    wide, wide_async = _fan_out(_one), _fan_out(_one_async)
    return [
        _row("superstep, sync", lambda: step.run_sync({}, OPTIONS), _plain_loop, STEPS, must=28),
        _row(
            "superstep, async", lambda: asyncio.run(step_async.run({}, OPTIONS)), _plain_loop, STEPS, must=33
        ),
        _row(
            "superstep with memory checkpoint",
            lambda: kept.run_sync({}, OPTIONS),
            _plain_loop,
            STEPS,
            must=55,
        ),
        _row("fan-out of 1000, per node, sync", wide.run_sync, _plain_fan_out, WIDTH, must=50),
        _row(
            "fan-out of 1000, per node, async",
            lambda: asyncio.run(wide_async.run()),
            _plain_fan_out,
            WIDTH,
            must=80,
        ),
    ]


def _row(
    name: str, ours: Callable[[], object], floor: Callable[[], object], count: int, *, must: float
) -> Row:
    taken, least = interleaved(ours, floor)
    return Row(name, "us", taken / count * 1e6, FLOOR, least / count * 1e6, must)


def _count(ctx: NodeContext) -> dict[str, int]:
    return {"n": ctx.state["n"] + 1}


async def _count_async(ctx: NodeContext) -> dict[str, int]:
    return {"n": ctx.state["n"] + 1}


def _one(_: NodeContext) -> dict[str, list[int]]:
    return {"out": [1]}


async def _one_async(_: NodeContext) -> dict[str, list[int]]:
    return {"out": [1]}


def _loop(node: Any, store: MemoryCheckpointStore | None = None) -> Graph:
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


def _plain_loop() -> None:
    state, on = {"n": 0}, True
    route: Callable[[dict[str, int]], bool] = lambda state: state["n"] < STEPS  # noqa: E731 - as users write it
    node: Callable[[dict[str, int]], dict[str, int]] = lambda state: {"n": state["n"] + 1}  # noqa: E731
    while on:
        state = {**state, **node(state)}
        on = route(state)


def _plain_fan_out() -> None:
    out: list[int] = []
    node: Callable[[], dict[str, list[int]]] = lambda: {"out": [1]}  # noqa: E731 - as users write it
    for _ in range(WIDTH):
        out.extend(node()["out"])
