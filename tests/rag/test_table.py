"""CSV and TSV files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.rag.chunk import SlidingWindowChunker
from dialoom.rag.errors import LoadError
from dialoom.rag.loaders.table import sniff_delimiter
from dialoom.rag.types import Document
from tests.rag.reading import read, read_one, warned


def row_texts(document: Document) -> list[str]:
    return [document.text[row.start : row.end] for row in document.rows]


@pytest.mark.promise("rag-009")
def test_rows_become_lines_of_column_and_value() -> None:
    document = read_one("a.csv", b'\xef\xbb\xbf"last, first",age\r\n"Doe, Jane",30\r\n\r\n"Roe",\r\n')
    assert row_texts(document) == ["last, first: Doe, Jane\nage: 30", "last, first: Roe"]
    assert document.metadata["columns"] == ["last, first", "age"]
    assert document.metadata["rows"] == 2


def test_a_quoted_cell_may_hold_lines() -> None:
    document = read_one("a.csv", b'id,comment\n1,"one\ntwo"\n2,"say ""hi"", ok"\n')
    assert row_texts(document) == ["id: 1\ncomment: one\ntwo", 'id: 2\ncomment: say "hi", ok']


def test_ragged_rows_are_kept_and_counted() -> None:
    loaded = read("a.csv", b"a,b\n1\n1,2,3\n1,2\n" + b"1\n" * 9)
    assert row_texts(loaded.documents[0])[:3] == ["a: 1", "a: 1\nb: 2\ncolumn 3: 3", "a: 1\nb: 2"]
    assert warned(loaded) == ["ragged"]
    assert "11 rows of /kb/a.csv" in loaded.warnings[0].message
    assert "(1, 2, 4, 5, 6, ...)" in loaded.warnings[0].message


def test_a_first_row_of_numbers_names_nothing() -> None:
    assert row_texts(read_one("a.csv", b"1.5,x\n2,y\n"))[0] == "column 1: 1.5\ncolumn 2: x"
    assert row_texts(read_one("a.csv", b"name,name\n2,y\n"))[0] == "column 1: name\ncolumn 2: name"


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    lines = "\n".join(delimiter.join(row) for row in [["name", "price"], ["lamp", "1,5"], ["bike", "2,5"]])
    sample = lines if delimiter != "," else "name,price\nlamp,5\n"
    assert sniff_delimiter(sample) == delimiter
    assert sniff_delimiter("") == ","
    assert sniff_delimiter("x" * 200_000) == ","


def test_a_chunk_holds_whole_rows_and_says_which() -> None:
    rows = "".join(f"{number},{'word ' * 5}\n" for number in range(1, 30))
    document = read_one("a.csv", f"number,words\n{rows}".encode())
    chunks = SlidingWindowChunker(100, 20).chunk(document)
    assert [chunk.text for chunk in chunks[:-1]] == [
        "\n\n".join(row_texts(document)[place : place + 2]) for place in range(0, 28, 2)
    ]
    assert [(chunk.metadata["row"], chunk.metadata["last_row"]) for chunk in chunks[:2]] == [(1, 2), (3, 4)]


def test_a_row_that_is_too_long_is_cut_alone() -> None:
    data = f"a,b\n1,x\n2,{'long words ' * 30}\n3,y\n".encode()
    chunks = SlidingWindowChunker(100, 0).chunk(read_one("a.csv", data))
    assert [chunk.metadata["row"] for chunk in chunks] == [1, 2, 2, 2, 2, 3]
    assert [chunk.text for chunk in (chunks[0], chunks[-1])] == ["a: 1\nb: x", "a: 3\nb: y"]


def test_a_file_without_rows_is_a_warning() -> None:
    assert warned(read("a.csv", b"name,age\n")) == ["empty"]
    assert warned(read("a.csv", b"\n,,\n")) == ["empty"]


@pytest.mark.parametrize(
    "data", [b'a,b\n1,"' + b"x" * 140_000 + b'"', b"," * 10_001 + b"x", b"a\n" + b"word\n" * 900]
)
def test_tables_beyond_the_limits_are_refused(data: bytes) -> None:
    with pytest.raises(LoadError) as caught:
        read("a.csv", data, max_extracted_bytes=2_000)
    assert caught.value.code == "limit"


def test_long_tables_look_at_the_time() -> None:
    assert len(read_one("a.csv", b"a,b\n" + b"1,2\n" * 2000).rows) == 2000


@given(st.lists(st.lists(st.text("ab,\n\"'; ", max_size=6), min_size=2, max_size=3), min_size=1, max_size=6))
def test_any_table_keeps_its_rows_in_order(table: list[list[str]]) -> None:
    quote = '"{}"'.format
    lines = "\n".join(",".join(quote(cell.replace('"', '""')) for cell in row) for row in table)
    loaded = read("a.csv", lines.encode())
    for document in loaded.documents:
        assert [row.number for row in document.rows] == list(range(1, len(document.rows) + 1))
        assert "\n\n".join(row_texts(document)) == document.text
