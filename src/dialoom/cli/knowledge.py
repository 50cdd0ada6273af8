"""Documents on disk and the index made of them."""

import asyncio
import os
import re
import stat
from contextlib import aclosing
from pathlib import Path

from dialoom.base.cancel import CancelScope
from dialoom.base.errors import UsageError
from dialoom.cli.flags import KnowledgeFlags
from dialoom.cli.interrupt import stop_on_interrupt
from dialoom.cli.progress import IngestBar, counted, report_lines, say
from dialoom.rag import (
    ChunkFilter,
    Embedder,
    IngestFinished,
    Loaded,
    LoadError,
    LoadFailure,
    LoadOptions,
    SlidingWindowChunker,
    SyncReport,
    iter_documents,
    sync_folder,
)
from dialoom.rag.extract.pool import end_readers
from dialoom.rag.loaders.load import document_id
from dialoom.stores import SqliteVectorStore

_URL = re.compile("https?:/", re.IGNORECASE)  # a path keeps one of the two slashes
KINDS = "txt, md, html, pdf, docx, csv, jsonl, log"


def has_knowledge(flags: KnowledgeFlags) -> bool:
    """Tell whether there is something to answer from: documents that are named, or an index."""
    return flags.docs is not None or flags.index.exists()


def load_options(index: Path) -> LoadOptions:
    """How documents are read: the article of a page, and never the index, wherever it lies."""
    own = os.path.abspath(index)  # noqa: PTH100 - as a walk names it, which follows no links
    return LoadOptions(
        html_mode="main", exclude=frozenset(f"{own}{end}" for end in ("", "-wal", "-shm", "-journal"))
    )


async def check_knowledge(flags: KnowledgeFlags) -> None:
    """Raise `UsageError` or `LoadError` when there is nothing to answer from. Touches no index."""
    if flags.docs is not None:
        await check_documents(flags.docs, flags.index)
    elif not flags.index.exists():
        raise UsageError(
            f"there is no index {flags.index}; name a folder with --docs, or run dialoom ingest FOLDER first"
        )


def open_store(flags: KnowledgeFlags) -> SqliteVectorStore:
    """Open the index; without `--docs` nothing can be written to it."""
    return SqliteVectorStore(flags.index, read_only=flags.docs is None)


async def bring_in(docs: Path, store: SqliteVectorStore, embedder: Embedder) -> SyncReport:
    """Sync a folder into the index behind a progress bar; Ctrl-C stops it between two batches."""
    scope = CancelScope()
    with IngestBar() as bar, stop_on_interrupt(scope):
        sync = sync_folder(
            docs,
            store,
            embedder=embedder,
            chunker=SlidingWindowChunker(),
            options=load_options(store.path),
            cancel=scope,
        )
        report = SyncReport()
        async with aclosing(sync) as events:
            async for event in events:
                bar.show(event)
                if isinstance(event, IngestFinished):
                    report = event.report
    if report.cancelled:
        end_readers()
    return report


def held_in(store: SqliteVectorStore) -> str:
    """Return in words how much an index holds."""
    return f"{counted(len(store), 'passage')} of {counted(len(store.documents()), 'document')}"


def tell(report: SyncReport, docs: Path, *, always: bool) -> None:
    """Print what a sync came to; one that changed nothing only when `always` is set."""
    if always or report.done or report.removed or report.failed:
        for line in report_lines(report, str(docs)):
            say(line)


async def check_documents(docs: Path, index: Path) -> None:
    """Raise `LoadError` unless at least one document in `docs` can be read. Touches no index.

    It hears Ctrl-C while a file takes long.
    """
    try:
        await asyncio.to_thread(_check_readable, docs, index)
    except asyncio.CancelledError:
        end_readers()
        raise


def _check_readable(docs: Path, index: Path) -> None:
    _check_kind(docs)
    failures: list[LoadFailure] = []
    left_out = 0
    for item in iter_documents(docs, load_options(index)):
        match item:
            case Loaded(documents=[_, *_]):
                return
            case LoadFailure():
                failures.append(item)
            case _:
                left_out += 1
    if failures:
        told = f"{failures[0].message}" + (f" (and {len(failures) - 1} more)" if failures[1:] else "")
    elif left_out:
        told = f"its {left_out} entries are empty or of kinds that are not read ({KINDS})"
    else:
        told = f"it is empty; put documents there ({KINDS})"
    raise LoadError("empty", f"no readable document in {docs}: {told}", source=str(docs))


def _check_kind(docs: Path) -> None:
    """Refuse what is neither a file nor a folder, by its name."""
    if _URL.match(str(docs)):
        raise UsageError(f"{docs} is an address; save the page into a folder and name that")
    try:
        mode = docs.stat().st_mode
    except (OSError, ValueError):
        return  # the walk says why
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise UsageError(f"{docs} is a {_kind_of(mode)}; name a folder or a file")


def _kind_of(mode: int) -> str:
    kinds = {"pipe": stat.S_ISFIFO, "socket": stat.S_ISSOCK}
    return next((name for name, fits in kinds.items() if fits(mode)), "device")


def only_below(docs: Path | None, store: SqliteVectorStore) -> ChunkFilter | None:
    """Return what keeps answers to the documents in `docs`; None when the index holds no others."""
    if docs is None:
        return None
    root = document_id(docs)
    if all(is_below(root, each) for each in store.documents()):
        return None
    return lambda chunk: is_below(root, chunk.doc_id)


def is_below(root: str, doc_id: str) -> bool:
    """Tell whether a document is `root`, a file in it, or a record of it."""
    return doc_id == root or doc_id.startswith((f"{root}/", f"{root}#"))
