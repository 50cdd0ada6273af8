"""A triage that outlives its process: until its results are written, what is through is kept beside them."""

import asyncio
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from dialoom.apps.triage import MAX_STEPS, STORED_TYPES
from dialoom.base.errors import StoreError
from dialoom.cli.interrupt import stop_on_interrupt
from dialoom.cli.progress import counted, say
from dialoom.graph import Checkpoint, Graph, NodeEnd, RunControl, RunOptions, RunResult
from dialoom.stores import SqliteCheckpointStore


def unfinished_files(out: Path) -> tuple[Path, ...]:
    """Return the file that keeps what leads to `out`, and those that SQLite puts beside it."""
    return tuple(out.with_name(f"{out.name}.unfinished{end}") for end in ("", "-wal", "-shm", "-journal"))


class Unfinished:
    """The runs that lead to one result file, in `<name>.unfinished` beside it; `thread` tells this one.

    There are others when tickets, cases or model have changed; they wait for the old ones to come back.
    """

    def __init__(self, out: Path, thread: str) -> None:
        self.path = unfinished_files(out)[0]
        self.thread = thread

    @contextmanager
    def opened(self) -> Generator[SqliteCheckpointStore]:
        """Give the store; its file goes once no run in it is left. Raises `StoreError`."""
        with self._told(), SqliteCheckpointStore(self.path, types=STORED_TYPES) as store:
            yield store
            is_empty = not any(store.threads())
        if is_empty:
            self.path.unlink(missing_ok=True)

    @contextmanager
    def _told(self) -> Generator[None]:
        """Say of a damaged file what is lost with it; a full disk or a lock passes, and is told as it is."""
        try:
            yield
        except StoreError as error:
            if error.__cause__ is None or isinstance(error.__cause__, sqlite3.OperationalError | OSError):
                raise
            raise StoreError(f"{self.path} is damaged; delete it to begin anew") from error

    def find(self, store: SqliteCheckpointStore) -> Checkpoint | None:
        """Return where this run stands; None when it begins anew, as one whose results were written does."""
        found = store.load(self.thread)
        if found is not None and found.frontier.is_over:
            store.erase_thread(self.thread)
            return None
        return found


async def run_through(
    graph: Graph, unfinished: Unfinished, store: SqliteCheckpointStore, *, total: int
) -> RunResult:
    """Run `graph` on its thread to the end, or until Ctrl-C, behind a bar that counts to `total`.

    A run that ends well is forgotten, and so is one that did not come to its tickets.
    """
    found = await asyncio.to_thread(unfinished.find, store)
    through = 0
    if found is not None:
        through, answered = _through(found)
        say(f"going on: {through + answered} of {counted(total, 'ticket')} were through")
    elif any(store.threads()):
        say(f"{unfinished.path} holds other runs, of other inputs; this one begins anew")
    control = RunControl()
    options = RunOptions(thread_id=unfinished.thread, max_steps=MAX_STEPS, control=control)
    stream = (
        graph.stream(None, options)
        if found is None
        else graph.resume_stream(unfinished.thread, options=options)
    )
    with stop_on_interrupt(control), _bar() as bar:
        task = bar.add_task("tickets", total=total, completed=through)
        async with stream:
            async for event in stream:
                if isinstance(event, NodeEnd) and event.node == "process" and event.status == "ok":
                    bar.advance(task)
    if stream.result.stop_reason == "finished" or "tickets" not in stream.result.state:
        await asyncio.to_thread(store.erase_thread, unfinished.thread)
    return stream.result


def _through(checkpoint: Checkpoint) -> tuple[int, int]:
    """Return how many tickets are through, and of how many others the answer is kept."""
    notes = checkpoint.frontier.notes
    through = len(checkpoint.state.get("results", ())) + sum(len(note.results) for note in notes)
    return through, sum(bool(note.once) for note in notes)


def _bar() -> Progress:
    """Return a bar on stderr that is quiet when that is no terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
