"""A node may be given a time without any sign of life, instead of or beside one for the whole attempt."""

import asyncio
import threading

import pytest

from dialoom.graph import START, GraphBuilder, GraphBuildError, NodeContext, NodeError, Timeout
from dialoom.testing import ManualClock
from dialoom.testing.clock import settle
from tests.graph.graphs import PATIENCE, saying, speakers
from tests.graph.test_retry import Stuck, one_node

SILENT = NodeError(
    node="node", message="NodeTimeoutError: it gave no sign of life for its idle timeout of 5 seconds"
)


async def give(sign: str, ctx: NodeContext) -> None:
    match sign:
        case "emit":
            ctx.emit("here")
        case "aemit":
            await ctx.aemit("here")
        case "heartbeat":
            ctx.heartbeat()
        case _:
            pass


@pytest.mark.parametrize("sign", ["emit", "aemit", "heartbeat", "subgraph", "none"])
async def test_signs_of_life_hold_an_idle_timeout_off(sign: str) -> None:
    clock = ManualClock()

    async def step(ctx: NodeContext) -> None:
        await clock.sleep(4)
        await give(sign, ctx)

    async def four(ctx: NodeContext) -> dict[str, list[str]]:
        for _ in range(4):
            await step(ctx)
        return {"said": ["through"]}

    builder = speakers()
    if sign == "subgraph":
        inner = speakers("last")
        names = [f"n{at}" for at in range(4)]
        for name in names:
            inner.add_node(name, step)
        for source, target in zip((START, *names), (*names, "last"), strict=True):
            inner.add_edge(source, target)
        builder.add_subgraph("node", inner.build(), timeout=Timeout(idle=5))
    else:
        builder.add_node("node", four, timeout=Timeout(idle=5))
    builder.add_edge(START, "node")
    run = asyncio.create_task(builder.build(clock=clock).run())
    for _ in range(4):
        await settle()
        await clock.advance(4)
    await settle()
    result = await run
    if sign == "none":
        assert (result.errors, clock.sleeping) == ((SILENT,), 0)
    else:
        assert result.state == {"said": ["last" if sign == "subgraph" else "through"]}


async def test_a_heartbeat_within_a_subgraph_is_one_of_the_whole_node() -> None:
    clock = ManualClock()

    async def slow(ctx: NodeContext) -> dict[str, list[str]]:
        for _ in range(4):
            await clock.sleep(4)
            ctx.heartbeat()
        return {"said": ["through"]}

    inner, outer = speakers(), speakers()
    inner.add_node("slow", slow)
    inner.add_edge(START, "slow")
    outer.add_subgraph("node", inner.build(), timeout=Timeout(idle=5))
    outer.add_edge(START, "node")
    run = asyncio.create_task(outer.build(clock=clock).run())
    for _ in range(4):
        await settle()
        await clock.advance(4)
    assert (await run).state == {"said": ["through"]}


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_a_plain_node_that_gives_no_sign_of_life_is_left_behind(how: str) -> None:
    beats = threading.Semaphore(0)
    stuck = Stuck()

    def node(ctx: NodeContext) -> dict[str, list[str]]:
        ctx.heartbeat()
        beats.release()
        return stuck(ctx)

    graph = one_node(node, timeout=Timeout(idle=0.5))
    result = await asyncio.to_thread(graph.run_sync) if how == "sync" else await graph.run()
    assert [error.message for error in result.errors] == [
        "NodeTimeoutError: it gave no sign of life for its idle timeout of 0.5 seconds"
    ]
    assert result.orphans == 1
    assert beats.acquire(timeout=PATIENCE)
    await stuck.end()


def test_a_plain_node_that_gives_signs_of_life_goes_on() -> None:
    def node(ctx: NodeContext) -> dict[str, list[str]]:
        for _ in range(3):
            threading.Event().wait(0.4)  # real time, of which a sync run has no other
            ctx.heartbeat()
        return {"said": ["through"]}

    assert one_node(node, timeout=Timeout(idle=1.0)).run_sync().state == {"said": ["through"]}


def test_a_timeout_without_an_end_is_a_problem_of_build() -> None:
    with pytest.raises(GraphBuildError, match="its timeout has no end; give seconds, or leave it out"):
        one_node(saying("a"), timeout=Timeout())
    with pytest.raises(GraphBuildError, match="its timeout is -1; give seconds, more than 0"):
        one_node(saying("a"), timeout=Timeout(idle=-1))


def test_a_definition_says_both_timeouts() -> None:
    for timeout, said in (
        (Timeout(total=9), {"timeout": 9.0}),
        (Timeout(idle=2), {"idle_timeout": 2.0}),
        (Timeout(total=9, idle=2), {"timeout": 9.0, "idle_timeout": 2.0}),
    ):
        written = one_node(saying("a"), timeout=timeout).to_dict()
        assert written["nodes"] == [{"name": "node", **said}]
        again = GraphBuilder.from_dict(written, nodes={"node": saying("a")}).build()
        assert again.to_dict() == written
