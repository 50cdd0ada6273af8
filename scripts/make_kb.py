"""The binary documents of examples/kb, made from the texts in scripts/kb_sources.

`python scripts/make_kb.py` writes what has changed; `--check` writes nothing and exits 1 when a committed
file is stale. It needs the dev group, whose pinned versions give the same bytes on each run: dates and ids
are fixed, and nothing depends on the clock.

Sources are a small Markdown: one line is one block (`# `, `## `, `- ` or text), and lines that start with
`|` form a table. Documents that are plain UTF-8 are not made here; they are edited in examples/kb.
"""

from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import assert_never
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo, is_zipfile

from docx import Document
from docx.document import Document as DocxDocument
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import StyleSheet1, getSampleStyleSheet
from reportlab.lib.units import cm
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, SimpleDocTemplate, TableStyle
from reportlab.platypus import Paragraph as PdfParagraph
from reportlab.platypus import Table as PdfTable

SCRIPTS = Path(__file__).resolve().parent
SOURCES = SCRIPTS / "kb_sources"
KB = SCRIPTS.parent / "examples" / "kb"
AUTHOR = "Orlivane"
ISSUED = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
GRID = TableStyle(
    [
        ("GRID", (0, 0), (-1, -1), 0.5, colors.grey),
        ("BACKGROUND", (0, 0), (-1, 0), colors.whitesmoke),
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
    ]
)


@dataclass(frozen=True, slots=True)
class Heading:
    """A title (level 1) or a section heading (level 2)."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph of running text."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullet:
    """One item of an unordered list."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; the first row is the header."""

    rows: tuple[tuple[str, ...], ...]


Block = Heading | Paragraph | Bullet | Table


@dataclass(frozen=True, slots=True)
class Recipe:
    """Which source becomes which document, and how."""

    source: str
    target: str
    render: Callable[[str], bytes]


def main() -> int:
    """Bring examples/kb up to date, or with `--check` only say what is not; return the exit code."""
    parser = ArgumentParser(description="Make the binary documents of examples/kb from scripts/kb_sources.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a committed file is stale"
    )
    check = parser.parse_args().check
    stale = list(find_stale(RECIPES))
    for path, content in stale:
        if not check:
            path.write_bytes(content)
        print(f"{'stale' if check else 'written'}: {path.relative_to(SCRIPTS.parent).as_posix()}")
    return int(check and bool(stale))


def find_stale(recipes: Iterable[Recipe]) -> Iterable[tuple[Path, bytes]]:
    """Yield path and new bytes of each document that is missing or does not hold what its source says."""
    for recipe in recipes:
        content = recipe.render((SOURCES / recipe.source).read_text(encoding="utf-8"))
        path = KB / recipe.target
        if not path.exists() or members(path.read_bytes()) != members(content):
            yield path, content


