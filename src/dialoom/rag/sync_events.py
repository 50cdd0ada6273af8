"""What a sync tells while it runs: one event per file, one at the start, one at the end."""

import msgspec

from dialoom.base.events import Event
from dialoom.rag.types import LoadWarning


class IngestStarted(Event, frozen=True, kw_only=True, tag="ingest.started"):
    """How many files there are to look at."""

    root: str
    total: int


class DocumentDone(Event, frozen=True, kw_only=True, tag="ingest.document_done"):
    """A file is in the store, anew or for the first time."""

    source: str
    documents: int
    chunks: int
    warnings: tuple[LoadWarning, ...] = ()


class DocumentFailed(Event, frozen=True, kw_only=True, tag="ingest.document_failed"):
    """A file could not be read or embedded; what the store held of it before is still there."""

    source: str
    code: str
    message: str


class DocumentSkipped(Event, frozen=True, kw_only=True, tag="ingest.document_skipped"):
    """A file was left alone: `unchanged`, or a reason of `Skipped`."""

    source: str
    reason: str


class DocumentRemoved(Event, frozen=True, kw_only=True, tag="ingest.document_removed"):
    """A file is gone from the folder, and so it is from the store."""

    source: str


class SyncReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a sync came to. `failures`, `warnings` and `left_out` hold the first thousand of each."""

    files: int = 0
    done: int = 0
    unchanged: int = 0
    failed: int = 0
    skipped: int = 0
    removed: int = 0
    outside: int = 0
    """Of the skipped, links that lead out of the folder."""
    documents: int = 0
    """Those of the files that are done: each record of a JSONL file is one."""
    chunks: int = 0
    seconds: float = 0.0
    cancelled: bool = False
    failures: list[DocumentFailed] = []
    warnings: list[LoadWarning] = []
    left_out: list[DocumentSkipped] = []
    """Those that were skipped, with the reason; a file that is unchanged is none of them."""


class IngestFinished(Event, frozen=True, kw_only=True, tag="ingest.finished"):
    """The last event of a sync, a cancelled one too."""

    report: SyncReport


SyncEvent = IngestStarted | DocumentDone | DocumentFailed | DocumentSkipped | DocumentRemoved | IngestFinished
