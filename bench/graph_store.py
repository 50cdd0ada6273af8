"""What it costs to keep a superstep, against a bare insert of the same bytes into the same kind of file."""

import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeAlias

from bench.measure import medians
from bench.report import Row
from dialoom.graph import Checkpoint, Frontier, MemoryCheckpointStore, Op, State, replay
from dialoom.stores.jsonl_checkpoints import JsonlCheckpointStore
from dialoom.stores.sqlite_checkpoints import SqliteCheckpointStore
from dialoom.stores.write_behind import WriteBehindStore

PACKAGES: tuple[str, ...] = ("msgspec",)
STEPS: Final = 2_000
DURABLE_STEPS: Final = 200
LONG: Final = 5_000
ROUNDS: Final = 5
BARE: Final = "a bare insert"
_number = count()
Clock: TypeAlias = Callable[[], float]
Work: TypeAlias = Callable[[Clock], float]
"""Does some steps and returns the microseconds of one, by that clock."""


def rows() -> list[Row]:
    """Return time per superstep that appends a message of 160 bytes, and the bytes it takes."""
    with tempfile.TemporaryDirectory(prefix="dialoom-bench-") as name:
        folder = Path(name)
        steps, durable = _thread(STEPS), _thread(DURABLE_STEPS)
        cpu, wall = time.process_time, time.perf_counter
        return [
            _row(
                "SQLite commit, NORMAL, CPU",
                _sqlite(folder, "normal", steps),
                _bare(folder, "normal"),
                cpu,
                3,
            ),
            _row(
                "SQLite commit, FULL, wall",
                _sqlite(folder, "full", durable),
                _bare(folder, "full"),
                wall,
                1.5,
            ),
            _row("SQLite write-behind, CPU", _behind(folder, steps), _bare(folder, "normal"), cpu, 3.5),
            _row("JSON lines commit, synced, wall", _jsonl(folder, durable), _bare(folder, "full"), wall, 2),
            _row("memory checkpoint, CPU", _memory(steps), _bare(folder, "normal"), cpu, 0.5),
            *_growth(folder),
        ]


def _row(name: str, ours: Work, theirs: Work, clock: Clock, must: float) -> Row:
    took = medians({"ours": partial(ours, clock), BARE: partial(theirs, clock)}, rounds=ROUNDS)
    return Row(name, "us", took["ours"], BARE, took[BARE], must)


def _growth(folder: Path) -> list[Row]:
    """Return what a message costs in a thread of 5,000: in bytes, and in time against a young one's.

    Each has a file of its own, because where several threads share one, the newest is the cheapest to add to.
    """
    steps, path = _thread(LONG), folder / "long"
    late, early = list[float](), list[float]()
    with (
        SqliteCheckpointStore(path, synchronous="normal") as store,
        SqliteCheckpointStore(folder / "young", synchronous="normal") as other,
    ):
        _save(store, steps[: LONG // 2])
        half = _size(store, path)
        _save(store, steps[LONG // 2 : -100])
        # turn by turn, so that a noisy machine disturbs both alike
        for old, young in zip(steps[-100:], _thread(100), strict=True):
            for times, home, checkpoint in ((late, store, old), (early, other, young)):
                began = time.process_time()
                home.save(checkpoint)
                times.append((time.process_time() - began) * 1e6)
        whole = _size(store, path)
    return [
        Row("bytes per appended message", "B", whole / LONG, "the limit", 700, 1),
        Row("bytes at 5,000 against 2,500", "kB", whole / 1e3, "twice the half", 2 * half / 1e3, 1.1),
        Row(
            "last 100 supersteps of 5,000, CPU",
            "us",
            statistics.median(late),
            "the first 100",
            statistics.median(early),
            1.3,
        ),
    ]


def _size(store: SqliteCheckpointStore, path: Path) -> int:
    store.compact()
    return path.stat().st_size


def _thread(steps: int) -> list[Checkpoint]:
    """Return a thread whose supersteps append a message each."""
    state, made = State(), list[Checkpoint]()
    for version in range(1, steps + 1):
        ops = (Op("messages", "extend", [{"role": "user", "content": "x" * 140}]),)
        state = replay(state, ops)
        made.append(
            Checkpoint(
                id=f"0192f3c4-aaaa-7bbb-8ccc-1234567890ab:{version}",
                thread_id="0192f3c4-aaaa-7bbb-8ccc-000000000000",
                version=version,
                parent_id=made[-1].id if made else None,
                run_id="0192f3c4-aaaa-7bbb-8ccc-1234567890ab",
                step=version,
                created=1.7e9 + version,
                fingerprint="0123456789abcdef",
                frontier=Frontier(("model",)),
                ops=ops,
                state=state,
            )
        )
    return made


def _save(store: Any, steps: list[Checkpoint], clock: Clock = time.process_time) -> float:
    """Return the microseconds of one save; making and opening the file is not in them."""
    began = clock()
    for checkpoint in steps:
        store.save(checkpoint)
    return (clock() - began) / len(steps) * 1e6


def _sqlite(folder: Path, synchronous: Any, steps: list[Checkpoint]) -> Work:
    def work(clock: Clock) -> float:
        with SqliteCheckpointStore(folder / f"{next(_number)}", synchronous=synchronous) as store:
            return _save(store, steps, clock)

    return work


def _behind(folder: Path, steps: list[Checkpoint]) -> Work:
    def work(clock: Clock) -> float:
        path = folder / f"{next(_number)}"
        with SqliteCheckpointStore(path, synchronous="normal") as inner, WriteBehindStore(inner) as store:
            began = clock()
            _save(store, steps)
            store.flush()
            return (clock() - began) / len(steps) * 1e6

    return work


def _jsonl(folder: Path, steps: list[Checkpoint]) -> Work:
    def work(clock: Clock) -> float:
        with JsonlCheckpointStore(folder / f"{next(_number)}") as store:
            return _save(store, steps, clock)

    return work


def _memory(steps: list[Checkpoint]) -> Work:
    return lambda clock: _save(MemoryCheckpointStore(), steps, clock)


def _bare(folder: Path, synchronous: str) -> Work:
    """Insert rows as large as ours, each in a transaction of its own."""
    steps = STEPS if synchronous == "normal" else DURABLE_STEPS

    def work(clock: Clock) -> float:
        connection = sqlite3.connect(folder / f"{next(_number)}", isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("CREATE TABLE row (number INTEGER PRIMARY KEY, body BLOB)")
        body = os.urandom(400)
        began = clock()
        for _ in range(steps):
            connection.execute("INSERT INTO row (body) VALUES (?)", (body,))
        taken = clock() - began
        connection.close()
        return taken / steps * 1e6

    return work
