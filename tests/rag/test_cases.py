"""The shared cases of the bug corpus: symptoms that other systems were reported for."""

import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import regex

from dialoom.base.errors import DialoomError
from dialoom.rag.chunk import SlidingWindowChunker
from dialoom.rag.cite import CitationParser, parse_citations
from dialoom.rag.embed import HashEmbedder
from dialoom.rag.errors import EmptyQueryError, LoadError
from dialoom.rag.hybrid import HybridRetriever
from dialoom.rag.ingest import replace_documents
from dialoom.rag.loaders.load import load_file
from dialoom.rag.loaders.loader import Loaded, LoadOptions
from dialoom.rag.loaders.walk import LoadFailure, Skipped, iter_documents
from dialoom.rag.manifest import IndexManifest
from dialoom.rag.memory_store import InMemoryVectorStore
from dialoom.rag.rerank import MMRReranker
from dialoom.rag.retrieve import Search, VectorRetriever
from dialoom.rag.store import DocumentChunks
from dialoom.rag.sync import sync_folder
from dialoom.rag.types import Chunk, Document, FloatMatrix
from dialoom.stores.sqlite_index import SqliteVectorStore
from tests.rag.reading import growing_less_than

SHARED = Path(os.environ.get("DIALOOM_SHARED") or Path(__file__).parents[3] / "shared")
CASES = SHARED / "cases" / "rag"
LEFT = frozenset(
    {
        "embed-unordered-index",  # run against a server in test_openai_embedder.py
        "query-empty",  # run below: it is about questions, not vectors
    }
)
LEFT_AREAS = frozenset({"url"})  # run against real servers in test_url_cases.py

Case = Mapping[str, Any]


def every_case() -> list[Case]:
    path = CASES / "cases.jsonl"
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    )


def cases(*operations: str) -> list[Any]:
    found = [
        pytest.param(case, id=case["id"])
        for case in every_case()
        if case["op"] in operations and case["area"] not in LEFT_AREAS and case["id"] not in LEFT
    ]
    skip = pytest.mark.skip(reason=f"THE SHARED CASES ARE NOT AT {CASES}: set DIALOOM_SHARED")
    return found or [pytest.param({}, marks=skip, id="shared")]


SAID_BY_RUNNING = frozenset({"parent_alive", "no_error", "encodable", "offsets_exact", "sorted"})
ASKED = {
    "load": "error error_any contains not_contains contains_ws startswith in_order max_count documents ids "
    "warnings errors_at_lines meta meta_pages page_of rows row_contains columns max_seconds max_rss_mb",
    "chunk": "error chunks cover max_len max_bytes no_chunk_startswith no_split_inside max_seconds",
    "load_dir": "files distinct_ids failed skipped max_seconds",
    "script": "error ids ids_min0 size scores first score_range text_of docs_text failed docs",
    "parse": "cited",
    "parse_stream": "cited text",
    "bm25": "first ids",
}
ASKED["load+chunk"] = ASKED["chunk"]


def test_every_case_is_run_or_named_as_left_and_all_that_it_expects_is_looked_at() -> None:
    mine = [case for case in every_case() if case["area"] not in LEFT_AREAS and case["id"] not in LEFT]
    assert [case["id"] for case in mine if case["op"] not in ASKED] == []
    known = {op: SAID_BY_RUNNING.union(words.split()) for op, words in ASKED.items()}
    assert [case["id"] for case in mine if not case["expect"].keys() <= known[case["op"]]] == []


@pytest.mark.parametrize("case", cases("load"))
def test_load(case: Case) -> None:
    options = LoadOptions(**case.get("options", {}))
    expect = case["expect"]
    errors = expect.get("error_any") or [expect["error"]] if {"error", "error_any"} & expect.keys() else []
    if errors:
        started = time.monotonic()
        with growing_less_than(50), pytest.raises(LoadError) as caught:
            load_file(CASES / case["file"], options)
        assert caught.value.code in errors
        assert time.monotonic() - started < expect.get("max_seconds", 60)
        return
    loaded = load_file(CASES / case["file"], options)
    check_text("\n".join(document.text for document in loaded.documents), expect)
    check_report(loaded, expect)


