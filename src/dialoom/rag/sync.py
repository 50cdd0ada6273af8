"""A folder and a store brought to agree: what is new or changed goes in, what has vanished goes out."""

import asyncio
import hashlib
import os
import tempfile
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress

import msgspec

from dialoom.base.cancel import Cancelled, CancelScope
from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.llm.switch import StopSwitch
from dialoom.rag.chunk import Chunker
from dialoom.rag.embed import Embedder
from dialoom.rag.ingest import CutDocument, DocumentFailure, embed_all, failure
from dialoom.rag.loaders.load import check_named, document_id, load_bytes, read_bytes
from dialoom.rag.loaders.loader import Loaded, LoadOptions
from dialoom.rag.loaders.walk import FoundFile, Skipped, walk_files
from dialoom.rag.manifest import manifest_of
from dialoom.rag.store import DocumentChunks, SourceChange, SourceRecord, SyncStore
from dialoom.rag.sync_embed import LARGE, Waiting, embed_large
from dialoom.rag.sync_events import SyncEvent
from dialoom.rag.sync_ledger import SyncLedger
from dialoom.rag.types import LoadWarning

_BATCH_FILES = 100
_BATCH_CHARACTERS = 1_000_000
_BATCH_SECONDS = 0.2
_SETTLED_NS = 2_000_000_000  # a file changed this recently may change again within one tick of its clock
_LOADERS = "loaders-v1"
_READERS = 2
_READ_AHEAD = 4
_READ_AHEAD_BYTES = 32_000_000


class _Unchanged(msgspec.Struct, frozen=True):
    """A file with the content it had; `record` is new when its size or time is."""

    file: FoundFile
    record: SourceRecord | None = None


class _Read(msgspec.Struct, frozen=True):
    """A file that was read, with the record to keep once it is stored."""

    record: SourceRecord
    loaded: Loaded


class _Cut(msgspec.Struct, frozen=True):
    """A file that was read and cut, with the record to keep once it is stored."""

    record: SourceRecord
    documents: Sequence[CutDocument]
    warnings: Sequence[LoadWarning]

    @property
    def is_large(self) -> bool:
        return sum(len(document.chunks) for document in self.documents) > LARGE


class _Broken(msgspec.Struct, frozen=True):
    """A file that could not be read or embedded, with the record that says so."""

    record: SourceRecord
    message: str


_Outcome = _Unchanged | _Cut | _Broken


