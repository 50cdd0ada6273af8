"""load_document over files and folders, as the documents promise it."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dialoom.rag import (
    Chunk,
    Document,
    HashEmbedder,
    InMemoryVectorStore,
    Loaded,
    LoadError,
    LoadOptions,
    SlidingWindowChunker,
    Source,
    load_document,
    replace_documents,
)
from dialoom.rag.loaders import DocxLoader, HtmlLoader, PdfLoader
from dialoom.rag.loaders.load import document_id
from tests.rag.small_pdf import small_pdf
from tests.rag.test_word import package, para

FILES = {
    "fees.pdf": (small_pdf("Nine euros."), "Nine euros."),
    "fees.docx": (package(para("Nine euros.")), "Nine euros."),
    "fees.html": (b"<p>Nine <b>euros</b>.</p>", "Nine euros."),
    "fees.txt": (b"Nine euros.", "Nine euros."),
    "fees.md": (b"# Fees\n\nNine euros.", "# Fees\n\nNine euros."),
    "fees.jsonl": (b'{"text": "Nine euros."}\n', "Nine euros."),
    "fees.csv": (b"name,fee\nlamp,9\n", "name: lamp\nfee: 9"),
    "fees.log": (b"12:00 nine euros", "12:00 nine euros"),
}


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def page_text(folder: Path, markup: str) -> str:
    (document,) = load_document(write(folder, "page.html", markup.encode()))
    return document.text


@pytest.mark.promise("rag-003", "rag-004", "rag-005", "rag-006", "rag-007", "rag-008", "rag-009", "rag-010")
@pytest.mark.parametrize("name", FILES)
def test_every_format_is_read(name: str, tmp_path: Path) -> None:
    data, text = FILES[name]
    (document,) = load_document(write(tmp_path, name, data))
    assert document.text == text


@pytest.mark.promise("rag-002", "rag-012", "rag-013")
def test_a_folder_is_read_whole_in_the_order_of_its_paths(tmp_path: Path) -> None:
    for name in ("b/fees.txt", "a/deep/fees.txt", "c.txt", "a/fees.txt"):
        write(tmp_path, name, name.encode())
    documents = load_document(tmp_path)
    names = ["a/deep/fees.txt", "a/fees.txt", "b/fees.txt", "c.txt"]
    assert [document.text for document in documents] == names
    assert [document.id for document in documents] == [f"{tmp_path.as_posix()}/{name}" for name in names]
    (again,) = load_document(tmp_path / "a" / ".." / "c.txt")
    assert again.id == documents[-1].id


@pytest.mark.promise("rag-014", "rag-015")
async def test_paths_may_be_in_any_script(tmp_path: Path) -> None:
    folder = tmp_path / "知识库 é"
    documents = load_document(write(folder, "退款.txt", "三个工作日".encode()))
    store = InMemoryVectorStore()
    await replace_documents(store, HashEmbedder(), SlidingWindowChunker(), documents)
    store.save(folder / "索引.json")
    opened = InMemoryVectorStore()
    opened.load(folder / "索引.json")
    assert opened.documents() == [f"{folder.as_posix()}/退款.txt"]


class Upper:
    def load(self, source: Source) -> Loaded:
        return Loaded(source=source.id, documents=[Document(id=source.id, text=source.data.decode().upper())])


@pytest.mark.promise("rag-016", "rag-017")
def test_loaders_and_extractors_of_your_own_take_the_places_of_ours(tmp_path: Path) -> None:
    own = LoadOptions(
        loaders={
            ".txt": Upper(),
            ".pdf": PdfLoader(lambda data: f"pdf of {len(data)} bytes"),
            ".docx": DocxLoader(lambda data: " "),
            ".html": HtmlLoader(lambda text: text.replace("<p>", "* ")),
        }
    )
    for name, text in (
        ("a.txt", "HELLO"),
        ("a.pdf", "pdf of 5 bytes"),
        ("a.html", "* hi"),
    ):
        (document,) = load_document(write(tmp_path, name, b"<p>hi" if name == "a.html" else b"hello"), own)
        assert (document.id, document.text) == (f"{tmp_path.as_posix()}/{name}", text)
    assert load_document(write(tmp_path, "a.docx", b"hello"), own) == []
    with pytest.raises(LoadError) as caught:
        load_document(tmp_path / "a.pdf", LoadOptions(loaders=own.loaders, max_extracted_bytes=3))
    assert caught.value.code == "limit"


@pytest.mark.promise("rag-019")
def test_metadata_of_the_options_is_put_on_every_document_and_its_chunks(tmp_path: Path) -> None:
    write(tmp_path, "a.md", b"# Fees")
    write(tmp_path, "b.jsonl", b'{"text": "one"}\n{"text": "two"}\n')
    documents = load_document(tmp_path, LoadOptions(metadata={"team": "shop", "title": "Ours"}))
    assert [(each.metadata["team"], each.metadata["title"]) for each in documents] == [("shop", "Ours")] * 3
    chunks: list[Chunk] = [chunk for each in documents for chunk in SlidingWindowChunker().chunk(each)]
    assert {chunk.metadata["team"] for chunk in chunks} == {"shop"}


@pytest.mark.promise("rag-020")
def test_an_html_parser_of_your_own_reads_the_pages(tmp_path: Path) -> None:
    path = write(tmp_path, "a.html", "<p>退款".encode("gbk"))
    (document,) = load_document(path, LoadOptions(html_parser=lambda text: f"{text}\ud800!"))
    assert (document.text, document.metadata["encoding"]) == ("<p>退款\ufffd!", "gb18030")


@pytest.mark.promise("rag-024", "rag-025")
def test_a_large_file_and_a_large_text_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "a.html", b"<p>" + b"euros " * 1_000)
    for options in (LoadOptions(max_source_bytes=1_000), LoadOptions(max_extracted_bytes=1_000)):
        with pytest.raises(LoadError) as caught:
            load_document(path, options)
        assert caught.value.code == "limit"


@pytest.mark.promise("rag-030", "rag-031", "rag-032", "rag-033", "rag-034")
def test_a_page_is_its_visible_words(tmp_path: Path) -> None:
    assert page_text(tmp_path, "<p>a<!-- <b>not</b> this --> b</p>").split() == ["a", "b"]
    assert page_text(tmp_path, "<p>a</p><script>if (x < y) alert('<p>no</p>')</script><p>b</p>").split() == [
        "a",
        "b",
    ]
    assert page_text(tmp_path, """<p title="1 > 0" data-x='</p>no'>a</p>""") == "a"
    assert page_text(tmp_path, "<p>&#8364; &#x20AC; &euro; &amp; &lt;p&gt;</p>") == "€ € € & <p>"


def test_formats_that_need_not_be_isolated_are_read_here(tmp_path: Path) -> None:
    path = write(tmp_path, "fees.html", FILES["fees.html"][0])
    assert load_document(path, LoadOptions(isolated=frozenset())) == load_document(path)


@pytest.mark.parametrize("name", ["letter.txt", "letter.docx", "letter.md", "letter"])
def test_rtf_is_not_taken_for_text(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(rb"{\rtf1\ansi\deff0 {\fonttbl{\f0 Arial;}}\f0 Secret zebra.\par}")
    with pytest.raises(LoadError, match="is RTF, whatever its name says; save it as text or DOCX") as caught:
        load_document(tmp_path / name)
    assert caught.value.code == "unsupported"


NAMES = st.lists(st.sampled_from([b"\xff", b"\xfe", "\ufffd".encode(), b"f", b"e", b"x"]), min_size=1).map(
    b"".join
)


@pytest.mark.skipif(sys.platform == "win32", reason="names are no bytes there")
@given(NAMES, NAMES)
@example(b"\xff", "\ufffdff".encode())
@example(b"\xff", "\ufffd\ufffdff".encode())
def test_two_names_are_two_ids_whether_they_are_utf_8_or_not(one: bytes, other: bytes) -> None:
    first, second = (document_id(os.fsdecode(b"/kb/" + name)) for name in (one, other))
    assert (first == second) == (one == other)
    assert first.encode()
