"""Numbered sources for a model."""

import pytest

from dialoom.rag.chunk import SlidingWindowChunker
from dialoom.rag.context import (
    context_text,
    estimate_tokens,
    limit_per_document,
    number_sources,
    source_title,
)
from dialoom.rag.types import Chunk, Document, Metadata, ScoredChunk


def hit(
    doc_id: str, start: int, text: str, score: float = 0.5, metadata: Metadata | None = None
) -> ScoredChunk:
    end = start + len(text)
    return ScoredChunk(
        Chunk(
            id=f"{doc_id}#{start}", doc_id=doc_id, text=text, start=start, end=end, metadata=metadata or {}
        ),
        score,
    )


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("four", 1), ("words", 2), ("退款需要", 4), ("退款 abc", 3)]
)
def test_tokens_are_estimated_by_script(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_sources_keep_the_order_in_which_they_were_found() -> None:
    sources = number_sources([hit("b", 0, "first", 0.2), hit("a", 5, "next", 0.9)], max_tokens=100)
    assert [(source.index, source.id, source.text, source.score, source.start) for source in sources] == [
        (1, "b#0", "first", 0.2, 0),
        (2, "a#5", "next", 0.9, 5),
    ]
    assert context_text(sources) == "[1] b\nfirst\n\n[2] a\nnext"
    assert (number_sources([], max_tokens=9), context_text([])) == ([], "")


def test_chunks_that_touch_or_overlap_become_one_source() -> None:
    text = "One sentence here. Two sentences here. Three sentences here. Four of them."
    chunks = SlidingWindowChunker(40, 20).chunk(Document(id="d", text=text))
    assert len(chunks) > 2
    hits = [ScoredChunk(chunk, 0.1 * number) for number, chunk in enumerate(chunks, 1)]
    (source,) = number_sources(hits[::-1], max_tokens=500)
    assert (source.id, source.text, source.score) == ("d#0", text, hits[-1].score)


def test_a_gap_of_white_space_is_bridged_and_a_real_one_is_not() -> None:
    near = number_sources([hit("d", 0, "one."), hit("d", 6, "two.")], max_tokens=100)
    assert [source.text for source in near] == ["one.\n\ntwo."]
    far = number_sources([hit("d", 0, "one."), hit("d", 99, "two."), hit("e", 4, "other")], max_tokens=100)
    assert [source.text for source in far] == ["one.", "two.", "other"]
    inner = number_sources([hit("d", 0, "one two three"), hit("d", 4, "two")], max_tokens=100)
    assert [source.text for source in inner] == ["one two three"]


def test_chunks_made_by_hand_without_places_stay_apart() -> None:
    hits = [ScoredChunk(Chunk(id=name, doc_id="d", text=name), 0.5) for name in ("x", "y")]
    assert [source.text for source in number_sources(hits, max_tokens=100)] == ["x", "y"]


def test_the_budget_is_kept_by_leaving_out_what_does_not_fit() -> None:
    hits = [hit("a", 0, "退" * 50), hit("b", 0, "款" * 90), hit("c", 0, "short")]
    assert [source.doc_id for source in number_sources(hits, max_tokens=100)] == ["a", "c"]


def test_a_first_source_that_is_too_long_is_cut() -> None:
    (source,) = number_sources([hit("a", 0, "退" * 500), hit("b", 0, "x")], max_tokens=100)
    assert (source.doc_id, source.text) == ("a", "退" * 88)
    (tiny,) = number_sources([hit("a", 0, "x")], max_tokens=1)
    assert tiny.text == "x"


def test_no_document_takes_all_the_places() -> None:
    hits = [hit("a", 0, "1"), hit("a", 50, "2"), hit("b", 0, "3"), hit("a", 90, "4"), hit("b", 80, "5")]
    assert [item.chunk.text for item in limit_per_document(hits, 2)] == ["1", "2", "3", "5"]


@pytest.mark.parametrize(
    ("chunk", "title"),
    [
        (Chunk(id="d#0", doc_id="/kb/a.md", text=""), "a.md"),
        (Chunk(id="d#0", doc_id="/kb/a.md", text="", heading_path=("One", "Two")), "a.md, Two"),
        (Chunk(id="d#0", doc_id="/kb/a.pdf", text="", page=3, heading_path=("One",)), "a.pdf, page 3"),
        (
            Chunk(id="d#0", doc_id="/kb/a.csv", text="", metadata={"source": "/kb/a.csv", "row": 2}),
            "a.csv, row 2",
        ),
        (Chunk(id="d#0", doc_id="/kb/a.csv", text="", metadata={"row": 2, "last_row": 2}), "a.csv, row 2"),
        (
            Chunk(id="d#0", doc_id="/kb/a.csv", text="", metadata={"row": 2, "last_row": 4}),
            "a.csv, rows 2 to 4",
        ),
        (
            Chunk(
                id="d#0",
                doc_id="/kb/f.jsonl#q/1",
                text="",
                metadata={"source": "/kb/f.jsonl", "record": "q/1"},
            ),
            "f.jsonl, record q/1",
        ),
    ],
)
def test_a_title_names_the_place(chunk: Chunk, title: str) -> None:
    assert source_title(chunk) == title


def test_merged_rows_are_named_together() -> None:
    document = Document(id="/kb/a.csv", text="")
    metadata: Metadata = {"source": document.id, "row": 1, "last_row": 2}
    later: Metadata = {"source": document.id, "row": 3, "last_row": 4}
    hits = [hit(document.id, 0, "a: 1", 0.4, metadata), hit(document.id, 6, "a: 3", 0.6, later)]
    (source,) = number_sources(hits, max_tokens=100)
    assert source.title == "a.csv, rows 1 to 4"