def check_text(text: str, expect: Case) -> None:
    assert [piece for piece in expect.get("contains", []) if piece not in text] == []
    assert [piece for piece in expect.get("not_contains", []) if piece in text] == []
    flat = " ".join(text.split())
    assert [piece for piece in expect.get("contains_ws", []) if piece not in flat] == []
    assert text.startswith(expect.get("startswith", ""))
    places = [text.find(piece) for piece in expect.get("in_order", [])]
    assert places == sorted(places)
    assert -1 not in places
    for piece, most in expect.get("max_count", {}).items():
        assert text.count(piece) <= most


def check_report(loaded: Loaded, expect: Case) -> None:
    documents = loaded.documents
    codes = {warning.code for warning in loaded.warnings}
    assert len(documents) == expect.get("documents", len(documents))
    assert set(expect.get("warnings", [])) <= codes
    if "errors_at_lines" in expect:
        assert [warning.line for warning in loaded.warnings] == expect["errors_at_lines"]
    if "ids" in expect:
        assert [document.metadata["record"] for document in documents] == expect["ids"]
    meta = expect.get("meta", {})
    if "encoding" in meta:
        assert documents[0].metadata["encoding"] in meta["encoding"]
    if "headings" in meta:
        assert [heading.text for heading in documents[0].headings] == meta["headings"]
    if "meta_pages" in expect:
        assert len(documents[0].pages) == expect["meta_pages"]
    for piece, number in expect.get("page_of", {}).items():
        page = documents[0].pages[number - 1]
        assert piece in documents[0].text[page.start : page.end]
    if "rows" in expect:
        assert len(documents[0].rows) == expect["rows"]
    for row, pieces in expect.get("row_contains", {}).items():
        span = documents[0].rows[int(row)]
        assert all(piece in documents[0].text[span.start : span.end] for piece in pieces)
    if "columns" in expect:
        assert documents[0].metadata["columns"] == expect["columns"]


@pytest.mark.parametrize("case", cases("chunk", "load+chunk"))
def test_chunk(case: Case) -> None:
    expect = case["expect"]
    started = time.process_time()
    if "error" in expect:
        with pytest.raises(DialoomError) as caught:
            SlidingWindowChunker(**case["options"])
        assert caught.value.code == expect["error"]
        return
    document = Document(id="d", text=case.get("input", ""))
    if "file" in case:
        (document,) = load_file(CASES / case["file"]).documents
    chunks = SlidingWindowChunker(**case["options"]).chunk(document)
    texts = [chunk.text for chunk in chunks]
    assert texts == expect.get("chunks", texts)
    assert [document.text[chunk.start : chunk.end] for chunk in chunks] == texts
    if expect.get("cover"):
        covered = {place for chunk in chunks for place in range(chunk.start, chunk.end)}
        assert {place for place, mark in enumerate(document.text) if not mark.isspace()} <= covered
    assert max(map(len, texts), default=0) <= expect.get("max_len", 10**9)
    assert max((len(text.encode()) for text in texts), default=0) <= expect.get("max_bytes", 10**9)
    assert [text for text in texts if text.startswith(tuple(expect.get("no_chunk_startswith", ["\0"])))] == []
    whole = set(regex.findall(r"\X", document.text)) if "no_split_inside" in expect else set()
    if whole:
        assert {cluster for text in texts for cluster in regex.findall(r"\X", text)} <= whole
    assert time.process_time() - started < expect.get("max_seconds", 60)


