"""Draw the terminal picture of the README from a real run: what it shows is what the commands print."""

import io
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "images" / "ask.svg"
WIDTH = 104
COMMANDS = (
    (
        "ask",
        "My hitch arm has cracked. For how many years is it covered?",
        "--docs",
        "examples/kb",
        "--offline",
    ),
    ("ask", "退货验货没问题之后，退款几天能到账？", "--offline"),
)
# rich's own frame, without the web font it would fetch
FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "Noto Sans Mono CJK SC", monospace;
font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def run(arguments: tuple[str, ...], desk: Path) -> str:
    """Return what `dialoom` prints in the folder `desk`, both streams as a terminal shows them."""
    command = [str(Path(sys.executable).parent / "dialoom"), *arguments]
    done = subprocess.run(
        command, cwd=desk, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.stdout.strip("\n")


def typed(arguments: tuple[str, ...]) -> Text:
    """Return the command as a person types it."""
    words = [f'"{word}"' if " " in word or "，" in word else word for word in arguments]
    return Text.assemble(("$ ", "bold green"), ("dialoom " + " ".join(words), "bold"))


def main() -> None:
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    with tempfile.TemporaryDirectory() as folder:
        desk = Path(folder)
        (desk / "examples").symlink_to(ROOT / "examples")
        for arguments in COMMANDS:
            console.print(typed(arguments))
            console.print(Text(run(arguments, desk)))
            console.print()
    TARGET.write_text(
        console.export_svg(title="dialoom", code_format=FRAME, unique_id="ask"), encoding="utf-8"
    )
    print(TARGET.relative_to(ROOT))


if __name__ == "__main__":
    main()
