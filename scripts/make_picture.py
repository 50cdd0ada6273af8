"""Draw the terminal picture of the README from a real run: what it shows is what the commands print."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from rich.cells import cell_len, chop_cells

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "images" / "ask.svg"
COLUMNS = 97
COMMANDS = (
    ("ask", "My hitch arm has cracked. How long is it covered?", "--docs", "examples/kb", "--offline"),
    ("ask", "退货验货没问题之后，退款几天能到账？", "--offline"),
)
CELL, LINE, MARGIN = 9.7, 22, 20
PICTURE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}">
<style>text {{ font: 16px ui-monospace, Menlo, "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace;
fill: #d5d8d6; white-space: pre }} .typed {{ fill: #fff; font-weight: bold }} .prompt {{ fill: #8fbf5f }}
.note {{ fill: #8c9291 }}</style>
<rect width="100%" height="100%" rx="10" fill="#22272a"/>
<circle cx="24" cy="22" r="6" fill="#ff5f57"/><circle cx="44" cy="22" r="6" fill="#febc2e"/>
<circle cx="64" cy="22" r="6" fill="#28c840"/>
{lines}
</svg>
"""


def run(arguments: tuple[str, ...], desk: Path) -> tuple[list[str], list[str]]:
    """Return the lines that `dialoom` prints in the folder `desk`: notes on stderr, the answer on stdout."""
    command = [str(Path(sys.executable).parent / "dialoom"), *arguments]
    done = subprocess.run(command, cwd=desk, check=True, capture_output=True, text=True)
    return done.stderr.splitlines(), done.stdout.splitlines()


def wrapped(line: str) -> list[str]:
    """Return `line` in pieces a terminal has room for, broken between words where it can be."""
    pieces: list[str] = [""]
    for word in line.split(" "):
        joined = f"{pieces[-1]} {word}" if pieces[-1] else word
        if cell_len(joined) <= COLUMNS:
            pieces[-1] = joined
        else:
            pieces.extend(chop_cells(word, COLUMNS))
    return pieces


def screen(desk: Path) -> Iterator[tuple[str, str]]:
    """Yield each line of the picture with its class."""
    for arguments in COMMANDS:
        words = [word if word.isascii() and " " not in word else f'"{word}"' for word in arguments]
        yield "typed", "$ dialoom " + " ".join(words)
        notes, answer = run(arguments, desk)
        yield from (("note", piece) for line in notes for piece in wrapped(line))
        yield from (("", piece) for line in answer for piece in wrapped(line))
        yield "", ""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        lines = list(screen(Path(folder)))
    width, height = COLUMNS * CELL + 2 * MARGIN, (len(lines) + 1) * LINE + 2 * MARGIN
    texts = [
        f'<text x="{MARGIN}" y="{(at + 2) * LINE + MARGIN}" class="{kind}">{escape(line)}</text>'
        for at, (kind, line) in enumerate(lines)
        if line
    ]
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(PICTURE.format(width=width, height=height, lines="\n".join(texts)), encoding="utf-8")
    print(TARGET.relative_to(ROOT))


if __name__ == "__main__":
    main()
