"""Real manuals, as many megabytes as there are, through `dialoom ingest`: speed, memory, kills and citations.

Runs by name only: `DIALOOM_MANUALS=FOLDER:FOLDER python -m bench rag_manuals`. Debian's packages
`python3-doc`, `debian-reference-en` and `debian-reference-zh-cn` have HTML and PDF in two languages; the
questions below are about them, and those whose manual is not there are left out.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from bench.report import Row
from dialoom.base.errors import UsageError
from dialoom.llm import OfflineProvider
from dialoom.rag import HashEmbedder, build_rag_query_graph
from dialoom.stores import SqliteVectorStore

PACKAGES = ("numpy", "pypdfium2", "resiliparse")
MANUALS = "DIALOOM_MANUALS"
MS_PER_MB = 200.0
KILLS = 10
PEAK_MB = 400.0
QUESTIONS = {
    "csv.html": "What does csv.DictReader do when a row has more fields than fieldnames?",
    "heapq.html": "Which function of heapq returns the n largest elements of a dataset?",
    "debian-reference.en.pdf": "Which command shows disk space usage of all mounted filesystems?",
    "debian-reference.zh-cn.pdf": "怎样查看已挂载文件系统的磁盘空间使用情况？",
}

Held = Mapping[str, Sequence[str]]
"""The texts of the chunks of each document."""


class Run(msgspec.Struct, frozen=True):
    """One `dialoom ingest` that ended by itself or was killed. CPU counts the readers it started."""

    killed: bool
    cpu: float
    wall: float
    peak_mb: float


def rows() -> list[Row]:
    """Return what it costs, and how many documents kills and questions did not come through."""
    folders = [Path(name) for name in os.environ.get(MANUALS, "").split(os.pathsep) if name]
    if not folders:
        raise UsageError(f"set {MANUALS} to the folders of manuals, parted by {os.pathsep!r}")
    with tempfile.TemporaryDirectory() as home:
        whole, killed = Path(home) / "whole.sqlite", Path(home) / "killed.sqlite"
        runs = [ingest(folder, whole) for folder in folders]
        held = held_in(whole)
        wrong = harmed_by_kills(folders, killed, held, most=max(run.wall for run in runs) / 6)
        uncited = [name for name, question in asked_of(held).items() if not cites(whole, question, name)]
    megabytes = sum(Path(name).stat().st_size for name in {name.partition("#")[0] for name in held}) / 1e6
    print(f"{megabytes:.0f} MB, {len(held)} documents", file=sys.stderr)
    wall, cpu = (
        1000 * sum(each) / megabytes for each in zip(*((run.wall, run.cpu) for run in runs), strict=True)
    )
    peak = max(run.peak_mb for run in runs)
    return [
        Row("ingest, while nothing else runs", "ms/MB", wall, "5 MB/s", MS_PER_MB, must=1.0),
        Row("ingest, CPU of all its processes", "ms/MB", cpu, "5 MB/s", MS_PER_MB, must=1.0),
        Row("peak memory", "MB", peak, "400 MB however much is read", PEAK_MB, must=1.0),
        Row(f"documents harmed by {KILLS} kills", "", len(wrong), "all", len(held), must=0.0),
        Row("questions without their manual", "", len(uncited), "all", len(QUESTIONS), must=0.0),
    ]


def ingest(folder: Path, index: Path, *, kill_after: float | None = None) -> Run:
    """Run the command in a process of its own, and kill it after so many seconds."""
    command = [sys.executable, "-m", "dialoom", "ingest", str(folder), "--index", str(index)]
    began = time.monotonic()
    child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child.pid, signal.SIGKILL)  # also when it has ended: nobody has waited for it yet
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return Run(
        child.returncode != 0, used.ru_utime + used.ru_stime, time.monotonic() - began, used.ru_maxrss / 1024
    )


def held_in(index: Path) -> Held:
    """All that an index holds; nothing while there is none."""
    if not index.exists() or not index.stat().st_size:
        return {}
    with SqliteVectorStore(index, read_only=True) as store:
        held = {name: [chunk.text for chunk in store.chunks_of(name)] for name in store.documents()}
        assert len(store) == sum(map(len, held.values())), "a chunk of no document"
    return held


def harmed_by_kills(folders: Sequence[Path], index: Path, whole: Held, *, most: float) -> set[str]:
    """Kill ten ingests at random moments, go on after each; the documents not there once and in full."""
    rng = random.Random(8)  # noqa: S311 - moments
    harmed: set[str] = set()
    for number in range(KILLS):
        ingest(folders[number % len(folders)], index, kill_after=rng.uniform(0.3, most))
        harmed |= {name for name, texts in held_in(index).items() if texts != whole.get(name)}
    for folder in folders:
        ingest(folder, index)
    end = held_in(index)
    return harmed | {name for name in whole.keys() | end.keys() if whole.get(name) != end.get(name)}


def asked_of(held: Held) -> dict[str, str]:
    """The questions whose manual is there, by its name."""
    names = {Path(name).name for name in held}
    return {name: question for name, question in QUESTIONS.items() if name in names}


def cites(index: Path, question: str, name: str) -> bool:
    """Whether the offline answer cites the manual."""
    with SqliteVectorStore(index, read_only=True) as store:
        graph = build_rag_query_graph(store, HashEmbedder(), OfflineProvider()).build()
        sources = graph.run_sync({"query": question}).raise_for_error().state["answer_sources"]
    return any(Path(source.doc_id).name == name for source in sources)
