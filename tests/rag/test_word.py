"""DOCX files: ones of python-docx, and XML by hand for what it cannot write."""

import io
import zipfile

import pytest

from dialoom.rag.errors import LoadError
from tests.rag.reading import heads, read, read_one, warned

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
NAMES = (
    f'xmlns:w="{W}" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
)


def package(body: str, part: str = "word/document.xml", **others: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(part, f"<w:document {NAMES}><w:body>{body}</w:body></w:document>")
        for name, content in others.items():
            archive.writestr(f"word/{name}.xml", content)
    return file.getvalue()


def text_of(body: str) -> str:
    return read_one("a.docx", package(body)).text


def para(text: str, style: str = "") -> str:
    return f"<w:p>{style}<w:r><w:t>{text}</w:t></w:r></w:p>"


@pytest.mark.promise("rag-004")
def test_a_document_of_word_is_read_in_order() -> None:
    made = pytest.importorskip("docx").Document()
    made.add_heading("退款政策", 1)
    made.add_paragraph("Before the table.")
    table = made.add_table(2, 2)
    table.cell(0, 0).text, table.cell(0, 1).text, table.cell(1, 0).text = "类别", "天数", "标准"
    inner = table.cell(1, 1).add_table(1, 2)
    inner.cell(0, 0).text, inner.cell(0, 1).text = "NESTED", "三天"
    made.add_heading("Later", 2)
    made.add_paragraph("first", style="List Bullet")
    made.add_paragraph("second", style="List Bullet")
    file = io.BytesIO()
    made.save(file)
    document = read_one("a.docx", file.getvalue())
    assert document.text == (
        "退款政策\n\nBefore the table.\n\n类别 | 天数\n标准 |\nNESTED | 三天\n\nLater\n\nfirst\n\nsecond"
    )
    assert heads(document) == [(1, "退款政策"), (2, "Later")]
    assert document.metadata == {"source": "/kb/a.docx", "title": "退款政策"}


def test_insertions_are_read_and_deletions_are_not() -> None:
    body = (
        "<w:p><w:r><w:t>The fee is </w:t></w:r><w:del><w:r><w:delText>OLD</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>NEW</w:t></w:r></w:ins></w:p>"
        f"<w:moveFrom>{para('moved')}</w:moveFrom><w:moveTo>{para('moved')}</w:moveTo>"
    )
    assert text_of(body) == "The fee is NEW\n\nmoved"


def test_a_text_box_is_read_once_after_its_paragraph() -> None:
    box = f"<w:txbxContent>{para('in the box')}</w:txbxContent>"
    body = (
        "<w:p><w:r><w:t>before </w:t></w:r><w:r><mc:AlternateContent><mc:Choice><wps:txbx>"
        f"{box}</wps:txbx></mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r>"
        "<w:r><w:t>after</w:t></w:r></w:p>"
    )
    assert text_of(body) == "before after\n\nin the box"


def test_a_table_in_a_text_box_and_a_box_in_a_cell_are_read() -> None:
    cells = "<w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr>"
    table = cells.format(para("a"), para("b"))
    box = f"<w:p><w:r><w:txbxContent><w:tbl>{table}</w:tbl>{para('x')}</w:txbxContent></w:r></w:p>"
    assert text_of(box) == "a | b\n\nx"
    assert text_of(f"<w:tbl>{cells.format(box, para('c'))}</w:tbl>") == "a | b x | c"


def test_lists_tabs_breaks_and_formulas_keep_their_shape() -> None:
    listed = "<w:pPr><w:tabs><w:tab w:val='left'/></w:tabs><w:numPr/></w:pPr>"
    body = (
        para("one", listed)
        + para("two", listed)
        + "<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br w:type='page'/><w:t>c</w:t>"
        "<w:noBreakHyphen/></w:r>"
        "<m:oMath><m:r><m:t>x+y</m:t></m:r></m:oMath></w:p><w:p/>"
    )
    assert text_of(body) == "- one\n- two\n\na\tb\nc-x+y"


def test_headings_are_known_by_style_name_and_outline_in_any_language() -> None:
    styles = (
        f"<w:styles {NAMES}><w:style w:styleId='1'><w:name w:val='heading 2'/></w:style>"
        "<w:style w:styleId='T'><w:name w:val='Title'/></w:style>"
        "<w:style w:styleId='O'><w:name w:val='Mine'/><w:pPr><w:outlineLvl w:val='3'/></w:pPr></w:style>"
        "<w:style w:styleId='B'><w:name w:val='Body'/><w:pPr><w:outlineLvl w:val='9'/></w:pPr></w:style>"
        "</w:styles>"
    )
    style = "<w:pPr><w:pStyle w:val='{}'/></w:pPr>".format
    body = (
        para("Top", style("T"))
        + para("第二", style("1"))
        + para("Fourth", style("O"))
        + para("plain", style("B"))
        + para("Own", "<w:pPr><w:outlineLvl w:val='0'/></w:pPr>")
    )
    document = read_one("a.docx", package(body, styles=styles))
    assert heads(document) == [(1, "Top"), (2, "第二"), (4, "Fourth"), (1, "Own")]


def test_notes_follow_the_text_and_other_main_parts_are_found() -> None:
    notes = f"<w:footnotes {NAMES}><w:footnote>{para('a note')}</w:footnote></w:footnotes>"
    data = package(para("body"), part="word/document2.xml", footnotes=notes)
    assert read_one("a.docx", data).text == "body\n\na note"


def test_the_strict_namespace_is_read_too() -> None:
    data = package(para("strict")).replace(b"x", b"x")
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w") as new:
        content = old.read("word/document.xml").decode()
        new.writestr(
            "word/document.xml", content.replace(W, "http://purl.oclc.org/ooxml/wordprocessingml/main")
        )
    assert read_one("a.docx", file.getvalue()).text == "strict"


def test_a_document_without_words_is_a_warning() -> None:
    loaded = read("a.docx", package("<w:p/>"))
    assert (loaded.documents, warned(loaded)) == ([], ["empty"])


def test_stray_parts_of_tables_do_no_harm() -> None:
    assert text_of(f"<w:tc>{para('x')}</w:tc><w:t>lost</w:t>{para('y')}") == "y"


def flagged(data: bytes) -> bytes:
    """The package with the flag that says its members have a password."""
    changed = bytearray(data)
    changed[6] |= 1
    directory = data.index(b"PK\x01\x02")
    changed[directory + 8] |= 1
    return bytes(changed)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"plain text", "corrupt"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "corrupt"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
        (flagged(package(para("x"))), "encrypted"),
        (package(para("x"), part="other.xml"), "corrupt"),
        (package("<w:p>"), "corrupt"),
        (package(para("x"))[:150], "corrupt"),
        (package(para("x" * 5000)), "limit"),
        (package("", styles='<!DOCTYPE d [<!ENTITY a "aaaa">]><d>&a;</d>'), "xml_entities"),
    ],
)
def test_bad_packages_are_named(data: bytes, code: str) -> None:
    with pytest.raises(LoadError) as caught:
        read("a.docx", data, max_extracted_bytes=4000)
    assert caught.value.code == code
