"""The documents that are served: read in while clients already ask, and watched for what others change."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

import msgspec

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import DialoomError, UsageError
from dialoom.base.text import one_line
from dialoom.cli.knowledge import is_below, load_options, only_below, tell
from dialoom.cli.progress import counted, say
from dialoom.mcp.server import ListChanged, News, ResourceChanged
from dialoom.mcp.server.beside import beside
from dialoom.rag import (
    Chunk,
    ChunkFilter,
    DocumentDone,
    DocumentFailed,
    DocumentSkipped,
    Embedder,
    IngestFinished,
    IngestStarted,
    SlidingWindowChunker,
    sync_folder,
)
from dialoom.rag.loaders.load import document_id
from dialoom.rag.sync_events import SyncEvent
from dialoom.stores import SqliteVectorStore

SCHEME: Final = "rag://document/"
LOOK_SECONDS: Final = 2.0
"""Between two looks at whether another process changed the index."""
TELL_SECONDS: Final = 5.0
"""Between two signs of life to a caller that waits for the documents."""
LIST_SECONDS: Final = 3.0
"""So long a list waits for documents that are still being read."""


class _View(msgspec.Struct, frozen=True):
    """What is served at one moment: the ids in order, and of each file what it held."""

    ids: tuple[str, ...] = ()
    contents: Mapping[str, str] = {}


class Library:
    """The documents of an index that are below the folder that was named; all of them when none was.

    Its names for documents are their paths in that folder; the ids of the index are taken too.
    """

    def __init__(
        self, store: SqliteVectorStore, docs: Path | None, news: News, *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._store = store
        self._docs = docs
        self._root = "" if docs is None else document_id(docs)
        self._folder = self._root if docs is None or docs.is_dir() else self._root.rpartition("/")[0]
        self._news = news
        self._clock = clock
        self._looked: Sequence[object] = ()
        self._view = _View()
        self._read = asyncio.Event()
        self._progress = "the documents are being read"
        self._failure: DialoomError | None = None

    async def ready(self, show: Callable[[object], None] = lambda _: None) -> None:
        """Wait until the documents were read in, and tell how far that is. Raises why they were not."""
        while not self._read.is_set():
            show({"message": self._progress})
            await self._read_within(TELL_SECONDS)
        if self._failure is not None:
            raise UsageError(f"the documents could not be read in: {self._failure}") from self._failure

    async def listed(self) -> tuple[str, ...]:
        """Return the ids of all documents that are served, in a steady order.

        Those that are still being read are waited for a moment; clients are told when they are there.
        """
        await self._read_within(LIST_SECONDS)
        return await self._ids()

    async def chunks(self, name: str) -> list[Chunk]:
        """Return the passages of a document by its id or its name. Raises `UsageError` when there is none."""
        for doc_id in (name, f"{self._folder}/{name}"):
            if self._holds(doc_id) and (found := await asyncio.to_thread(self._store.chunks_of, doc_id)):
                return found
        raise UsageError(f"there is no document {one_line(name, 200)!r}; take an id that search gave")

    async def scope(self) -> ChunkFilter | None:
        """Return what keeps a search to what is served; None when the index holds nothing else."""
        return await asyncio.to_thread(only_below, self._docs, self._store)

    def name_of(self, doc_id: str) -> str:
        """Return the path of a document in its folder."""
        return doc_id.removeprefix(f"{self._folder}/") if self._folder else doc_id

    @asynccontextmanager
    async def opened(self, embedder: Embedder) -> AsyncGenerator["Library"]:
        """Read the folder in and watch the index while inside.

        Raises `DialoomError`, before anything is read, for a folder or an index that cannot be used.
        """
        await self._look()
        if self._docs is None:
            self._read.set()
            reading = []
        else:
            events = self._sync(self._docs, embedder)
            reading = [self._read_in(await anext(events), events)]
        async with beside(self._watch(), *reading):
            yield self

    async def _read_within(self, seconds: float) -> None:
        if self._read.is_set():
            return
        async with asyncio.TaskGroup() as group:
            waits = {group.create_task(self._read.wait()), group.create_task(self._clock.sleep(seconds))}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for each in waits:
                each.cancel()

    async def _ids(self) -> tuple[str, ...]:
        return tuple(filter(self._holds, await asyncio.to_thread(self._store.documents)))

    def _holds(self, doc_id: str) -> bool:
        return not self._root or is_below(self._root, doc_id)

    def _sync(self, docs: Path, embedder: Embedder) -> AsyncGenerator[SyncEvent]:
        options = load_options(self._store.path)
        return sync_folder(
            docs, self._store, embedder=embedder, chunker=SlidingWindowChunker(), options=options
        )

    async def _read_in(self, begun: SyncEvent, events: AsyncGenerator[SyncEvent]) -> None:
        assert self._docs is not None
        total = begun.total if isinstance(begun, IngestStarted) else 0
        done = 0
        try:
            async with aclosing(events):
                async for event in events:
                    match event:
                        case DocumentDone() | DocumentFailed() | DocumentSkipped(reason="unchanged"):
                            done += 1
                        case IngestFinished(report=report):
                            tell(report, self._docs, always=False)
                        case _:
                            pass
                    self._progress = f"the documents are being read: {done} of {counted(total, 'file')}"
        except DialoomError as error:
            say(f"{self._docs} could not be read in: {error}")
            self._failure = error
        self._read.set()
        await self._look()

    async def _watch(self) -> None:
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            await self._look()

    async def _look(self) -> None:
        """Tell clients what is different since the last look."""
        stamp = await asyncio.to_thread(_stamp, self._store.path)
        if stamp == self._looked:
            return
        try:
            now = await self._seen()
        except DialoomError:
            return  # somebody holds the index or replaces it; the next look sees more
        first, before = not self._looked, self._view
        self._looked, self._view = stamp, now
        if not first:
            self._tell(before, now)

    async def _seen(self) -> _View:
        records = await asyncio.to_thread(self._store.sources, self._root)
        return _View(await self._ids(), {name: each.content_hash for name, each in records.items()})

    def _tell(self, before: _View, now: _View) -> None:
        if now.ids != before.ids:
            self._news.tell(ListChanged("resources"))
        for doc_id in now.ids:
            source = _file_of(doc_id, now.contents)
            if before.contents.get(source, now.contents.get(source)) != now.contents.get(source):
                self._news.tell(ResourceChanged(document_uri(doc_id)))


def document_uri(doc_id: str) -> str:
    """Return the address under which a document can be read."""
    return f"{SCHEME}{quote(doc_id, safe='')}"


def id_of(uri: str) -> str | None:
    """Return the id of the document at an address, None for an address of something else."""
    return unquote(uri.removeprefix(SCHEME)) if uri.startswith(SCHEME) else None


def _file_of(doc_id: str, files: Mapping[str, str]) -> str:
    """Return the file that a document is, or a record of."""
    return doc_id if doc_id in files else doc_id.rpartition("#")[0]


def _stamp(index: Path) -> tuple[object, ...]:
    """Return what changes with each commit of any process: SQLite writes the file, or its log beside it."""
    stamps: list[object] = []
    for path in (index, index.with_name(f"{index.name}-wal")):
        with suppress(FileNotFoundError):
            found = path.stat()
            stamps.append((path.name, found.st_mtime_ns, found.st_size))
    return tuple(stamps)
