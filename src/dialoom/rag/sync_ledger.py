"""Counts what a sync does, and makes its events from it."""

from collections.abc import Sequence

from dialoom.base.clock import Clock
from dialoom.base.ids import new_id
from dialoom.rag.sync_events import (
    DocumentDone,
    DocumentFailed,
    DocumentRemoved,
    DocumentSkipped,
    IngestFinished,
    IngestStarted,
    SyncReport,
)
from dialoom.rag.types import LoadWarning

_KEPT = 1_000
_COUNTED = ("done", "unchanged", "failed", "skipped", "removed", "outside", "documents", "chunks")


class SyncLedger:
    """One sync's books: each method counts one thing and returns the event that tells of it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started = clock.monotonic()
        self._run_id = new_id()
        self._seq = 0
        self._files = 0
        self._counts = dict.fromkeys(_COUNTED, 0)
        self._failures: list[DocumentFailed] = []
        self._warnings: list[LoadWarning] = []
        self._left_out: list[DocumentSkipped] = []

    def started(self, root: str, total: int) -> IngestStarted:
        self._files = total
        return IngestStarted(run_id=self._run_id, seq=self._next(), root=root, total=total)

    def done(self, source: str, documents: int, chunks: int, warnings: Sequence[LoadWarning]) -> DocumentDone:
        self._counts["done"] += 1
        self._counts["documents"] += documents
        self._counts["chunks"] += chunks
        self._warnings += warnings[: _KEPT - len(self._warnings)]
        return DocumentDone(
            run_id=self._run_id,
            seq=self._next(),
            source=source,
            documents=documents,
            chunks=chunks,
            warnings=tuple(warnings),
        )

    def skipped(self, source: str, reason: str) -> DocumentSkipped:
        self._counts["unchanged" if reason == "unchanged" else "skipped"] += 1
        self._counts["outside"] += reason == "outside"
        event = DocumentSkipped(run_id=self._run_id, seq=self._next(), source=source, reason=reason)
        if reason != "unchanged" and len(self._left_out) < _KEPT:
            self._left_out.append(event)
        return event

    def failed(self, source: str, code: str, message: str) -> DocumentFailed:
        self._counts["failed"] += 1
        event = DocumentFailed(
            run_id=self._run_id, seq=self._next(), source=source, code=code, message=message
        )
        if len(self._failures) < _KEPT:
            self._failures.append(event)
        return event

    def removed(self, source: str) -> DocumentRemoved:
        self._counts["removed"] += 1
        return DocumentRemoved(run_id=self._run_id, seq=self._next(), source=source)

    def finished(self, *, cancelled: bool) -> IngestFinished:
        report = SyncReport(
            files=self._files,
            seconds=self._clock.monotonic() - self._started,
            cancelled=cancelled,
            failures=self._failures,
            warnings=self._warnings,
            left_out=self._left_out,
            **self._counts,
        )
        return IngestFinished(run_id=self._run_id, seq=self._next(), report=report)

    def _next(self) -> int:
        self._seq += 1
        return self._seq
