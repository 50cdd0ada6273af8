"""`dialoom ingest`: bring a folder of documents into an index."""

from pathlib import Path

from dialoom.cli.embedder import open_embedder
from dialoom.cli.exits import ExitCode, complain
from dialoom.cli.flags import DEFAULT_INDEX
from dialoom.cli.knowledge import bring_in, check_documents, held_in, tell
from dialoom.cli.progress import say
from dialoom.rag import Embedder, SyncReport
from dialoom.stores import SqliteVectorStore


async def ingest(
    docs: Path, index: Path = DEFAULT_INDEX, *, rebuild: bool = False, config: Path | None = None
) -> ExitCode:
    """Sync `docs` into `index`: new and changed files are read, vanished ones are taken out.

    A file that cannot be read is named and left out, the others go in. A run that was stopped goes on
    where it stood when the same command is given again. `rebuild` empties the index first, whatever made it.
    `config` names the settings, whose `[embedding]` makes the vectors.
    """
    await check_documents(docs, index)
    async with open_embedder(config) as embedder:
        with SqliteVectorStore(index) as store:
            report = await _bring_in(docs, store, embedder, rebuild=rebuild)
    if report.cancelled:
        complain("stopped; run the same command to go on where it stood")
        return ExitCode.INTERRUPTED
    return ExitCode.OK


async def _bring_in(docs: Path, store: SqliteVectorStore, embedder: Embedder, *, rebuild: bool) -> SyncReport:
    if rebuild:
        store.clear()
    report = await bring_in(docs, store, embedder)
    tell(report, docs, always=not report.cancelled)
    say(f"{store.path}: {held_in(store)}")
    return report
