"""A folder and a store in agreement, in memory and on disk."""

import asyncio
import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from dialoom.base.cancel import CancelScope
from dialoom.base.errors import UsageError
from dialoom.llm import ProviderError
from dialoom.rag.chunk import SlidingWindowChunker
from dialoom.rag.embed import HashEmbedder
from dialoom.rag.errors import LoadError, ManifestMismatchError
from dialoom.rag.loaders.load import document_id
from dialoom.rag.loaders.loader import Loaded, LoadOptions, Source
from dialoom.rag.memory_store import InMemoryVectorStore
from dialoom.rag.store import PassageReader, SourceChange, SyncStore
from dialoom.rag.sync import sync_folder
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
from dialoom.rag.types import FloatMatrix
from dialoom.stores.sqlite_index import SqliteVectorStore
from dialoom.testing.clock import ManualClock

LONG_AGO = 1_600_000_000


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SyncStore]:
    if request.param == "memory":
        yield InMemoryVectorStore()
        return
    with SqliteVectorStore(tmp_path / "index.sqlite") as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "kb"
    path.mkdir()
    return path


def write(folder: Path, name: str, text: str, *, at: int = LONG_AGO) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    os.utime(folder / name, (at, at))


class Counting(HashEmbedder):
    def __init__(self) -> None:
        super().__init__(64)
        self.texts: list[str] = []

    async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        self.texts += texts
        if "choke" in texts:
            raise RuntimeError("choked")
        return self.embed(texts)


async def sync(
    folder: Path,
    store: SyncStore,
    *,
    embedder: HashEmbedder | None = None,
    options: LoadOptions | None = None,
    cancel: CancelScope | None = None,
) -> list[SyncEvent]:
    return [
        event
        async for event in sync_folder(
            folder,
            store,
            embedder=embedder or HashEmbedder(64),
            chunker=SlidingWindowChunker(40, 0),
            options=options,
            cancel=cancel,
            clock=ManualClock(),
        )
    ]


def told(events: Sequence[SyncEvent]) -> list[tuple[str, str]]:
    said: list[tuple[str, str]] = []
    for event in events:
        match event:
            case DocumentDone():
                said.append((Path(event.source).name, f"done {event.documents}/{event.chunks}"))
            case DocumentFailed():
                said.append((Path(event.source).name, event.code))
            case DocumentSkipped():
                said.append((Path(event.source).name, event.reason))
            case DocumentRemoved():
                said.append((Path(event.source).name, "removed"))
            case IngestStarted() | IngestFinished():
                pass
    return said


def report(events: Sequence[SyncEvent]) -> SyncReport:
    assert isinstance(events[-1], IngestFinished)
    return events[-1].report


def names(store: SyncStore) -> list[str]:
    return [Path(name).name for name in store.documents()]


async def test_a_folder_goes_in_and_each_file_is_told(folder: Path, store: SyncStore) -> None:
    write(folder, "a.txt", "alpha")
    write(folder, "b.jsonl", '{"id":1,"text":"one"}\nbad\n{"id":2,"text":"two"}')
    write(folder, "c.pdf", "no pdf")
    write(folder, "d.exe", "MZ")
    events = await sync(folder, store)
    assert (events[0].total, events[0].root) == (3, document_id(folder))
    assert told(events) == [
        ("d.exe", "unsupported"),
        ("a.txt", "done 1/1"),
        ("b.jsonl", "done 2/2"),
        ("c.pdf", "corrupt"),
    ]
    done = report(events)
    assert (done.files, done.done, done.failed, done.skipped, done.chunks) == (3, 2, 1, 1, 3)
    assert ([item.code for item in done.failures], [item.line for item in done.warnings]) == (
        ["corrupt"],
        [2],
    )
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert len({event.run_id for event in events}) == 1
    assert names(store) == ["a.txt", "b.jsonl#1", "b.jsonl#2"]


