"""The sliding window: exact offsets, whole characters, ends where a thought ends."""

import time
from typing import Any

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.rag.chunk import SlidingWindowChunker
from dialoom.rag.errors import InvalidOptionsError
from dialoom.rag.types import Chunk, Document, Heading, PageSpan, RowSpan

FAMILY, FLAG, ACCENT = "👨\u200d👩\u200d👧\u200d👦", "🇨🇳", "e\u0323\u0301"


def cut(text: str, size: int, overlap: int = 0, *, unit: str = "chars") -> list[Chunk]:
    return SlidingWindowChunker(size, overlap, unit=unit).chunk(Document(id="d", text=text))


def texts(text: str, size: int, overlap: int = 0, *, unit: str = "chars") -> list[str]:
    return [chunk.text for chunk in cut(text, size, overlap, unit=unit)]


def test_a_short_text_is_one_chunk_and_an_empty_one_none() -> None:
    assert texts("  Hello. \n", 20) == ["Hello."]
    assert [texts(blank, 20) for blank in ("", " \n\u3000", "\u200b\u200b")] == [[], [], []]


@pytest.mark.promise("rag-057")
def test_windows_overlap_where_there_is_nothing_to_end_at() -> None:
    assert texts("abcdefghij", 5, 2) == ["abcde", "defgh", "ghij"]


@pytest.mark.promise("rag-058")
def test_a_window_ends_with_a_sentence() -> None:
    assert texts("One is here. Two is there! Is three? And version 3.5 is four.", 30) == [
        "One is here. Two is there!",
        "Is three?",
        "And version 3.5 is four.",
    ]


def test_an_abbreviation_ends_no_sentence() -> None:
    assert texts("They met. Dr. Ng and Mr. Li are both here now. Good.", 22) == [
        "They met.",
        "Dr. Ng and Mr. Li are",
        "both here now. Good.",
    ]


def test_a_chinese_sentence_keeps_its_end_and_closing_quote() -> None:
    text = "天青色等烟雨，而我在等你。“哈哈哈！”他笑着说。炊烟袅袅升起，隔江千万里。" * 4
    chunks = texts(text, 30)
    assert "".join(chunks) == text
    assert [chunk for chunk in chunks if chunk[0] in "。，！？”"] == []
    assert {chunk[-1] for chunk in chunks} == {"。"}


def test_a_paragraph_end_comes_before_a_sentence_end_and_a_section_before_both() -> None:
    assert texts("First one. Still first one.\n\nSecond. More of it here.", 40) == [
        "First one. Still first one.",
        "Second. More of it here.",
    ]
    text = "# A\nShort text. More.\n\n# B\nThe second section goes on. And on."
    document = Document(id="d", text=text, headings=(Heading(1, "A", 0), Heading(1, "B", 23)))
    chunks = SlidingWindowChunker(50, 20).chunk(document)
    assert [(chunk.text[:3], chunk.heading_path) for chunk in chunks] == [("# A", ("A",)), ("# B", ("B",))]


def test_a_clause_or_a_word_is_better_than_nothing() -> None:
    assert texts("a clause first, then a very long rest without any end", 20) == [
        "a clause first,",
        "then a very long",
        "rest without any end",
    ]
    assert texts("中文没有空格" * 3, 8) == ["中文没有空格中文", "没有空格中文没有", "空格"]
    assert texts("一二三四五六七（八九十）一二三四", 8) == ["一二三四五六七", "（八九十）一二三", "四"]


def test_the_next_window_starts_with_a_sentence_or_a_word() -> None:
    assert texts("Alpha beta gamma. Delta two. Epsilon zeta eta theta iota.", 30, 12) == [
        "Alpha beta gamma. Delta two.",
        "Delta two. Epsilon zeta eta",
        "zeta eta theta iota.",
    ]


@pytest.mark.promise("rag-059")
def test_characters_of_many_parts_stay_whole() -> None:
    text = (FAMILY + FLAG + ACCENT + "字") * 8
    whole = set(regex.findall(r"\X", text))
    for overlap in (0, 3):
        chunks = texts(text, 10, overlap)
        assert all(set(regex.findall(r"\X", chunk)) <= whole for chunk in chunks)
        assert max(map(len, chunks)) <= 10


def test_a_character_longer_than_the_window_is_cut_after_all() -> None:
    zalgo = "e" + "\u0301" * 50
    assert "".join(texts(zalgo, 8)) == zalgo


def test_a_window_may_be_measured_in_bytes() -> None:
    text = "中文和 emoji 😀 混排。" * 20
    chunks = texts(text, 64, 20, unit="bytes")
    assert max(len(chunk.encode()) for chunk in chunks) <= 64
    assert min(len(chunk.encode()) for chunk in chunks[:-1]) > 32
    assert texts("😀" * 3, 4, unit="bytes") == ["😀"] * 3


