"""What a long subgraph and a task with many effects take on disk, and that it comes back whole (G1)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from dialoom.graph import (
    END,
    START,
    Checkpoint,
    CheckpointStore,
    Graph,
    GraphBuilder,
    NodeContext,
    Reducers,
    ResumeCommand,
    RunOptions,
)
from dialoom.graph.codec import UnreadableError
from dialoom.stores import JsonlCheckpointStore, SqliteCheckpointStore
from dialoom.stores.checkpoint_chain import with_states

Opened = Callable[[Path], CheckpointStore]
EACH_STORE = pytest.mark.parametrize("opened", [SqliteCheckpointStore, JsonlCheckpointStore])
OPTIONS = RunOptions(thread_id="t", max_steps=10_000)


def talk(steps: int, *, ask: int = 0, deep: int = 1) -> GraphBuilder:
    """Append a message in each of `steps` supersteps, `deep` subgraphs down, and ask once at `ask`."""

    def say(ctx: NodeContext) -> dict[str, list[str]]:
        number = len(ctx.state.get("said", []))
        if number == ask > 0:
            return {"said": [ctx.interrupt("go on?")]}
        return {"said": [f"a message of some forty characters or so {number:5}"]}

    inner = GraphBuilder("talk")
    inner.add_channel("said", Reducers.append, type=list[str])
    inner.add_node("say", say, blocking=False)
    inner.add_edge(START, "say")
    inner.add_conditional_edges(
        "say", lambda state: "say" if len(state["said"]) < steps else END, {"say": "say", END: END}
    )
    for _ in range(deep):
        around = GraphBuilder("around")
        around.add_channel("said", Reducers.append, type=list[str])
        around.add_subgraph("talk", inner.build())
        around.add_edge(START, "talk")
        inner = around
    return inner


def deep_talk(steps: int) -> GraphBuilder:
    return talk(steps, deep=2)


def effects(count: int) -> GraphBuilder:
    def pay(ctx: NodeContext) -> dict[str, int]:
        return {"paid": sum(ctx.once(f"bill {at}", lambda at=at: len(f"{at:40}")) for at in range(count))}

    builder = GraphBuilder("bills")
    builder.add_channel("paid", type=int)
    builder.add_node("pay", pay)
    builder.add_edge(START, "pay")
    return builder


def size_of(path: Path, opened: Opened, builder: GraphBuilder) -> int:
    store = cast("Any", opened(path))
    assert builder.build(store).run_sync(options=OPTIONS).stop_reason == "finished"
    store.close()
    return path.stat().st_size


@EACH_STORE
@pytest.mark.parametrize("make", [talk, deep_talk, effects])
def test_twice_the_work_in_one_task_takes_twice_the_bytes(
    opened: Opened, make: Callable[[int], GraphBuilder], tmp_path: Path
) -> None:
    some = size_of(tmp_path / "some", opened, make(100))
    assert size_of(tmp_path / "twice", opened, make(200)) <= 2.3 * some


@EACH_STORE
@pytest.mark.parametrize("deep", [1, 3])
def test_a_long_subgraph_goes_on_in_another_process_where_it_paused(
    opened: Opened, deep: int, tmp_path: Path
) -> None:
    first = talk(60, ask=40, deep=deep).build(opened(tmp_path / "store"))
    assert first.run_sync(options=OPTIONS).stop_reason == "interrupted"
    again = talk(60, ask=40, deep=deep).build(opened(tmp_path / "store"))
    (question,) = next(iter(again.history("t"))).interrupts
    answer = ResumeCommand.many({question.id: "yes"})
    result = again.resume_sync("t", answer, options=OPTIONS)
    assert (result.stop_reason, len(result.state["said"]), result.state["said"][40]) == (
        "finished",
        60,
        "yes",
    )


def interrupted(store: CheckpointStore) -> Graph:
    graph = talk(60, ask=40).build(store)
    graph.run_sync(options=OPTIONS)
    return graph


@EACH_STORE
def test_each_checkpoint_of_a_long_subgraph_can_be_forked_and_edited(opened: Opened, tmp_path: Path) -> None:
    store = opened(tmp_path / "store")
    graph = interrupted(store)
    for number, checkpoint in enumerate(list(graph.history("t"))[:12]):
        thread = f"fork {number}"
        graph.fork_sync(checkpoint, thread)
        graph.update_state_sync(thread, {})
        reopened = opened(tmp_path / "store").load(thread)
        assert reopened is not None
        assert reopened.frontier.notes[0].child is not None
        assert checkpoint.frontier.notes[0].child is not None
        assert reopened.frontier.notes[0].child.state == checkpoint.frontier.notes[0].child.state


@EACH_STORE
def test_a_checkpoint_taken_out_of_its_thread_keeps_what_its_subgraph_holds(
    opened: Opened, tmp_path: Path
) -> None:
    taken = next(iter(interrupted(opened(tmp_path / "one")).history("t")))
    alone = msgspec.structs.replace(taken, parent_id=None, version=1)
    opened(tmp_path / "other").save(alone)
    found = opened(tmp_path / "other").load("t")
    assert found is not None
    assert found.frontier.notes == taken.frontier.notes


def test_what_follows_notes_that_are_gone_is_unreadable(tmp_path: Path) -> None:
    history = list(interrupted(SqliteCheckpointStore(tmp_path / "store")).history("t"))
    empty, last = history[-1], history[0]
    with pytest.raises(UnreadableError, match=r"where the subgraph of 'talk' stood before it is missing"):
        list(with_states([empty, last]))


def test_effects_that_follow_others_which_are_gone_are_unreadable(tmp_path: Path) -> None:
    graph = effects(3).build(SqliteCheckpointStore(tmp_path / "store"))
    graph.run_sync(options=OPTIONS)
    history: list[Checkpoint] = list(graph.history("t"))
    with pytest.raises(UnreadableError, match=r"the effects of 'pay' before it are missing"):
        list(with_states([history[-1], history[1]]))