async def sync_folder(
    root: str | os.PathLike[str],
    store: SyncStore,
    *,
    embedder: Embedder,
    chunker: Chunker,
    options: LoadOptions | None = None,
    cancel: CancelScope | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> AsyncGenerator[SyncEvent]:
    """Bring the store to what the folder (or file) holds, and tell of each file; the report comes last.

    Files of unchanged size and time are not read, files of unchanged content are not embedded. Work is
    committed in batches as it comes, so a sync that was stopped or killed goes on where it stood; a
    cancelled one leaves out the batch that is being read and removes nothing. Files synced from another
    root stay.

    Raises, before any work, `UsageError` for a root that is no path, `LoadError` for one that is not there
    and `ManifestMismatchError` for a store built by another embedder or chunker; `StoreError` when the store
    fails, and `ProviderError` when a server that embeds does for a reason that is no file's: what was
    committed until then stays.
    """
    check_named(root)
    sync = _Sync(store, embedder, chunker, options or LoadOptions(), clock)
    async for event in sync.run(document_id(root), os.fspath(root), cancel or CancelScope()):
        yield event


class _Sync:
    """One sync: what it reads with and writes to."""

    def __init__(
        self, store: SyncStore, embedder: Embedder, chunker: Chunker, options: LoadOptions, clock: Clock
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._chunker = chunker
        self._options = options
        self._clock = clock
        self._recipe = "/".join((_LOADERS, *_choices(options), chunker.signature()))

    async def run(self, root: str, path: str, cancel: CancelScope) -> AsyncGenerator[SyncEvent]:
        found = await asyncio.to_thread(lambda: list(walk_files(path, self._options)))
        # after the walk, so that a folder that is not there claims nothing
        await asyncio.to_thread(self._store.claim, manifest_of(self._embedder, self._chunker))
        known = await asyncio.to_thread(self._store.sources, root)
        files = [item for item in found if isinstance(item, FoundFile)]
        skipped = [item for item in found if isinstance(item, Skipped)]
        ledger = SyncLedger(self._clock)
        yield ledger.started(root, len(files))
        for item in skipped:
            yield ledger.skipped(item.path, item.reason)
        outcomes = self._outcomes(files, root, known)

        def read_on() -> Awaitable[list[_Outcome]]:
            return asyncio.to_thread(self._take, outcomes, cancel)

        try:
            with StopSwitch(cancel) as switch:
                while batch := await _unless_cancelled(switch, read_on):
                    for event in await self._store_batch(batch, ledger):
                        yield event
        finally:
            with suppress(ValueError):  # the thread of a cancelled task is still in it, and will be the last
                outcomes.close()
        if not cancel.cancelled:
            gone = await asyncio.to_thread(_vanished, root, known, files, skipped)
            if gone:
                await asyncio.to_thread(lambda: self._store.change_sources([], forget=gone))
            for source in gone:
                yield ledger.removed(source)
        yield ledger.finished(cancelled=cancel.cancelled)

    def _take(self, outcomes: Generator[_Outcome], cancel: CancelScope) -> list[_Outcome]:
        """Read files until there is enough for one commit."""
        batch: list[_Outcome] = []
        characters = 0
        deadline = self._clock.monotonic() + _BATCH_SECONDS
        for outcome in outcomes:
            batch.append(outcome)
            if isinstance(outcome, _Cut):
                characters += sum(len(chunk.text) for cut in outcome.documents for chunk in cut.chunks)
            full = len(batch) >= _BATCH_FILES or characters >= _BATCH_CHARACTERS
            if full or cancel.cancelled or self._clock.monotonic() >= deadline:
                break
        return batch

    def _outcomes(
        self, files: Sequence[FoundFile], root: str, known: Mapping[str, SourceRecord]
    ) -> Generator[_Outcome]:
        """What has become of each file, in order; the next few are read while one is cut and stored."""
        executor = ThreadPoolExecutor(_READERS, thread_name_prefix="dialoom-read")
        ahead: deque[Future[_Unchanged | _Read | _Broken] | _Unchanged] = deque()
        sizes: deque[int] = deque()
        try:
            for file in files:
                old = known.get(file.id)
                fresh = old if old is not None and not old.error and old.recipe == self._recipe else None
                if fresh is not None and (fresh.size, fresh.modified_ns) == (file.size, file.modified_ns):
                    ahead.append(_Unchanged(file))
                else:
                    ahead.append(executor.submit(self._look, file, root, fresh))
                sizes.append(file.size)
                while len(ahead) > _READ_AHEAD or (len(ahead) > 1 and sum(sizes) > _READ_AHEAD_BYTES):
                    sizes.popleft()
                    yield self._cut(ahead.popleft())
            while ahead:
                yield self._cut(ahead.popleft())
        finally:
            executor.shutdown(wait=False, cancel_futures=True)

    def _look(self, file: FoundFile, root: str, fresh: SourceRecord | None) -> _Unchanged | _Read | _Broken:
        record = SourceRecord(
            source=file.id,
            root=root,
            size=file.size,
            modified_ns=self._trusted_time(file),
            recipe=self._recipe,
        )
        try:
            data = read_bytes(file.path, self._options)
            record = msgspec.structs.replace(record, content_hash=hashlib.sha256(data).hexdigest())
            if fresh is not None and fresh.content_hash == record.content_hash:
                return _Unchanged(file, record)
            return _Read(record, load_bytes(data, file.path, options=self._options, clock=self._clock))
        except Exception as error:  # noqa: BLE001 - seam: loaders may be anyone's code
            return _broken(record, error)

    def _trusted_time(self, file: FoundFile) -> int:
        """The time of change, or 0 while it is so fresh that it may not tell the next change."""
        settled = self._clock.now() * 1e9 - file.modified_ns > _SETTLED_NS
        return file.modified_ns if settled else 0

    def _cut(self, ready: Future[_Unchanged | _Read | _Broken] | _Unchanged) -> _Outcome:
        outcome = ready.result() if isinstance(ready, Future) else ready
        if not isinstance(outcome, _Read):
            return outcome
        loaded = outcome.loaded
        try:
            documents = [
                CutDocument(document.id, self._chunker.chunk(document)) for document in loaded.documents
            ]
        except Exception as error:  # noqa: BLE001 - seam: chunkers may be anyone's code
            return _broken(outcome.record, error)
        return _Cut(outcome.record, documents, loaded.warnings)

    async def _store_batch(self, batch: Sequence[_Outcome], ledger: SyncLedger) -> list[SyncEvent]:
        with ExitStack() as files:
            outcomes, changes = await self._embed_batch(batch, files)
            if changes:
                await asyncio.to_thread(self._store.change_sources, changes)
        events: list[SyncEvent] = []
        for outcome in outcomes:
            match outcome:
                case _Unchanged():
                    events.append(ledger.skipped(outcome.file.id, "unchanged"))
                case _Broken():
                    record = outcome.record
                    events.append(ledger.failed(record.source, record.error, outcome.message))
                case _Cut():
                    chunks = sum(len(cut.chunks) for cut in outcome.documents)
                    documents = len(outcome.documents)
                    events.append(ledger.done(outcome.record.source, documents, chunks, outcome.warnings))
        return events

    async def _embed_batch(
        self, batch: Sequence[_Outcome], files: ExitStack
    ) -> tuple[list[_Outcome], list[SourceChange]]:
        """Embed the documents of the batch; a file with one that fails becomes a broken one."""
        small = [outcome for outcome in batch if isinstance(outcome, _Cut) and not outcome.is_large]
        cut = [document for outcome in small for document in outcome.documents]
        embedded = iter(await embed_all(self._embedder, cut) if cut else [])
        outcomes: list[_Outcome] = []
        changes: list[SourceChange] = []
        for outcome in batch:
            if isinstance(outcome, _Cut):
                if outcome.is_large:
                    ready = await self._embed_large(outcome, files)
                else:
                    ready = _all_or_the_failure([next(embedded) for _ in outcome.documents])
                if isinstance(ready, DocumentFailure):
                    record = msgspec.structs.replace(outcome.record, error=ready.code)
                    outcomes.append(_Broken(record, ready.message))
                    changes.append(SourceChange(record, None))
                    continue
                changes.append(SourceChange(outcome.record, ready))
            elif outcome.record is not None:
                changes.append(SourceChange(outcome.record, None))
            outcomes.append(outcome)
        return outcomes, changes

    async def _embed_large(self, outcome: _Cut, files: ExitStack) -> Waiting | DocumentFailure:
        try:
            file = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - closed with `files`
            return await embed_large(self._embedder, outcome.documents, file)
        except OSError as error:  # the disk is full
            return failure(outcome.record.source, error)


async def _unless_cancelled(
    switch: StopSwitch, read_on: Callable[[], Awaitable[list[_Outcome]]]
) -> list[_Outcome]:
    """The next batch; none after a stop, which does not wait for a file that takes long."""
    try:
        return await switch.wait(read_on)
    except Cancelled:
        return []


def _all_or_the_failure(
    parts: Sequence[DocumentChunks | DocumentFailure],
) -> list[DocumentChunks] | DocumentFailure:
    wrong = [part for part in parts if isinstance(part, DocumentFailure)]
    return wrong[0] if wrong else [part for part in parts if isinstance(part, DocumentChunks)]


def _choices(options: LoadOptions) -> list[str]:
    """What of the options changes the documents; a file that was read with others is read again."""
    choices = [options.html_mode, "+".join(sorted(options.loaders))]
    if options.html_parser is not None:
        choices.append(getattr(options.html_parser, "__qualname__", type(options.html_parser).__name__))
    if options.metadata:
        choices.append(msgspec.json.encode(options.metadata, order="sorted").decode())
    return choices


def _broken(record: SourceRecord, error: Exception) -> _Broken:
    wrong = failure(record.source, error)
    return _Broken(msgspec.structs.replace(record, error=wrong.code), wrong.message)


def _vanished(
    root: str, known: Mapping[str, SourceRecord], files: Sequence[FoundFile], skipped: Sequence[Skipped]
) -> list[str]:
    """The files that are gone. Those below a folder that could not be read are not known to be gone.

    A file that came with another root may be one this walk leaves out; it is gone when the disk says so.
    """
    unread = tuple(item.path.rstrip("/") + "/" for item in skipped if item.reason == "unreadable")
    gone = known.keys() - {file.id for file in files}
    return sorted(
        name
        for name in gone
        if not f"{name}/".startswith(unread) and (known[name].root == root or not os.path.lexists(name))
    )