async def test_unchanged_files_are_not_embedded_again(folder: Path, store: SyncStore) -> None:
    write(folder, "a.txt", "alpha")
    write(folder, "b.txt", "beta")
    await sync(folder, store)
    write(folder, "b.txt", "beta", at=LONG_AGO + 9)  # touched, not changed
    embedder = Counting()
    for _ in range(2):
        events = await sync(folder, store, embedder=embedder)
        assert told(events) == [("a.txt", "unchanged"), ("b.txt", "unchanged")]
        assert report(events).unchanged == 2
    assert (embedder.texts, names(store)) == ([], ["a.txt", "b.txt"])


async def test_a_file_of_unchanged_size_and_time_is_not_even_read(folder: Path, store: SyncStore) -> None:
    write(folder, "a.txt", "alpha")
    await sync(folder, store)
    write(folder, "a.txt", "ALPHA")
    assert told(await sync(folder, store)) == [("a.txt", "unchanged")]


async def test_a_file_changed_a_moment_ago_is_read_again(folder: Path, store: SyncStore) -> None:
    now = int(ManualClock().now())
    write(folder, "a.txt", "alpha", at=now)
    await sync(folder, store)
    write(folder, "a.txt", "gamma", at=now)
    assert told(await sync(folder, store)) == [("a.txt", "done 1/1")]


async def test_changed_files_are_replaced_whole_and_vanished_ones_removed(
    folder: Path, store: SyncStore
) -> None:
    write(folder, "a.txt", "long text. " * 20)
    write(folder, "b.jsonl", '{"id":1,"text":"one"}\n{"id":2,"text":"two"}')
    write(folder, "c.txt", "gamma")
    await sync(folder, store)
    write(folder, "a.txt", "short")
    write(folder, "b.jsonl", '{"id":2,"text":"two"}')
    (folder / "c.txt").unlink()
    events = await sync(folder, store)
    assert told(events) == [("a.txt", "done 1/1"), ("b.jsonl", "done 1/1"), ("c.txt", "removed")]
    assert (names(store), len(store), report(events).removed) == (["a.txt", "b.jsonl#2"], 2, 1)


async def test_a_file_that_broke_keeps_what_was_known_of_it_and_is_tried_again(
    folder: Path, store: SyncStore
) -> None:
    write(folder, "a.txt", "alpha")
    await sync(folder, store)
    write(folder, "a.txt", "choke", at=LONG_AGO + 1)
    for _ in range(2):
        assert told(await sync(folder, store, embedder=Counting())) == [("a.txt", "error")]
        assert len(store) == 1
    (folder / "a.txt").write_bytes(b"\0\0\0")
    assert told(await sync(folder, store)) == [("a.txt", "binary_content")]
    assert names(store) == ["a.txt"]
    write(folder, "a.txt", "healed")
    assert told(await sync(folder, store)) == [("a.txt", "done 1/1")]


async def test_one_file_that_cannot_be_embedded_does_not_stop_the_others(
    folder: Path, store: SyncStore
) -> None:
    for name, text in (("a.txt", "alpha"), ("b.txt", "choke"), ("c.txt", "gamma")):
        write(folder, name, text)
    events = await sync(folder, store, embedder=Counting())
    assert told(events) == [("a.txt", "done 1/1"), ("b.txt", "error"), ("c.txt", "done 1/1")]
    assert names(store) == ["a.txt", "c.txt"]


async def test_a_refused_key_ends_a_sync_at_once_and_keeps_what_is_there(
    folder: Path, store: SyncStore
) -> None:
    class Refused(Counting):
        async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
            self.texts += texts
            raise ProviderError("auth", "the key is refused; set another one")

    write(folder, "a.txt", "alpha")
    await sync(folder, store)
    for name in "bcd":
        write(folder, f"{name}.txt", name * 9)
    refused = Refused()
    with pytest.raises(ProviderError, match="key is refused"):
        await sync(folder, store, embedder=refused)
    assert (len(refused.texts), names(store)) == (3, ["a.txt"])


async def test_a_file_that_lost_its_words_loses_its_chunks(folder: Path, store: SyncStore) -> None:
    write(folder, "a.txt", "alpha")
    await sync(folder, store)
    write(folder, "a.txt", "")
    events = await sync(folder, store)
    assert (told(events), len(store)) == ([("a.txt", "done 0/0")], 0)
    assert [warning.code for warning in report(events).warnings] == ["empty"]