def test_a_chunk_knows_its_page_and_its_headings() -> None:
    text = "Intro.\n\nOne\nabout one.\n\nOne A\nabout one a.\n\nTwo\nabout two."
    headings = tuple(
        Heading(level, name, text.index(f"\n\n{name}\n") + 2)
        for level, name in ((1, "One"), (2, "One A"), (1, "Two"))
    )
    pages = (PageSpan(1, 0, 20), PageSpan(2, 22, len(text)))
    document = Document(id="d", text=text, headings=headings, pages=pages, metadata={"source": "s"})
    assert [
        (chunk.id, chunk.text.split("\n")[0], chunk.page, chunk.heading_path, chunk.metadata)
        for chunk in SlidingWindowChunker(24, 0).chunk(document)
    ] == [
        ("d#0", "Intro.", 1, (), {"source": "s"}),
        ("d#1", "One", 1, ("One",), {"source": "s"}),
        ("d#2", "One A", 2, ("One", "One A"), {"source": "s"}),
        ("d#3", "Two", 2, ("Two",), {"source": "s"}),
    ]


def test_rows_are_measured_in_bytes_too() -> None:
    text = "中文\n\n中文\n\nab"
    document = Document(id="d", text=text, rows=(RowSpan(1, 0, 2), RowSpan(2, 4, 6), RowSpan(3, 8, 10)))
    chunks = SlidingWindowChunker(8, 0, unit="bytes").chunk(document)
    assert [chunk.text for chunk in chunks] == ["中文", "中文", "ab"]


@pytest.mark.parametrize(
    ("size", "overlap"), [(10, 10), (10, -1), (3, 0), (2_000_000, 0), ("10", 0), (10.0, 0), (10, None)]
)
def test_options_that_cannot_be_are_refused(size: Any, overlap: Any) -> None:
    with pytest.raises(InvalidOptionsError) as caught:
        SlidingWindowChunker(size, overlap)
    assert caught.value.code == "invalid_options"


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(InvalidOptionsError, match="unit"):
        SlidingWindowChunker(10, 0, unit="words")


def test_the_signature_says_how_it_cuts() -> None:
    assert SlidingWindowChunker().signature() == "sliding-v1/400/60/chars"
    assert SlidingWindowChunker(64, 0, unit="bytes").signature() == "sliding-v1/64/0/bytes"


@pytest.mark.slow
def test_a_long_line_takes_time_in_proportion_to_its_length() -> None:
    started = time.process_time()
    lines = ("x", "😀", "e\u0301", "。", "a. ", ".", ". ", "\u0301", "a)", ",)", "\n ", "👨\u200d", "“”")
    for line in (piece * (60_000 // len(piece)) + "x" for piece in lines):
        assert cut(line, 500, 50)
    assert time.process_time() - started < 20


PIECES = st.sampled_from(
    [
        "word",
        " ",
        "\n",
        "\n\n",
        ". ",
        "。",
        "”",
        "“",
        "，",
        "! ",
        "字",
        FAMILY,
        FLAG,
        ACCENT,
        "\r\n",
        "3.5",
        "\u200b",
    ]
)


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=60), st.integers(4, 30), st.data(), st.sampled_from(["chars", "bytes"]))
def test_any_text_is_covered_in_order_by_chunks_within_bounds(
    pieces: list[str], size: int, data: st.DataObject, unit: str
) -> None:
    text = "".join(pieces)
    overlap = data.draw(st.integers(0, size - 1))
    chunks = cut(text, size, overlap, unit=unit)
    assert [text[chunk.start : chunk.end] for chunk in chunks] == [chunk.text for chunk in chunks]
    longest = max(
        (len(chunk.text.encode()) if unit == "bytes" else len(chunk.text) for chunk in chunks), default=0
    )
    assert longest <= size
    starts, ends = [chunk.start for chunk in chunks], [chunk.end for chunk in chunks]
    assert starts == sorted(set(starts))
    assert ends == sorted(set(ends))
    covered = {place for chunk in chunks for place in range(chunk.start, chunk.end)}
    left = [text[place] for place in range(len(text)) if place not in covered]
    assert "".join(left).strip(" \r\n\u200b\u200d") == ""
    shared = [max(0, ends[place] - starts[place + 1]) for place in range(len(chunks) - 1)]
    assert max(shared, default=0) <= overlap


def test_a_long_text_is_cut_at_the_ends_of_sentences_all_along() -> None:
    sentences = [f"This is sentence number {number} of a very long text." for number in range(14_000)]
    document = Document(id="d", text=" ".join(sentences))
    assert len(document.text) > 600_000
    chunks = SlidingWindowChunker(400, 0).chunk(document)
    assert " ".join(chunk.text for chunk in chunks) == document.text
    assert all(chunk.text.endswith(" text.") for chunk in chunks)
    assert {len(chunk.text) // 45 for chunk in chunks[:-1]} <= {7, 8}
