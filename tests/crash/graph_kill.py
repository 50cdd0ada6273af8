"""Kills a process while it runs a graph, lets another go on, and compares the store with what was promised.

`python -m tests.crash.graph_kill` does so on SQLite and on JSON lines and exits 1 on any loss. The
process writes down, past any buffer, which supersteps were acknowledged and which effects happened.
"""

import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dialoom.base.events import Event
from dialoom.graph import (
    END,
    START,
    CheckpointStore,
    Graph,
    GraphBuilder,
    NodeContext,
    Reducers,
    RunOptions,
    StepCommitted,
)
from dialoom.stores.jsonl_checkpoints import JsonlCheckpointStore
from dialoom.stores.sqlite_checkpoints import SqliteCheckpointStore
from tests.crash.arguments import read_arguments

STEPS = 50
STORES: dict[str, Callable[[Path], Any]] = {"sqlite": SqliteCheckpointStore, "jsonl": JsonlCheckpointStore}
LONGEST = 0.15
"""Seconds a process lives at most before it is killed, a part of what a run takes."""


class Notes:
    """Lines that are in the hands of the system once `write` returns; as an observer it notes commits."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, *words: str) -> None:
        os.write(self._descriptor, " ".join(words).encode() + b"\n")

    def on_event(self, event: Event) -> None:
        if isinstance(event, StepCommitted):
            self.write("committed", event.thread_id, str(event.step))


def graph_of(store: CheckpointStore, notes: Notes) -> Graph:
    """Three nodes at a time for 50 supersteps; one has an effect each time."""
    builder = GraphBuilder("kill")
    builder.add_channel("n", default=0)
    builder.add_channel("said", Reducers.append)
    builder.add_node("count", lambda ctx: {"n": ctx.state["n"] + 1, "said": [f"count {ctx.state['n']}"]})
    builder.add_node("talk", lambda ctx: {"said": [f"talk {ctx.state['n']}"]})

    def pay(ctx: NodeContext) -> dict[str, list[str]]:
        key = f"{ctx.thread_id}/{ctx.state['n']}"
        receipt = ctx.once("pay", lambda: notes.write("effect", key) or key)
        notes.write("kept", key)
        return {"said": [f"pay {receipt}"]}

    builder.add_node("pay", pay)
    for name in ("count", "talk", "pay"):
        builder.add_edge(START, name)
        builder.add_conditional_edges(name, lambda state, name=name: name if state["n"] < STEPS else END)
    return builder.build(store, observers=[notes])


def run_until_killed(kind: str, folder: Path, thread_id: str) -> None:
    """Begin a thread or go on with it; the end of this process, if it gets there."""
    with STORES[kind](folder / "threads") as store:
        graph = graph_of(store, Notes(folder / "notes"))
        options = RunOptions(max_steps=STEPS)
        if store.load(thread_id) is None:
            result = graph.run_sync({}, RunOptions(thread_id=thread_id, max_steps=STEPS))
        else:
            result = graph.resume_sync(thread_id, options=options)
    os._exit(0 if result.stop_reason == "finished" else 3)


class Tally:
    """What the kills came to. `problems` is empty when nothing was lost, doubled or repeated."""

    def __init__(self) -> None:
        self.kills = 0
        self.threads = 0
        self.committed = 0
        self.effects = 0
        self.in_flight = 0
        self.problems: list[str] = []

    def check(self, kind: str, folder: Path, thread_id: str) -> None:
        """Compare what the thread holds with what was noted of it."""
        with STORES[kind](folder / "threads") as store:
            history = list(store.history(thread_id))
        versions = [checkpoint.version for checkpoint in history]
        if versions != list(range(len(versions), 0, -1)):
            self.problems.append(f"{kind} {thread_id}: versions {versions}")
        state = history[0].state if history else {"n": 0, "said": []}
        done = state.get("n", 0)
        expected = [said for n in range(done) for said in (f"count {n}", f"talk {n}", f"pay {thread_id}/{n}")]
        if list(state.get("said", [])) != expected:
            self.problems.append(f"{kind} {thread_id}: after {done} supersteps it says {state.get('said')}")
        notes = read_notes(folder, thread_id)
        acknowledged = sum(1 for word, _ in notes if word == "committed")
        if acknowledged > done:
            self.problems.append(f"{kind} {thread_id}: {acknowledged - done} supersteps lost")
        self._check_effects(kind, notes, done)

    def finish(self, kind: str, folder: Path, thread_id: str) -> None:
        """Count a thread that came to its end."""
        notes = read_notes(folder, thread_id)
        effects = [key for word, key in notes if word == "effect"]
        self.threads += 1
        self.committed += STEPS
        self.effects += len(set(effects))
        self.in_flight += len(effects) - len(set(effects))
        if len(set(effects)) != STEPS:
            self.problems.append(f"{kind} {thread_id}: {len(set(effects))} effects of {STEPS}")

    def _check_effects(self, kind: str, notes: list[tuple[str, str]], done: int) -> None:
        kept: set[str] = set()
        for word, key in notes:
            if word == "kept":
                kept.add(key)
            elif word == "effect" and key in kept:
                self.problems.append(f"{kind}: the effect {key} happened again after it was kept")


def read_notes(folder: Path, thread_id: str) -> list[tuple[str, str]]:
    path = folder / "notes"
    lines = path.read_text().splitlines() if path.exists() else []
    pairs = [(line.split()[0], line.split()[1]) for line in lines]
    return [pair for pair in pairs if pair[1].partition("/")[0] == thread_id]


def kill_at_random(kind: str, folder: Path, kills: int, rng: random.Random) -> Tally:
    """Kill `kills` times, resume after each, and end when the thread at hand is through."""
    tally = Tally()
    finished = True
    while tally.kills < kills or not finished:
        thread_id = f"thread{tally.threads}"
        child = os.fork()
        if child == 0:
            run_until_killed(kind, folder, thread_id)
        time.sleep(rng.random() * LONGEST)
        if tally.kills < kills:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        tally.check(kind, folder, thread_id)
        finished = os.WIFEXITED(status)
        if not finished:
            tally.kills += 1
        elif os.WEXITSTATUS(status):
            tally.problems.append(f"{kind} {thread_id}: the run ended with {os.WEXITSTATUS(status)}")
            return tally
        else:
            tally.finish(kind, folder, thread_id)
    return tally


def main() -> int:
    chosen = read_arguments("graph_kill", __doc__)
    problems: list[str] = []
    with ExitStack() as stack:
        for kind in STORES:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dialoom-crash-")))
            tally = kill_at_random(kind, folder, chosen.kills, random.Random(chosen.seed))
            print(
                f"graphs, {kind}: {tally.kills} kills, {tally.threads} runs,"
                f" {tally.committed} supersteps committed, {tally.effects} effects kept,"
                f" {tally.in_flight} repeated in flight, {len(tally.problems)} problems",
                flush=True,
            )
            problems += tally.problems
    print("\n".join([*problems[:20], f"graphs: seed {chosen.seed}"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
