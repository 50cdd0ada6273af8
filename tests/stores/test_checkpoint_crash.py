"""Processes that die or share a store: what was acknowledged is there, once."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dialoom.base.errors import ConflictError, UsageError
from dialoom.graph import MemoryCheckpointStore, RunOptions
from dialoom.stores.jsonl_checkpoints import JsonlCheckpointStore
from dialoom.stores.sqlite_checkpoints import SqliteCheckpointStore
from dialoom.testing.checkpoint_contract import checkpoint_after, say
from dialoom.testing.faults import FAULT_POINTS, Faults, FaultyCheckpointStore, InjectedFault
from tests.graph.graphs import line

ROOT = Path(__file__).parents[2]
STORES = {"sqlite": SqliteCheckpointStore, "jsonl": JsonlCheckpointStore}
BOTH = pytest.mark.parametrize("kind", STORES)
ALICE = RunOptions(thread_id="alice")

WRITER = """
import sys
from pathlib import Path
from dialoom.base.errors import ConflictError
from tests.stores.test_checkpoint_crash import STORES
from dialoom.testing.checkpoint_contract import checkpoint_after, say
kind, path, name = sys.argv[1:]
saved = 0
with STORES[kind](Path(path)) as store:
    while saved < 200:
        thread = name if saved % 8 else "shared"
        head = store.load(thread)
        try:
            store.save(checkpoint_after(head, f"{name}:{saved}", say(f"{name}:{saved}"), thread_id=thread))
        except ConflictError as error:
            assert "so another run was first" in str(error), error
            continue
        saved += 1
print(saved)
"""

STEPPER = """
import sys
from pathlib import Path
from dialoom.graph import RunOptions
from dialoom.testing.faults import Faults, FaultyCheckpointStore
from tests.graph.graphs import line
from tests.stores.test_checkpoint_crash import STORES
kind, path, fault = sys.argv[1:]
store = FaultyCheckpointStore(STORES[kind](Path(path)), Faults.killing(fault))
line("a", "b", "c", store=store).run_sync(None, RunOptions(thread_id="alice"))
"""


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@BOTH
def test_four_processes_share_a_store_and_lose_nothing(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "threads"
    writers = [python(WRITER, kind, str(path), f"w{at}") for at in range(4)]
    outputs = [writer.communicate(timeout=100) for writer in writers]
    assert outputs == [("200\n", "")] * 4
    with STORES[kind](path) as store:
        assert sorted(store.threads()) == ["shared", "w0", "w1", "w2", "w3"]
        shared = store.load("shared")
        assert shared is not None
        assert shared.version == 100
        assert sorted(shared.state["said"]) == sorted(
            f"w{at}:{n}" for at in range(4) for n in range(0, 200, 8)
        )
        own = store.load("w0")
        assert own is not None
        assert list(own.state["said"]) == [f"w0:{n}" for n in range(200) if n % 8]


@pytest.mark.slow
def test_fifteen_kills_lose_and_double_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.graph_kill", "--kills", "15"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "graphs, sqlite: 15 kills" in done.stdout
    assert "graphs, jsonl: 15 kills" in done.stdout


@BOTH
@pytest.mark.parametrize("fault", ["before_commit:3", "after_commit:3"])
def test_a_process_that_dies_at_a_commit_is_resumed_where_it_stood(
    kind: str, fault: str, tmp_path: Path
) -> None:
    path = tmp_path / "threads"
    stepper = python(STEPPER, kind, str(path), fault)
    stepper.communicate(timeout=60)
    assert stepper.returncode == -9
    with STORES[kind](path) as store:
        head = store.load("alice")
        assert head is not None
        assert head.state == {"said": ["a"] if fault.startswith("before") else ["a", "b"]}
        assert line("a", "b", "c", store=store).resume_sync("alice").state == {"said": ["a", "b", "c"]}


def test_a_commit_that_fails_before_it_happened_ends_the_run_and_can_be_resumed() -> None:
    faults, store = Faults(), MemoryCheckpointStore()
    faults.fail("before_commit", time=2)
    result = line("a", "b", store=FaultyCheckpointStore(store, faults)).run_sync(None, ALICE)
    assert (result.stop_reason, result.state) == ("error", {"said": []})
    assert "InjectedFault: before_commit was reached 2 times" in result.errors[0].message
    assert line("a", "b", store=store).resume_sync("alice").state == {"said": ["a", "b"]}


def test_a_lost_answer_is_asked_again_without_a_second_commit() -> None:
    faults = Faults()
    faults.fail("after_commit")
    store = FaultyCheckpointStore(MemoryCheckpointStore(), faults)
    first = checkpoint_after(None, "a", say("one"))
    with pytest.raises(InjectedFault):
        store.save(first)
    store.save(first)
    assert list(store.history("alice")) == [first]
    assert faults.reached("after_commit") == 2
    store.erase_thread("alice")
    assert (list(store.threads()), store.blocking) == ([], False)


def test_delivery_has_its_points_too() -> None:
    said: list[str] = []
    faults = Faults()
    faults.fail("after_delivery")
    faults.fail("before_delivery", time=2)
    for _ in range(2):
        with pytest.raises(InjectedFault):
            faults.delivery(lambda: said.append("hi"))
    assert faults.delivery(lambda: said.append("hi") or len(said)) == 2
    assert [faults.reached(point) for point in FAULT_POINTS] == [0, 0, 3, 2]


@pytest.mark.parametrize("text", ["somewhere:1", "after_commit", "after_commit:x"])
def test_a_fault_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no fault; write one as before_commit:1"):
        Faults.killing(text)


@BOTH
def test_a_second_store_object_is_a_second_writer(kind: str, tmp_path: Path) -> None:
    make: Callable[[Path], SqliteCheckpointStore] = STORES[kind]
    with make(tmp_path / "threads") as mine, make(tmp_path / "threads") as yours:
        first = checkpoint_after(None, "a", say("one"))
        mine.save(first)
        assert yours.load("alice") == first
        yours.save(checkpoint_after(first, "yours", say("two")))
        with pytest.raises(ConflictError, match="thread 'alice' is at version 2, so another run was first"):
            mine.save(checkpoint_after(first, "mine", say("two")))
