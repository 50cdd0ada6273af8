"""An ingest that is killed goes on where it stood: nothing is lost, nothing is there twice or by half."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench.rag_pages import write_manual

from dialoom.rag.loaders.load import document_id
from dialoom.stores.sqlite_index import SqliteVectorStore
from tests.rag.small_pdf import small_pdf

FILES = 900
SOON = 60
MANUAL = 100
SCRIPT = """
import asyncio, sys
from dialoom.rag import DocumentDone, HashEmbedder, SlidingWindowChunker, sync_folder
from dialoom.stores import SqliteVectorStore

async def main():
    with SqliteVectorStore(sys.argv[2]) as store:
        async for event in sync_folder(
            sys.argv[1], store, embedder=HashEmbedder(64), chunker=SlidingWindowChunker(200, 0)
        ):
            if isinstance(event, DocumentDone):
                print(event.source, flush=True)

asyncio.run(main())
"""


def chunks_of(number: int) -> int:
    return number % 5 + 1


def folder_of(count: int, tmp_path: Path) -> Path:
    folder = tmp_path / "kb"
    folder.mkdir()
    for number in range(count):
        paragraph = f"Paragraph of file{number} that is long enough to be a chunk of its own. ".ljust(
            190, "x"
        )
        text = "\n\n".join([paragraph] * chunks_of(number))
        (folder / f"{number:04}.txt").write_text(text)
    return folder


def ingest(folder: Path, index: Path, *, kill_after: int | None, pause: float = 0.0) -> int:
    """Run an ingest in a process of its own and kill it once it has told of some files; those it told of.

    `pause` is how long it works on before the kill, so that this comes at any moment of its work.
    """
    command = [sys.executable, "-c", SCRIPT, str(folder), str(index)]
    told = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for _ in child.stdout:
            told += 1
            if told == kill_after:
                time.sleep(pause)
                child.kill()
                break
        child.stdout.read()
        was_through = kill_after is None or told < kill_after
        assert child.wait(SOON) in ({0} if was_through else {-9, 0} if pause else {-9})
    return told


def check_whole(store: SqliteVectorStore, folder: Path) -> int:
    """Every document that is there is there once and in full, with its words; how many there are."""
    documents = store.documents()
    assert store.sources(document_id(folder)).keys() == set(documents)
    held = {name: store.chunks_of(name) for name in documents}
    assert {name: len(chunks) for name, chunks in held.items()} == {
        name: chunks_of(int(Path(name).stem)) for name in documents
    }
    assert len(store) == sum(map(len, held.values()))
    for name in documents[:: max(len(documents) // 20, 1)]:
        hits = store.search_words(f"file{int(Path(name).stem)}", 99)
        assert [hit.chunk.doc_id for hit in hits] == [name] * chunks_of(int(Path(name).stem))
    return len(documents)


@pytest.mark.slow
def test_an_ingest_killed_ten_times_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    folder = folder_of(FILES, tmp_path)
    index, rng = tmp_path / "index.sqlite", random.Random(7)
    before = 0
    for _ in range(10):
        ingest(folder, index, kill_after=rng.randrange(1, 90))
        with SqliteVectorStore(index, read_only=True) as store:
            held = check_whole(store, folder)
        assert held >= before
        before = held
    assert before > 0
    ingest(folder, index, kill_after=None)
    with SqliteVectorStore(index, read_only=True) as store:
        assert check_whole(store, folder) == FILES


def test_an_ingest_killed_once_goes_on_where_it_stood(tmp_path: Path) -> None:
    files = 350
    folder = folder_of(files, tmp_path)
    index = tmp_path / "index.sqlite"
    assert ingest(folder, index, kill_after=101) == 101
    with SqliteVectorStore(index, read_only=True) as store:
        before = check_whole(store, folder)
    assert 101 <= before < files
    assert ingest(folder, index, kill_after=None) == files - before
    with SqliteVectorStore(index, read_only=True) as store:
        assert check_whole(store, folder) == files


def manual(folder: Path) -> None:
    """Three megabytes of pages in two languages, and two PDF files of 60 pages."""
    write_manual(folder, pages=MANUAL)
    for name in ("first", "second"):
        pages = (
            ") Tj 0 -14 Td (".join(f"Line {line} of page {page} of the {name} manual." for line in range(40))
            for page in range(60)
        )
        (folder / f"{name}.pdf").write_bytes(small_pdf(*pages))


def texts_in(index: Path) -> dict[str, list[str]]:
    with SqliteVectorStore(index, read_only=True) as store:
        held = {name: [chunk.text for chunk in store.chunks_of(name)] for name in store.documents()}
        assert len(store) == sum(map(len, held.values()))
    return held


@pytest.mark.slow
def test_a_manual_of_megabytes_killed_ten_times_at_random_is_there_once_and_in_full(tmp_path: Path) -> None:
    folder, whole, killed = tmp_path / "manual", tmp_path / "whole.sqlite", tmp_path / "killed.sqlite"
    manual(folder)
    told = ingest(folder, whole, kill_after=None)
    wanted, rng = texts_in(whole), random.Random(11)
    assert len(wanted) == told == MANUAL + 2
    partly = 0
    for _ in range(10):
        ingest(folder, killed, kill_after=rng.randrange(1, 20), pause=rng.uniform(0, 0.2))
        held = texts_in(killed)
        assert held == {name: wanted[name] for name in held}
        partly += len(held) < len(wanted)
        if len(held) == len(wanted):
            killed = killed.with_stem(f"{killed.stem}x")  # the next is killed in the middle again
    ingest(folder, killed, kill_after=None)
    assert (texts_in(killed) == wanted, partly >= 3) == (True, True)
