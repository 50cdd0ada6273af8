"""Effects of `once` that several want at once."""

import asyncio
import threading
from typing import Any

import pytest

from dialoom.graph import START, GraphBuilder, MemoryCheckpointStore, NodeContext, RetryPolicy
from tests.graph.graphs import speakers, wait_for


async def test_an_attempt_waits_for_an_effect_that_the_one_before_left_behind() -> None:
    begun, release, charges = threading.Event(), threading.Event(), list[str]()

    def charge() -> str:
        begun.set()
        wait_for(release)
        charges.append("charged")
        return "paid"

    def pay(ctx: NodeContext) -> dict[str, list[str]]:
        if ctx.attempt > 1:
            release.set()
        return {"said": [ctx.once("charge", charge)]}

    builder = speakers()
    builder.add_node("pay", pay, timeout=0.2, retry=RetryPolicy(attempts=5, delay=0))
    builder.add_edge(START, "pay")
    result = await builder.build(MemoryCheckpointStore()).run()
    assert (result.stop_reason, result.state) == ("finished", {"said": ["paid"]})
    assert charges == ["charged"]


async def test_of_two_who_want_an_effect_at_once_one_has_it_happen() -> None:
    calls: list[int] = []

    async def effect() -> int:
        calls.append(1)
        await asyncio.sleep(0)
        return len(calls)

    async def fails_once() -> int:
        if not calls:
            await effect()
            raise OSError
        return await effect()

    async def both(ctx: NodeContext) -> dict[str, list[Any]]:
        same = await asyncio.gather(*(ctx.aonce("same", effect) for _ in range(3)))
        calls.clear()
        other = await asyncio.gather(
            *(ctx.aonce("other", fails_once) for _ in range(2)), return_exceptions=True
        )
        return {"said": [*map(repr, same), *map(repr, other)]}

    builder = speakers()
    builder.add_node("both", both)
    builder.add_edge(START, "both")
    result = await builder.build(MemoryCheckpointStore()).run()
    assert result.state == {"said": ["1", "1", "1", "OSError()", "2"]}


@pytest.mark.parametrize("way", ["once", "aonce"])
async def test_an_effect_that_asks_for_itself_is_refused(way: str) -> None:
    async def again(ctx: NodeContext) -> Any:
        return await ctx.aonce("key", lambda: again(ctx))

    async def loop(ctx: NodeContext) -> None:
        if way == "aonce":
            await again(ctx)
        else:
            ctx.once("key", lambda: ctx.once("key", list))

    builder = GraphBuilder("loop")
    builder.add_node("loop", loop)
    builder.add_edge(START, "loop")
    (error,) = (await builder.build(MemoryCheckpointStore()).run()).errors
    assert error.message == "UsageError: the effect 'key' of node 'loop' asks for itself; use another key"


def test_a_context_of_an_earlier_superstep_remembers_nothing_more() -> None:
    contexts: list[NodeContext] = []
    effects: list[str] = []

    def late(_: NodeContext) -> None:
        contexts[0].once("late", lambda: effects.append("late"))

    builder = GraphBuilder("late")
    builder.add_node("first", contexts.append, blocking=False)
    builder.add_node("late", late, blocking=False)
    builder.add_edge(START, "first")
    builder.add_edge("first", "late")
    result = builder.build(MemoryCheckpointStore()).run_sync()
    assert (effects, result.steps) == ([], 1)