def members(content: bytes) -> dict[str, bytes]:
    """Files inside a zip by name, or the content itself under an empty name.

    Documents are compared by members because another zlib may pack the same ones differently.
    """
    if not is_zipfile(BytesIO(content)):
        return {"": content}
    with ZipFile(BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def parse(source: str) -> list[Block]:
    """Read the small Markdown of the module docstring."""
    blocks: list[Block] = []
    lines = filter(None, source.splitlines())
    for is_table, group in groupby(lines, key=lambda line: line.startswith("|")):
        if is_table:
            blocks.append(parse_table(group))
        else:
            blocks.extend(map(parse_line, group))
    return blocks


def parse_line(line: str) -> Block:
    """Read one line outside a table."""
    mark, _, rest = line.partition(" ")
    match mark:
        case "#" | "##":
            return Heading(len(mark), rest)
        case "-":
            return Bullet(rest)
        case _:
            return Paragraph(line)


def parse_table(lines: Iterable[str]) -> Table:
    """Read the lines of a table; the line of dashes under the header is dropped."""
    rows = (tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines)
    return Table(tuple(row for row in rows if not all(set(cell) <= {"-"} for cell in row)))


def title_of(blocks: Iterable[Block]) -> str:
    """Text of the first heading."""
    return next(block.text for block in blocks if isinstance(block, Heading))


def render_pdf(source: str) -> bytes:
    """Set the source as an A4 PDF with page numbers; Latin text only, because no font is embedded."""
    blocks = parse(source)
    styles = getSampleStyleSheet()
    buffer = BytesIO()
    document = SimpleDocTemplate(
        buffer,
        pagesize=A4,
        leftMargin=2.4 * cm,
        rightMargin=2.4 * cm,
        title=title_of(blocks),
        author=AUTHOR,
        invariant=1,  # fixed date and document id
        pageCompression=0,  # the bytes do not depend on the zlib in use
    )
    story = [pdf_block(block, styles) for block in blocks]
    document.build(story, onFirstPage=number_page, onLaterPages=number_page)
    return buffer.getvalue()


def pdf_block(block: Block, styles: StyleSheet1) -> Flowable:
    """One block as a flowable of reportlab."""
    match block:
        case Heading(level=1, text=text):
            return PdfParagraph(escape(text), styles["Title"])
        case Heading(text=text):
            return PdfParagraph(escape(text), styles["Heading2"])
        case Paragraph(text=text):
            return PdfParagraph(escape(text), styles["BodyText"])
        case Bullet(text=text):
            return PdfParagraph(escape(text), styles["BodyText"], bulletText="\u2022")
        case Table(rows=rows):
            cells = [[PdfParagraph(escape(cell), styles["BodyText"]) for cell in row] for row in rows]
            return PdfTable(cells, style=GRID, repeatRows=1, spaceBefore=6, spaceAfter=6)
        case _:
            assert_never(block)


def number_page(canvas: Canvas, document: SimpleDocTemplate) -> None:
    """Draw the footer of one page."""
    canvas.setFont("Helvetica", 8)
    canvas.drawCentredString(A4[0] / 2, 1.2 * cm, f"{document.title} - page {document.page}")


def render_docx(source: str) -> bytes:
    """Set the source as a Word document with real headings, lists and tables."""
    blocks = parse(source)
    document = Document()
    fix_properties(document, title=title_of(blocks))
    for block in blocks:
        add_docx_block(document, block)
    buffer = BytesIO()
    document.save(buffer)
    return repack(buffer.getvalue())


def fix_properties(document: DocxDocument, *, title: str) -> None:
    """Write the core properties that would otherwise name the template or the day."""
    properties = document.core_properties
    properties.title = title
    properties.author = properties.last_modified_by = AUTHOR
    properties.created = properties.modified = ISSUED
    properties.comments = ""


def add_docx_block(document: DocxDocument, block: Block) -> None:
    """Append one block to the document."""
    match block:
        case Heading(level=level, text=text):
            document.add_heading(text, level - 1)  # level 0 is the title style
        case Paragraph(text=text):
            document.add_paragraph(text)
        case Bullet(text=text):
            document.add_paragraph(text, style="List Bullet")
        case Table(rows=rows):
            table = document.add_table(rows=0, cols=len(rows[0]), style="Table Grid")
            for row in rows:
                for cell, text in zip(table.add_row().cells, row, strict=True):
                    cell.text = text
        case _:
            assert_never(block)


def repack(content: bytes) -> bytes:
    """The same zip with fixed times and attributes."""
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        for name, member in members(content).items():
            info = ZipInfo(name, date_time=ISSUED.timetuple()[:6])
            info.create_system = 3  # else it names the system of this machine
            info.compress_type = ZIP_DEFLATED
            archive.writestr(info, member)
    return buffer.getvalue()


RECIPES = (
    Recipe("warranty-terms.md", "warranty-terms.pdf", render_pdf),
    Recipe("employee-onboarding.md", "employee-onboarding.docx", render_docx),
    Recipe("zh-employee-handbook.md", "zh-employee-handbook.docx", render_docx),
    Recipe("zh-delivery-notice.txt", "zh-delivery-notice.txt", partial(str.encode, encoding="gb18030")),
)


if __name__ == "__main__":
    raise SystemExit(main())