@pytest.mark.parametrize("case", cases("load_dir"))
def test_load_dir(case: Case, tmp_path: Path) -> None:
    for action, name, *rest in case["setup"]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        match action:
            case "mkdir":
                path.mkdir(parents=True)
            case "write":
                path.write_text(rest[0], encoding="utf-8")
            case "symlink":
                path.symlink_to(rest[0])
            case "chmod":
                path.chmod(int(rest[0], 8))
            case other:
                raise AssertionError(other)
    started = time.monotonic()
    items = list(iter_documents(tmp_path, LoadOptions(**case.get("options", {}))))
    assert time.monotonic() - started < case["expect"].get("max_seconds", 60)
    base = f"{tmp_path.as_posix()}/"
    files = [item.source.removeprefix(base) for item in items if isinstance(item, Loaded)]
    skipped = {item.path.removeprefix(base): item.reason for item in items if isinstance(item, Skipped)}
    failed = {item.path.removeprefix(base): item.code for item in items if isinstance(item, LoadFailure)}
    expect = case["expect"]
    if "files" in expect:
        as_root = {"locked.txt"} if os.geteuid() == 0 else set()  # no permission stops root
        assert [name for name in files if name not in as_root] == expect["files"]
    if "distinct_ids" in expect:
        ids = {document.id for item in items if isinstance(item, Loaded) for document in item.documents}
        assert len(ids) == expect["distinct_ids"]
    assert expect.get("failed", {}).items() <= failed.items()
    for name, reason in expect.get("skipped", {}).items():
        # a folder that is left out is said once, for all below it
        above = [skipped.get("/".join(name.split("/")[: depth + 1])) for depth in range(name.count("/") + 1)]
        assert reason in above or name in files


@pytest.mark.parametrize("case", cases("parse", "parse_stream"))
def test_parse(case: Case) -> None:
    asked, expect = case["input"], case["expect"]
    if "answer" in asked:
        assert parse_citations(asked["answer"], asked["sources"]) == expect["cited"]
        return
    parser = CitationParser(asked["sources"])
    shown = [parser.feed(delta) for delta in asked["deltas"]]
    shown.append(parser.close())
    assert (parser.cited, "".join(shown)) == (expect["cited"], expect["text"])


class Failing(HashEmbedder):
    """Fails on the texts of one document."""

    def __init__(self, text: str) -> None:
        super().__init__(64)
        self.text = text

    async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        if self.text in texts:
            raise RuntimeError("cannot embed this one")
        return self.embed(texts)


class Script:
    """Runs the steps of a store case and keeps what they gave."""

    def __init__(self, folder: Path) -> None:
        self.store = InMemoryVectorStore()
        self.folder = folder
        self.hits: list[list[tuple[str, float]]] = []
        self.failed: list[str] = []

    def rows_of(self, chunks: Sequence[Sequence[Any]]) -> FloatMatrix:
        return np.array([[float(number) for number in chunk[3]] for chunk in chunks], np.float32)

    def batch(self, doc_id: str, chunks: Sequence[Sequence[Any]]) -> DocumentChunks:
        pieces = [Chunk(id=chunk[0], doc_id=chunk[1], text=chunk[2]) for chunk in chunks]
        return DocumentChunks(doc_id, pieces, self.rows_of(chunks))

    def search(self, query: Sequence[float], k: int, least: float | None = None, **where: str) -> None:
        def keep(chunk: Chunk) -> bool:
            return all(getattr(chunk, name) == value for name, value in where.items())

        found = self.store.search(np.array(query, np.float32), k, min_score=least, where=keep)
        self.hits.append([(hit.chunk.id, hit.score) for hit in found])

    async def mmr(self, query: Sequence[float], k: int, rerank_lambda: float) -> None:
        hits = self.store.search(np.array(query, np.float32), 99)
        reranker = MMRReranker(HashEmbedder(64), self.store, rerank_lambda=rerank_lambda)
        chosen = await reranker.rerank("", hits, k)
        self.hits.append([(hit.chunk.id, hit.score) for hit in chosen])

    async def ingest(self, texts: Mapping[str, str], failing: str = "") -> None:
        documents = [Document(id=name, text=text) for name, text in texts.items()]
        embedder = Failing(texts.get(failing, ""))
        report = await replace_documents(self.store, embedder, SlidingWindowChunker(), documents)
        self.failed += [failure.doc_id for failure in report.failures]

    async def sync(self, files: Mapping[str, str]) -> None:
        for path in self.folder.iterdir():
            path.unlink()
        for name, text in files.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        async for _ in sync_folder(
            self.folder, self.store, embedder=HashEmbedder(64), chunker=SlidingWindowChunker()
        ):
            pass

    async def step(self, name: str, *args: Any) -> None:
        steps: dict[str, Callable[..., Any]] = {
            "add": lambda chunks: self.store.add(self.batch("", chunks).chunks, self.rows_of(chunks)),
            "search": self.search,
            "search_min": self.search,
            "search_filter": lambda query, k, where: self.search(query, k, **where),
            "mmr": self.mmr,
            "remove_document": self.store.remove_document,
            "replace_document": lambda name, chunks: self.store.replace_documents([self.batch(name, chunks)]),
            "replace_documents": lambda batch: self.store.replace_documents(
                [self.batch(doc_id, chunks) for doc_id, chunks in batch.items()]
            ),
            "manifest": lambda fields: self.store.claim(IndexManifest(**fields)),
            "ingest_with": lambda fields: self.store.claim(IndexManifest(**fields)),
            "load_raw": lambda file: self.store.load(CASES / file),
            "sync_dir": self.sync,
            "ingest": self.ingest,
            "ingest_failing_on": self.ingest,
        }
        result = steps[name](*args)
        if result is not None and hasattr(result, "__await__"):
            await result


