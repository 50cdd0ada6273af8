"""Knowledge at 50,000 chunks, against plain Python, numpy and SQLite, and what is stated elsewhere."""

import sqlite3
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np

from bench.report import Row, interleaved
from dialoom.rag import Chunk, FloatMatrix, HashEmbedder, IndexManifest, InMemoryVectorStore
from dialoom.stores import SqliteVectorStore

PACKAGES = ("numpy", "regex")
COUNT = 50_000
DIM = 128
K = 10
QUERIES = 100
SCAN_MS = 10.0
"""What the requirement states for a scan of its own C++ store: 10 to 14 ms."""
ADD_MS = 1000 * COUNT / 1_300_000
HASH_MS_PER_MB = 10.0
_WORDS = [
    *("lamp", "oil", "wick", "refund", "parcel", "norway", "shipping", "station"),
    *("battery", "warranty", "trailer", "invoice", "退款", "运费", "包裹"),
]


def rows() -> list[Row]:
    """Return CPU times; each is the median of rounds taken turn by turn."""
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(500, DIM))
    vectors = (centres[rng.integers(0, 500, COUNT)] + 0.5 * rng.normal(size=(COUNT, DIM))).astype(np.float32)
    chunks = _chunks()
    store = _filled(chunks, vectors)
    questions = vectors[: QUERIES * 7 : 7] + np.float32(0.1)
    return [
        *_searches(store, vectors, questions),
        *_adding(chunks, vectors),
        _by_words(store, chunks),
        *_on_disk(chunks, vectors),
        _hashing(),
    ]


def _chunks() -> list[Chunk]:
    rng = np.random.default_rng(2)
    picked: list[list[int]] = rng.integers(0, len(_WORDS), (COUNT, 40)).tolist()
    chunks: list[Chunk] = []
    for number, places in enumerate(picked):
        text = " ".join([*(_WORDS[place] for place in places), f"item{number % 997}"])
        doc_id = f"d{number // 10}"
        chunks.append(Chunk(id=f"{doc_id}#{number % 10}", doc_id=doc_id, text=text, end=len(text)))
    return chunks


def _filled(chunks: list[Chunk], vectors: FloatMatrix) -> InMemoryVectorStore:
    store = InMemoryVectorStore()
    store.claim(IndexManifest(embedder="bench", model="clusters", dim=DIM, chunker="words"))
    store.add(chunks, vectors)
    return store


def _searches(store: InMemoryVectorStore, vectors: FloatMatrix, questions: FloatMatrix) -> list[Row]:
    units = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    listed: list[list[float]] = units[:2_000].tolist()
    question = questions[3]

    def plain_python() -> None:
        """The loop that in-memory stores of the field run, over one 25th of the rows."""
        asked: list[float] = question.tolist()
        scores = [sum(a * b for a, b in zip(row, asked, strict=True)) for row in listed]
        sorted(range(len(scores)), key=scores.__getitem__, reverse=True)[:K]

    def numpy_scan() -> None:
        np.argsort(-(units @ question))[:K]

    one, python = (1000 * each for each in interleaved(partial(store.search, question, K), plain_python))
    again, scan = (1000 * each for each in interleaved(partial(store.search, question, K), numpy_scan))
    many, single = interleaved(
        partial(store.search_many, questions, K),
        lambda: [store.search(each, K) for each in questions],
        rounds=3,
    )
    return [
        Row("search 50,000 x 128, top 10", "ms", one, "the seed's C++ scan (10 ms)", SCAN_MS, must=0.25),
        Row("search 50,000 x 128, top 10", "ms", one, "a Python loop over them", python * 25, must=0.01),
        Row("search 50,000 x 128, top 10", "ms", again, "numpy product and argsort", scan, must=1.0),
        Row("100 searches at once", "ms", 1000 * many, "100 searches", 1000 * single, must=0.6),
    ]


def _adding(chunks: list[Chunk], vectors: FloatMatrix) -> list[Row]:
    def least() -> None:
        """What any store has to do: know each chunk by id and by document, and scale each vector."""
        by_id = {chunk.id: chunk for chunk in chunks}
        by_document: dict[str, list[Chunk]] = {}
        for chunk in by_id.values():
            by_document.setdefault(chunk.doc_id, []).append(chunk)
        np.divide(vectors, np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None])

    ours, floor = (1000 * each for each in interleaved(partial(_filled, chunks, vectors), least, rounds=11))
    return [
        Row("add 50,000 chunks", "ms", ours, "two dicts and the scaling", floor, must=4.0),
        # the only row against another machine's figure, so a busy one is forgiven half
        Row("add 50,000 chunks", "ms", ours, "1.3 million chunks/s", ADD_MS, must=1.5),
    ]


def _by_words(store: InMemoryVectorStore, chunks: list[Chunk]) -> Row:
    asked = ["item7 warranty", "退款 item31", "item500"]
    lowered = [chunk.text.lower() for chunk in chunks]

    def plain_scan() -> None:
        for question in asked:
            words = question.split()
            scored = [sum(word in text for word in words) for text in lowered]
            sorted(range(len(scored)), key=scored.__getitem__, reverse=True)[:K]

    store.search_words("lamp", K)  # the first one reads the words
    ours, theirs = interleaved(lambda: [store.search_words(each, K) for each in asked], plain_scan, rounds=5)
    return Row(
        "3 questions by words, in memory", "ms", 1000 * ours, "a Python scan", 1000 * theirs, must=0.25
    )


def _on_disk(chunks: list[Chunk], vectors: FloatMatrix) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path, listed = Path(folder) / "index.sqlite", Path(folder) / "index.json"
        with SqliteVectorStore(path) as written:
            written.add(chunks, vectors)
            found, scanned = interleaved(
                lambda: written.search_words("item7 warranty", K), partial(_look_through, path), rounds=5
            )
        _filled(chunks, vectors).save(listed)
        loaded, read = interleaved(
            partial(_open_and_search, path, vectors), partial(InMemoryVectorStore().load, listed), rounds=5
        )
        sizes = [file.stat().st_size / 1e6 for file in (path, listed)]
    return [
        Row(
            "a question by words, SQLite", "ms", 1000 * found, "LIKE over the texts", 1000 * scanned, must=1.0
        ),
        Row("open 50,000 x 128 and search", "ms", 1000 * loaded, "the JSON file", 1000 * read, must=0.5),
        Row("index on disk", "MB", sizes[0], "the JSON file", sizes[1], must=1.0),
    ]


def _look_through(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "SELECT id FROM chunks WHERE text LIKE '%item7%' OR text LIKE '%warranty%' LIMIT -1"
        ).fetchall()


def _open_and_search(path: Path, vectors: FloatMatrix) -> None:
    with SqliteVectorStore(path, read_only=True) as opened:
        opened.search(vectors[0], 1)


def _hashing() -> Row:
    texts = ["The parcel came back from Norway, and 退款需要三个工作日。 " * 30] * 500
    embedder = HashEmbedder()
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    taken, _ = interleaved(partial(embedder.embed, texts), lambda: None, rounds=5)
    return Row("hash embedding", "ms/MB", 1000 * taken / megabytes, "100 MB/s", HASH_MS_PER_MB, must=1.5)
