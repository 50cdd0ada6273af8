"""What is printed beside answers: a bar and figures of documents brought in, lines for people, JSON."""

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from dialoom.base.text import one_line
from dialoom.rag.sync_events import (
    DocumentDone,
    DocumentFailed,
    DocumentRemoved,
    DocumentSkipped,
    IngestFinished,
    IngestStarted,
    SyncEvent,
    SyncReport,
)

MAX_SHOWN = 10
"""So many files of a kind are told one by one."""
_REASONS = {
    "hidden": "hidden",
    "unsupported": "of a kind that is not read",
    "unreadable": "may not be read",
    "loop": "a link to a folder that was read already",
    "special": "no regular file",
    "depth": "too many folders deep",
    "outside": "a link out of the folder",
}


class IngestBar:
    """Shows the events of one sync on stderr. Quiet when stderr is no terminal."""

    def __init__(self, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[current]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("reading", total=None, current="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, event: SyncEvent) -> None:
        """Move on by one event."""
        match event:
            case IngestStarted(total=total):
                self._progress.update(self._task, total=total)
            case DocumentDone(source=source) | DocumentFailed(source=source):
                self._advance(source)
            case DocumentSkipped(source=source, reason="unchanged"):
                self._advance(source)
            case DocumentSkipped() | DocumentRemoved() | IngestFinished():
                pass

    def _advance(self, source: str) -> None:
        name = one_line(source.rpartition("/")[2], 40).replace("[", r"\[")
        self._progress.update(self._task, advance=1, current=name)


def report_lines(report: SyncReport, name: str) -> list[str]:
    """Return what a sync came to: a line of figures, then one for each of the first files to be told of."""
    figures = {
        "read": report.done,
        "unchanged": report.unchanged,
        "removed": report.removed,
        "failed": report.failed,
        "skipped": report.skipped,
    }
    told = ", ".join(f"{count} {what}" for what, count in figures.items() if count) or "nothing to do"
    lines = [f"{name}: {told} ({counted(report.chunks, 'new passage')}, {report.seconds:.1f} s)"]
    if report.documents > report.done:
        documents = counted(report.documents, "document")
        lines.append(f"  {documents} in {counted(report.done, 'file')}: each record of a JSONL file is one")
    if report.outside:
        lines.append(f"  not followed: {counted(report.outside, 'link')} out of the folder")
    lines += _first("not read", [failure.message for failure in report.failures], report.failed)
    skipped = [f"{each.source} ({_REASONS.get(each.reason, each.reason)})" for each in report.left_out]
    lines += _first("skipped", skipped, report.skipped)
    warnings = [warning.message for warning in report.warnings]
    lines += _first("note", warnings, len(warnings))
    return lines


def _first(what: str, told: list[str], total: int) -> list[str]:
    """Return a line for each of the first of `told`, and how many more of `total` there are."""
    more = total - min(len(told), MAX_SHOWN)
    rest = [f"  {what}: {more} more"] if told and more > 0 else []
    return [*(f"  {what}: {one_line(each)}" for each in told[:MAX_SHOWN]), *rest]


def counted(number: int, thing: str) -> str:
    """Return how many of what, as people say it."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def say(line: str) -> None:
    """Print a line for people, on stderr: stdout is for answers."""
    print(line, file=sys.stderr, flush=True)


def print_json(fields: Mapping[str, object]) -> None:
    """Print one JSON object in UTF-8, whatever the locale says: programs read this."""
    sys.stdout.flush()
    sys.stdout.buffer.write(msgspec.json.encode(fields) + b"\n")
    sys.stdout.buffer.flush()