@pytest.mark.parametrize("case", cases("script"))
async def test_script(case: Case, tmp_path: Path) -> None:
    script, expect = Script(tmp_path), case["expect"]
    codes: list[str] = []
    for step in case["input"]:
        try:
            await script.step(*step)
        except DialoomError as error:
            codes.append(error.code)
    assert codes == ([expect["error"]] if "error" in expect else [])
    ids = [[name for name, _ in hits] for hits in script.hits]
    assert not script.hits or ids[0] == expect.get("ids", ids[0])
    assert ids[-1:] == ([expect["ids_min0"]] if "ids_min0" in expect else ids[-1:])
    assert len(script.store) == expect.get("size", len(script.store))
    scores = dict(script.hits[0]) if script.hits else {}
    assert expect.get("scores", {}).items() <= scores.items()
    assert ids[0][0] == expect["first"] if "first" in expect else True
    least, most = expect.get("score_range", [-1.0, 1.0])
    assert all(least <= score <= most for score in scores.values())
    everything = script.store.search(np.eye(1, dimension(script.store), dtype=np.float32)[0], 99)
    assert expect.get("text_of", {}).items() <= {hit.chunk.id: hit.chunk.text for hit in everything}.items()
    texts = {hit.chunk.doc_id: hit.chunk.text for hit in everything}
    assert expect.get("docs_text", {}).items() <= texts.items()
    assert script.failed == expect.get("failed", script.failed)
    documents = [re.sub(r".*/", "", name) for name in script.store.documents()]
    assert documents == expect.get("docs", documents)


@pytest.mark.parametrize("case", cases("bm25"))
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_bm25(case: Case, kind: str, tmp_path: Path) -> None:
    store = InMemoryVectorStore() if kind == "memory" else SqliteVectorStore(tmp_path / "index.sqlite")
    pieces = [Chunk(id=name, doc_id=name, text=text) for name, text in case["input"]["docs"].items()]
    store.add(pieces, np.ones((len(pieces), 2), np.float32))
    found = [hit.chunk.id for hit in store.search_words(case["input"]["query"], 9)]
    expect = case["expect"]
    if "first" in expect:
        assert found[0] == expect["first"]
    assert found == expect.get("ids", found)
    if isinstance(store, SqliteVectorStore):
        store.close()


def dimension(store: InMemoryVectorStore) -> int:
    return store.manifest.dim if store.manifest else 2


async def test_an_empty_question_is_refused_whatever_is_stored() -> None:
    store, embedder = InMemoryVectorStore(), HashEmbedder(64)
    await replace_documents(store, embedder, SlidingWindowChunker(), [Document(id="d", text="a")])
    for retriever in (HybridRetriever(store, embedder), VectorRetriever(store, embedder)):
        with pytest.raises(EmptyQueryError, match="the question is empty") as caught:
            await retriever.retrieve(Search(text="   "))
        assert caught.value.code == "empty_query"
