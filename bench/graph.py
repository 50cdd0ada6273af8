"""The engine against plain Python and, where DIALOOM_RIVALS_PYTHON leads to them, against other engines.

All of one workload is measured turn by turn in one run, as CPU of the process that does it.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench import graph_work as work
from bench.child import Child, child, rivals_python
from bench.measure import medians
from bench.report import Row
from bench.rival_graph import Round

PACKAGES: tuple[str, ...] = ("msgspec",)
ROUNDS = 7
ALONE = 15
RIVAL_SCRIPT = str(Path(__file__).with_name("rival_graph.py"))
LANGGRAPH = "langgraph"
NEOGRAPH = "neograph-engine"
FLOOR = "plain Python"

Measure = Callable[[], float]
"""Does one round; returns CPU seconds per unit of work."""


class Case(NamedTuple):
    """One workload: ours, the most microseconds it may take, and what it is compared with.

    A floor and a rival come with the most our part of theirs may be.
    """

    name: str
    ours: Callable[[], Round]
    most: float
    floor: tuple[str, Callable[[], Round], float] | None = None
    rivals: tuple[tuple[str, str, float], ...] = ()


CASES = (
    Case(
        "superstep, sync",
        work.step_sync,
        4.0,
        (FLOOR, work.plain_loop, 28),
        ((LANGGRAPH, "step_sync", 1 / 60), (NEOGRAPH, "step_sync", 1 / 1.5)),
    ),
    Case(
        "superstep, async",
        work.step_async,
        5.0,
        (FLOOR, work.plain_loop, 33),
        ((LANGGRAPH, "step_async", 1 / 60),),
    ),
    Case(
        "superstep with memory checkpoint",
        work.step_memory,
        6.0,
        (FLOOR, work.plain_loop, 55),
        ((LANGGRAPH, "step_memory", 1 / 60),),
    ),
    Case(
        "superstep with SQLite checkpoint, NORMAL",
        work.step_sqlite,
        40.0,
        None,
        ((LANGGRAPH, "step_sqlite", 1 / 25),),
    ),
    Case(
        "superstep with SQLite written behind",
        work.step_behind,
        15.0,
        None,
        ((LANGGRAPH, "step_sqlite", 1 / 25),),
    ),
    Case(
        "fan-out of 1000, per node, sync",
        work.wide_sync,
        5.0,
        (FLOOR, work.plain_fan_out, 50),
        ((LANGGRAPH, "wide_sync", 1 / 40),),
    ),
    Case(
        "fan-out of 1000, per node, async",
        work.wide_async,
        8.0,
        (FLOOR, work.plain_fan_out, 80),
        ((LANGGRAPH, "wide_async", 1 / 40),),
    ),
    Case("chunk to an observer", work.chunk_to_observer, 0.3),
    Case("chunk to an async reader", work.chunk_to_reader, 2.0, None, ((LANGGRAPH, "chunks", 1.0),)),
    Case(
        "1000 runs at once of 3 nodes of 1 ms, per run",
        work.many_runs,
        200.0,
        ("plain asyncio", work.plain_naps, 2.0),
        ((LANGGRAPH, "many", 1 / 25),),
    ),
)


def rows() -> list[Row]:
    """Return every case against its bound, its floor and the rivals that are there; says who is not."""
    with _rivals() as rivals:
        compared = [row for case in CASES for row in _case_rows(case, rivals)]
        sizes = _size_rows(rivals)
    return [*compared, *sizes, _growth_row(), *_import_rows()]


def _case_rows(case: Case, rivals: "Mapping[str, Rival]") -> list[Row]:
    measures: dict[str, Measure] = {"": _measured(case.ours())}
    if case.floor is not None:
        measures[case.floor[0]] = _measured(case.floor[1]())
    for name, workload, _ in case.rivals:
        if name in rivals:
            measures[name] = partial(rivals[name].child.figure, f"{name} {workload}")
    # alone it is over in a blink, within which a shared machine may be slow throughout
    rounds = ROUNDS if len(measures) > 1 else ALONE * ROUNDS
    taken = {name: 1e6 * seconds for name, seconds in medians(measures, rounds=rounds).items()}
    ours = taken[""]
    found = [Row(case.name, "us", ours, f"{case.most:g} us of CPU", case.most, must=1.0)]
    if case.floor is not None:
        found.append(Row(case.name, "us", ours, case.floor[0], taken[case.floor[0]], case.floor[2]))
    for name, _, must in case.rivals:
        if name in rivals:
            found.append(Row(case.name, "us", ours, rivals[name].title, taken[name], must))
    return found


def _measured(run: Round) -> Measure:
    def measure() -> float:
        began = time.process_time()
        count = run()
        return (time.process_time() - began) / count

    return measure


def _size_rows(rivals: "Mapping[str, Rival]") -> list[Row]:
    name, ours = "disk of a message, of 400", work.bytes_per_message()
    rows = [Row(name, "B", ours, "700 B", 700, must=1.0)]
    if (rival := rivals.get(LANGGRAPH)) is not None:
        theirs = rival.child.figure(f"{LANGGRAPH} bytes")
        rows.append(Row(name, "B", ours, rival.title, theirs, must=1 / 100))
    return rows


def _growth_row() -> Row:
    first, last = zip(*(work.growth() for _ in range(ROUNDS)), strict=True)
    per_step = [1e6 * statistics.median(times) / work.EDGE for times in (last, first)]
    return Row("appending, at 5000 messages", "us", per_step[0], "the same at 200", per_step[1], must=1.3)


def _import_rows() -> list[Row]:
    """Return what importing the engine costs beyond the bare interpreter."""
    taken: dict[str, list[tuple[float, float]]] = {"pass": [], "import dialoom.graph": []}
    for _ in range(2 * ROUNDS):
        for code, costs in taken.items():
            costs.append(_process_cost(code))
    (cpu, memory), (graph_cpu, graph_memory) = (
        [statistics.median(part) for part in zip(*costs, strict=True)] for costs in taken.values()
    )
    rows = [Row("import of the engine", "ms", graph_cpu - cpu, "60 ms of CPU", 60.0, must=1.0)]
    if memory:
        rows.append(Row("memory of the engine", "MB", graph_memory - memory, "12 MB", 12.0, must=1.0))
    else:
        print("graph: no row for memory: this system has no /proc/self/statm", file=sys.stderr)
    return rows


def _process_cost(code: str) -> tuple[float, float]:
    """Return CPU milliseconds and resident megabytes (0 where unknown) of an interpreter that runs `code`."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{_TELL_COST}"], check=True, capture_output=True, text=True
    )
    seconds, pages = json.loads(done.stdout)
    return 1e3 * seconds, pages * os.sysconf("SC_PAGE_SIZE") / 1e6


_TELL_COST = """
import json, os, time
statm = "/proc/self/statm"
pages = int(open(statm).read().split()[1]) if os.path.exists(statm) else 0
print(json.dumps([time.process_time(), pages]))
"""


class Rival(NamedTuple):
    """Another engine with its version, in an interpreter of its own that does one round for each line."""

    title: str
    child: Child


@contextmanager
def _rivals() -> Generator[dict[str, Rival]]:
    """Give the rivals that can be asked; others are named on stderr, so that no row is missing in silence."""
    python = rivals_python("the rows of other engines are left out")
    if not python:
        yield {}
        return
    with child(*python, "-P", RIVAL_SCRIPT) as asked:
        versions: dict[str, str | None] = json.loads(asked.line())
        for name in (name for name, version in versions.items() if version is None):
            print(f"graph: no rows against {name}: {python[0]} has none", file=sys.stderr)
        yield {name: Rival(f"{name} {version}", asked) for name, version in versions.items() if version}
