"""Properties over random graphs: what is replayed is what was, whoever finished first."""

import asyncio
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.graph import (
    EMPTY,
    END,
    START,
    Graph,
    GraphBuilder,
    MemoryCheckpointStore,
    NodeContext,
    NodeError,
    NodeResult,
    Reducers,
    ResumeCommand,
    RunOptions,
    Send,
    State,
    replay,
)
from dialoom.graph.commit import conclude, conclude_any
from dialoom.graph.plan import Frontier
from dialoom.testing.clock import settle

REDUCERS = {
    "plain": Reducers.overwrite,
    "log": Reducers.append,
    "facts": Reducers.merge,
    "most": Reducers.custom(max, name="max"),
    "total": Reducers.sum,
    "tags": Reducers.set_union,
    "rows": Reducers.upsert("id"),
}
ROWS = st.builds(lambda at, value: {"id": at, "value": value}, st.integers(0, 3), st.integers())
WRITES = st.fixed_dictionaries(
    {},
    optional={
        "plain": st.integers() | st.lists(st.integers(), max_size=3),
        "log": st.lists(st.integers(), max_size=3),
        "facts": st.dictionaries(st.sampled_from("abc"), st.integers(), max_size=3),
        "most": st.integers(),
        "total": st.integers(),
        "tags": st.frozensets(st.integers(0, 5), max_size=3),
        "rows": st.lists(ROWS | st.builds(Reducers.remove, st.integers(0, 3)), max_size=3),
    },
)


@st.composite
def plans(draw: st.DrawFn) -> list[tuple[dict[str, Any], list[int], str]]:
    """For each node: what it writes, which nodes follow, and how it ends."""
    count = draw(st.integers(1, 6))
    return [
        (
            draw(WRITES),
            draw(st.lists(st.integers(0, count - 1), max_size=3)),
            draw(st.sampled_from(ENDINGS)),
        )
        for _ in range(count)
    ]


ENDINGS = [
    "edges",
    "edges",
    "edges",
    "goto",
    "route",
    "fail",
    "halt",
    "send",
    "join",
    "ask",
    "once",
    "map",
    "sub",
]


def asking(result: NodeResult) -> Callable[[NodeContext], NodeResult]:
    def node(ctx: NodeContext) -> NodeResult:
        ctx.interrupt("sure?")
        return result

    return node


def sending(result: NodeResult) -> Callable[[NodeContext], NodeResult]:
    """Sends, unless it was sent to itself: nodes that all send on to three others never come to an end."""
    return lambda ctx: result if ctx.input is None else NodeResult.ok(result.writes)


def noting(result: NodeResult) -> Callable[[NodeContext], NodeResult]:
    def node(ctx: NodeContext) -> NodeResult:
        ctx.once("effect", lambda: ctx.node)
        return result if ctx.has_resume else asking(result)(ctx)

    return node


def item(ctx: NodeContext) -> int:
    return ctx.input or ctx.interrupt("zero?")


def child_of(writes: dict[str, Any]) -> Graph:
    """A graph that writes, asks and writes again."""
    builder = GraphBuilder("child")
    for name, reducer in REDUCERS.items():
        builder.add_channel(name, reducer)
    builder.add_node("first", lambda _: writes, blocking=False)
    builder.add_node("second", asking(NodeResult.ok(writes)), blocking=False)
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    return builder.build()


def graph_of(
    plan: list[tuple[dict[str, Any], list[int], str]],
    store: MemoryCheckpointStore | None,
    wrap: Callable[[str, NodeResult], Any] = lambda _, result: lambda __: result,
) -> Graph:
    builder = GraphBuilder("random")
    for name, reducer in REDUCERS.items():
        builder.add_channel(name, reducer)
    builder.add_channel("items", default=[1, 0, 2])
    maps = {f"n{at}" for at, (_, __, ending) in enumerate(plan) if ending == "map"}
    joined = {f"n{target}" for _, targets, __ in plan[:1] for target in targets}
    for at, (writes, targets, ending) in enumerate(plan):
        names = [f"n{target}" for target in targets]
        result = {
            "fail": NodeResult.fail("planned"),
            "goto": NodeResult.ok(writes, goto=names),
            "halt": NodeResult.ok(writes, halt=True),
            "send": NodeResult.ok(writes, sends=[Send(name, at) for name in names if name not in maps]),
        }.get(ending, NodeResult.ok(writes))
        if ending == "sub":
            builder.add_subgraph(f"n{at}", child_of(writes))
        elif ending == "map":
            builder.add_map(f"n{at}", item, over="items", into="log")
        else:
            made = {"ask": asking, "once": noting, "send": sending}
            node = made.get(ending, lambda result, at=at: wrap(f"n{at}", result))(result)
            builder.add_node(f"n{at}", node, blocking=False, dynamic=True)
        if ending == "join":
            for name in set(names) - joined - {f"n{at}"}:
                builder.add_join([f"n{at}", *({"n0"} - {name, f"n{at}"})], name, "reachable")
                joined.add(name)
        elif ending == "route":
            builder.add_conditional_edges(f"n{at}", lambda _, names=names: names)
        else:
            for name in names:
                builder.add_edge(f"n{at}", name)
    builder.add_edge(START, "n0")
    builder.add_edge(START, f"n{len(plan) // 2}")
    # what a goto or a send leads to only must be known to the checks
    for at in sorted(maps | {f"n{at}" for at, (_, __, ending) in enumerate(plan) if ending == "sub"}):
        builder.add_conditional_edges(START, lambda _: [], {at: at})
    return builder.build(store)