async def test_two_folders_live_in_one_store(folder: Path, store: SyncStore, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write(folder, "a.txt", "alpha")
    write(other, "b.txt", "beta")
    await sync(folder, store)
    await sync(other, store)
    (folder / "a.txt").unlink()
    assert told(await sync(folder, store)) == [("a.txt", "removed")]
    assert names(store) == ["b.txt"]


async def test_a_single_file_may_be_the_root(folder: Path, store: SyncStore) -> None:
    write(folder, "a.txt", "alpha")
    write(folder, "b.txt", "beta")
    assert told(await sync(folder / "a.txt", store)) == [("a.txt", "done 1/1")]


async def test_other_options_read_the_files_anew(folder: Path, store: SyncStore) -> None:
    write(folder, "a.html", "<p>alpha</p>")
    await sync(folder, store)
    options = LoadOptions(html_mode="main")
    assert told(await sync(folder, store, options=options)) == [("a.html", "done 1/1")]


async def test_a_loader_that_breaks_is_one_failed_file(folder: Path, store: SyncStore) -> None:
    class Broken:
        def load(self, source: Source) -> Loaded:
            raise ZeroDivisionError("oops")

    write(folder, "a.txt", "alpha")
    write(folder, "b.rst", "beta")
    events = await sync(folder, store, options=LoadOptions(loaders={".rst": Broken()}))
    assert told(events) == [("a.txt", "done 1/1"), ("b.rst", "error")]
    assert report(events).failures[0].message == "oops"


async def test_files_below_a_folder_that_cannot_be_read_are_kept(
    folder: Path, store: SyncStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sub").mkdir()
    write(folder, "sub/a.txt", "alpha")
    await sync(folder, store)
    real = os.scandir

    def scan(path: str) -> object:
        if path.endswith("sub"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scan)
    assert told(await sync(folder, store)) == [("sub", "unreadable")]
    assert names(store) == ["a.txt"]


async def test_what_cannot_work_is_refused_before_any_work(folder: Path, store: SyncStore) -> None:
    with pytest.raises(LoadError, match="the path is empty; name a file or folder"):
        await sync("", store)  # type: ignore[arg-type]  # a variable that is not set
    with pytest.raises(UsageError, match="the path is None; name a file or folder"):
        await sync(None, store)  # type: ignore[arg-type]  # what a program may do
    with pytest.raises(LoadError, match="check the path"):
        await sync(folder / "missing", store)
    assert store.manifest is None
    write(folder, "a.txt", "alpha")
    await sync(folder, store)
    with pytest.raises(ManifestMismatchError, match="dim 64, not 128"):
        await sync(folder, store, embedder=HashEmbedder(128))
    assert names(store) == ["a.txt"]


async def test_a_cancelled_sync_keeps_what_it_has_and_the_next_one_goes_on(
    folder: Path, store: SyncStore
) -> None:
    for number in range(250):
        write(folder, f"{number:03}.txt", f"text {number}")
    write(folder, "gone.txt", "gone")
    cancel = CancelScope()
    seen: list[SyncEvent] = []
    async for event in sync_folder(
        folder,
        store,
        embedder=HashEmbedder(64),
        chunker=SlidingWindowChunker(40, 0),
        cancel=cancel,
        clock=ManualClock(),
    ):
        seen.append(event)
        if isinstance(event, DocumentDone):
            cancel.cancel()
    assert (report(seen).cancelled, report(seen).done, len(store)) == (True, 100, 100)
    (folder / "gone.txt").unlink()
    rest = report(await sync(folder, store))
    assert (rest.unchanged, rest.done, rest.removed, rest.cancelled) == (100, 150, 0, False)
    at_once = CancelScope()
    at_once.cancel()
    assert report(await sync(folder, store, cancel=at_once)).unchanged == 0


async def test_a_stop_does_not_wait_for_a_file_that_takes_long(folder: Path, store: SyncStore) -> None:
    reached, opened = Event(), Event()

    class Slow:
        def load(self, source: Source) -> Loaded:
            reached.set()
            assert opened.wait(30)
            return Loaded(source=source.id, documents=[])

    write(folder, "a.slow", "slow")
    cancel = CancelScope()
    reading = asyncio.create_task(
        sync(folder, store, options=LoadOptions(loaders={".slow": Slow()}), cancel=cancel)
    )
    try:
        assert await asyncio.to_thread(reached.wait, 30)
        cancel.cancel()
        async with asyncio.timeout(60):
            stopped = report(await reading)
    finally:
        opened.set()
    assert (stopped.cancelled, stopped.done, stopped.failed, len(store)) == (True, 0, 0, 0)


async def test_large_files_are_committed_as_they_come(folder: Path) -> None:
    class Noting(InMemoryVectorStore):
        def __init__(self) -> None:
            super().__init__()
            self.commits: list[int] = []

        def change_sources(self, changes: Sequence[SourceChange], *, forget: Sequence[str] = ()) -> None:
            self.commits.append(len(changes))
            super().change_sources(changes, forget=forget)

    for name in "abc":
        write(folder, f"{name}.txt", f"{name} word. " * 80_000)
    store = Noting()
    async for _ in sync_folder(
        folder,
        store,
        embedder=HashEmbedder(64),
        chunker=SlidingWindowChunker(100_000, 0),
        clock=ManualClock(),
    ):
        pass
    assert store.commits == [2, 1]


def many_lines(count: int, word: str = "") -> str:
    return "".join(f"{word}line {number} of a long list\n\n" for number in range(count))


async def test_a_large_file_goes_in_piece_by_piece_and_is_replaced_whole(
    folder: Path, store: SyncStore
) -> None:
    class Measured(HashEmbedder):
        most = 0

        async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
            self.most = max(self.most, len(texts))
            return self.embed(texts)

    embedder = Measured(64)
    write(folder, "a.txt", "small")
    write(folder, "b.txt", many_lines(5_000))
    assert told(await sync(folder, store, embedder=embedder)) == [
        ("a.txt", "done 1/1"),
        ("b.txt", "done 1/5000"),
    ]
    assert (len(store), names(store), embedder.most) == (5_001, ["a.txt", "b.txt"], 256)
    assert isinstance(store, PassageReader)
    chunks = store.chunks_of(document_id(folder / "b.txt"))
    assert [chunk.text for chunk in chunks[::1_111]] == [
        f"line {number} of a long list" for number in range(0, 5_000, 1_111)
    ]
    stored = store.vectors([chunks[4_321].id])
    assert np.allclose(stored, embedder.embed([chunks[4_321].text]), atol=1e-3)
    write(folder, "b.txt", many_lines(4_500, "new "))
    await sync(folder, store, embedder=embedder)
    assert (len(store), store.chunks_of(document_id(folder / "b.txt"))[0].text[:8]) == (4_501, "new line")


async def test_a_large_file_that_cannot_be_embedded_to_its_end_leaves_no_part_of_itself(
    folder: Path, store: SyncStore
) -> None:
    write(folder, "a.txt", many_lines(5_000))
    await sync(folder, store)
    write(folder, "a.txt", many_lines(5_000, "new ") + "x" * 39 + "\n\nchoke")
    write(folder, "b.txt", "beta")
    events = await sync(folder, store, embedder=Counting())
    assert told(events) == [("a.txt", "error"), ("b.txt", "done 1/1")]
    assert len(store) == 5_001


async def test_a_disk_without_room_for_the_vectors_of_a_large_file_fails_that_file(
    folder: Path, store: SyncStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    write(folder, "a.txt", many_lines(5_000))
    write(folder, "b.txt", "beta")
    monkeypatch.setattr("tempfile.TemporaryFile", no_room)
    events = await sync(folder, store)
    assert told(events) == [("a.txt", "error"), ("b.txt", "done 1/1")]
    assert "No space left" in report(events).failures[0].message
