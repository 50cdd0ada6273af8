"""What it costs to keep a superstep, against a bare insert of the same bytes into the same kind of file."""

import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final

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


def rows() -> list[Row]:
    """Return time per superstep that appends a message of 160 bytes, and the bytes it takes."""
    with tempfile.TemporaryDirectory(prefix="dialoom-bench-") as name:
        folder = Path(name)
        steps, durable = _thread(STEPS), _thread(DURABLE_STEPS)
        cpu, wall = time.process_time, time.perf_counter
        bare = lambda: _bare(folder, "normal", STEPS)  # noqa: E731 - one word for what four rows stand against
        synced = lambda: _bare(folder, "full", DURABLE_STEPS)  # noqa: E731
        return [
            _row("SQLite commit, NORMAL, CPU", cpu, lambda: _sqlite(folder, "normal", steps), bare, must=3),
            _row(
                "SQLite commit, FULL, wall", wall, lambda: _sqlite(folder, "full", durable), synced, must=1.5
            ),
            _row("SQLite write-behind, CPU", cpu, lambda: _behind(folder, steps), bare, must=3),
            _row(
                "JSON lines commit, fdatasync, wall", wall, lambda: _jsonl(folder, durable), synced, must=1.5
            ),
            _row(
                "memory checkpoint, CPU", cpu, lambda: _save(MemoryCheckpointStore(), steps), bare, must=0.5
            ),
            *_growth(folder),
        ]


def _row(
    name: str,
    clock: Callable[[], float],
    ours: Callable[[], int],
    theirs: Callable[[], int],
    *,
    must: float,
) -> Row:
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for times, work in zip(taken, (ours, theirs), strict=True):
            began = clock()
            steps = work()
            times.append((clock() - began) / steps * 1e6)
    return Row(name, "us", statistics.median(taken[0]), BARE, statistics.median(taken[1]), must)


def _growth(folder: Path) -> list[Row]:
    """Return what a message costs in a thread of 5,000, in bytes, and late against early."""
    steps = _thread(LONG)
    path, half = folder / "long", 0
    with SqliteCheckpointStore(path, synchronous="normal") as store:
        taken: list[float] = []
        for checkpoint in steps:
            began = time.process_time()
            store.save(checkpoint)
            taken.append((time.process_time() - began) * 1e6)
            if checkpoint.version == LONG // 2:
                half = _size(store, path)
        whole = _size(store, path)
    return [
        Row("bytes per appended message", "B", whole / LONG, "the limit", 700, 1),
        Row("bytes at 5,000 against 2,500", "kB", whole / 1e3, "twice the half", 2 * half / 1e3, 1.1),
        Row(
            "last 100 supersteps of 5,000, CPU",
            "us",
            statistics.median(taken[-100:]),
            "the first 100",
            statistics.median(taken[:100]),
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


def _save(store: Any, steps: list[Checkpoint]) -> int:
    for checkpoint in steps:
        store.save(checkpoint)
    return len(steps)


def _sqlite(folder: Path, synchronous: Any, steps: list[Checkpoint]) -> int:
    with SqliteCheckpointStore(folder / f"{next(_number)}", synchronous=synchronous) as store:
        return _save(store, steps)


def _behind(folder: Path, steps: list[Checkpoint]) -> int:
    with (
        SqliteCheckpointStore(folder / f"{next(_number)}", synchronous="normal") as inner,
        WriteBehindStore(inner) as store,
    ):
        return _save(store, steps)


def _jsonl(folder: Path, steps: list[Checkpoint]) -> int:
    with JsonlCheckpointStore(folder / f"{next(_number)}") as store:
        return _save(store, steps)


def _bare(folder: Path, synchronous: str, steps: int) -> int:
    """Insert rows as large as ours, each in a transaction of its own."""
    connection = sqlite3.connect(folder / f"{next(_number)}", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("CREATE TABLE row (number INTEGER PRIMARY KEY, body BLOB)")
    body = os.urandom(400)
    for _ in range(steps):
        connection.execute("INSERT INTO row (body) VALUES (?)", (body,))
    connection.close()
    return steps
