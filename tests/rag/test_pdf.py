"""PDF files, made here with reportlab."""

import io

import pytest

from dialoom.base.clock import SystemClock
from dialoom.rag.chunk import SlidingWindowChunker
from dialoom.rag.errors import LoadError
from dialoom.rag.loaders.load import load_bytes
from dialoom.rag.loaders.loader import LoadOptions
from tests.rag.reading import heads, read, read_one, warned

pytest.importorskip("reportlab")  # only what makes files here: without it the tests of this file are left out
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas


def make_pdf(*pages: str, title: str = "", user: str | None = None, outline: tuple[str, ...] = ()) -> bytes:
    file = io.BytesIO()
    encryption = StandardEncryption(user, ownerPassword="owner") if user is not None else None
    canvas = Canvas(file, encrypt=encryption)
    canvas.setTitle(title)
    for number, page in enumerate(pages):
        for line, text in enumerate(page.split("\n")):
            canvas.drawString(72, 720 - 20 * line, text)
        for text in outline:
            if text in page:
                canvas.bookmarkPage(text)
                canvas.addOutlineEntry(text, text, level=number)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


@pytest.mark.promise("rag-003")
def test_pages_follow_each_other_and_are_remembered() -> None:
    data = make_pdf("Refunds take three days.\nAsk us.", "The second page.", title="Refund\tpolicy")
    document = read_one("a.pdf", data)
    assert document.text == "Refunds take three days.\nAsk us.\n\nThe second page."
    assert [document.text[page.start : page.end].split()[0] for page in document.pages] == ["Refunds", "The"]
    assert document.metadata == {"source": "/kb/a.pdf", "pages": 2, "title": "Refund policy"}
    chunks = SlidingWindowChunker(40, 0).chunk(document)
    assert [(chunk.page, chunk.text.split()[-1]) for chunk in chunks] == [(1, "us."), (2, "page.")]


def test_a_word_broken_at_the_end_of_a_line_is_joined() -> None:
    assert (
        read_one("a.pdf", make_pdf("This is a long exam-\nple of text.")).text
        == "This is a long example of text."
    )


def test_bookmarks_are_headings_where_their_words_stand() -> None:
    data = make_pdf("Preface\nChapter one\nwords", "none here", outline=("Chapter one",))
    assert heads(read_one("a.pdf", data)) == [(1, "Chapter one")]


def test_a_bookmark_whose_words_are_not_on_its_page_stands_at_the_start_of_it() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.drawString(72, 700, "Only words")
    canvas.bookmarkPage("x")
    canvas.addOutlineEntry("Elsewhere", "x")
    canvas.bookmarkPage("y")
    canvas.addOutlineEntry(" ", "y")
    canvas.showPage()
    canvas.save()
    document = read_one("a.pdf", file.getvalue())
    assert [(heading.text, heading.start) for heading in document.headings] == [("Elsewhere", 0)]


def test_a_file_that_opens_without_a_password_is_read() -> None:
    assert read_one("a.pdf", make_pdf("open", user="")).text == "open"


def test_a_locked_file_is_named_as_such() -> None:
    with pytest.raises(LoadError, match="locked with a password") as caught:
        read("a.pdf", make_pdf("secret", user="secret"))
    assert caught.value.code == "encrypted"


def test_pages_without_text_are_a_warning_and_no_document() -> None:
    loaded = read("a.pdf", make_pdf("", ""))
    assert (loaded.documents, warned(loaded)) == ([], ["no_text_layer"])


@pytest.mark.parametrize("data", [b"", b"not a pdf", b"%PDF-1.4\nrubbish"])
def test_a_broken_file_is_named_as_such(data: bytes) -> None:
    with pytest.raises(LoadError, match="not a readable PDF") as caught:
        read("a.pdf", data)
    assert caught.value.code == "corrupt"


def test_too_much_text_is_refused() -> None:
    with pytest.raises(LoadError, match="more than 10 bytes") as caught:
        read("a.pdf", make_pdf("more than ten"), max_extracted_bytes=10)
    assert caught.value.code == "limit"


def test_too_much_time_is_refused() -> None:
    class Hurrying(SystemClock):
        def monotonic(self) -> float:
            self.time = getattr(self, "time", 0.0) + 40
            return self.time

    with pytest.raises(LoadError, match="took over 60 s") as caught:
        load_bytes(make_pdf("a", "b"), "/kb/a.pdf", options=LoadOptions(), clock=Hurrying())
    assert caught.value.code == "timeout"


def test_a_pdf_under_the_name_of_a_text_file_is_read_as_a_pdf() -> None:
    assert read_one("a.txt", make_pdf("hello")).text == "hello"