@given(plans(), WRITES, st.integers(1, 4))
@settings(deadline=None)
def test_a_reload_equals_what_was_live(plan: Any, inputs: dict[str, Any], resumes: int) -> None:
    """G2: what is reloaded is what was live, and so is every replay of it."""
    store = MemoryCheckpointStore()
    graph = graph_of(plan, store)
    options = RunOptions(thread_id="alice", max_steps=4)
    result = graph.run_sync(inputs, options)
    for _ in range(resumes):
        head = store.load("alice")
        assert head is not None
        assert (head.state, head.id) == (result.state, result.checkpoint_id)
        answers = ResumeCommand.many({each.id: 7 for each in result.interrupts[:2]})
        result = graph.resume_sync("alice", answers, options=options)
    history = list(graph.history("alice"))
    state = EMPTY
    for kept in reversed(history):
        state = replay(state, kept.ops)
        assert kept.state == state
        assert store.load("alice", kept.id) == kept
    assert [kept.version for kept in history] == list(range(len(history), 0, -1))


@given(plans(), WRITES)
@settings(deadline=None)
def test_with_and_without_a_store_sync_and_async_a_run_comes_to_the_same(
    plan: Any, inputs: dict[str, Any]
) -> None:
    options = RunOptions(max_steps=5)
    kept = graph_of(plan, MemoryCheckpointStore()).run_sync(inputs, options)
    free = graph_of(plan, None).run_sync(inputs, options)
    looped = asyncio.run(graph_of(plan, None).run(inputs, options))
    for other in (free, looped):
        assert (other.state, other.stop_reason, other.steps, other.errors, other.interrupts) == (
            kept.state,
            kept.stop_reason,
            kept.steps,
            kept.errors,
            kept.interrupts,
        )


@given(st.permutations(range(5)), st.lists(WRITES, min_size=5, max_size=5))
@settings(deadline=None, max_examples=50)
def test_who_finishes_first_does_not_matter(order: list[int], writes: list[dict[str, Any]]) -> None:
    """G2: five nodes at once, whoever finishes first."""
    plan = [(each, [], "edges") for each in writes]

    def build(store: MemoryCheckpointStore, wrap: Any) -> Graph:
        builder = GraphBuilder("race")
        for name, reducer in REDUCERS.items():
            builder.add_channel(name, reducer)
        for at, (each, _, _) in enumerate(plan):
            builder.add_node(f"n{at}", wrap(f"n{at}", NodeResult.ok(each)))
            builder.add_edge(START, f"n{at}")
        return builder.build(store)

    async def race() -> State:
        turns = {f"n{at}": asyncio.Event() for at in range(5)}

        def wait_turn(name: str, result: NodeResult) -> Any:
            async def node(_: NodeContext) -> NodeResult:
                await turns[name].wait()
                return result

            return node

        store = MemoryCheckpointStore()
        run = asyncio.create_task(build(store, wait_turn).run(None, RunOptions(thread_id="alice")))
        await settle(3)
        for at in order:
            turns[f"n{at}"].set()
            await settle(3)
        result = await run
        head = store.load("alice")
        assert head is not None
        assert head.state == result.state
        return result.state

    calm = build(MemoryCheckpointStore(), lambda _, result: lambda __: result).run_sync().state
    assert asyncio.run(race()) == calm


@given(plans(), WRITES)
def test_the_short_way_to_conclude_a_superstep_comes_to_the_same_as_the_long_way(
    plan: Any, writes: dict[str, Any]
) -> None:
    graph = graph_of(plan, None)
    table = graph._setup.table
    state = State(log=[1], facts={"a": 0})
    for name in table.nodes:
        for outcome in (
            NodeResult.ok(writes),
            NodeResult.ok(writes, halt=True),
            NodeResult.ok(writes, goto=END),
            NodeResult.ok({"typo": 1}),
            NodeError(node=name, message="failed"),
            None,
        ):
            for deferred in ((), tuple(table.nodes)):
                frontier = Frontier((name,), deferred) if deferred else table.frontier((name,))
                short = conclude(table, state, frontier, [outcome])
                assert short == conclude_any(table, state, frontier, [outcome])
