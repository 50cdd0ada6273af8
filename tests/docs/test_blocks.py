"""What stands in a block of the documentation is run, or is of a kind that nobody takes for code to copy."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN = frozenset({"python", "sh", "toml"})
"""`conftest.py` runs these, block by block."""
SHOWN = frozenset({"text", "nginx", "mermaid"})
"""Drawings, what programs print, what works only on a machine of one's own, settings of other programs."""
_FENCE = re.compile(r"^( *)(```+|~~~+)(.*)$")


def blocks() -> list[tuple[str, str, str]]:
    """Return each block of README.md and docs/ as page and line, language, and text."""
    found: list[tuple[str, str, str]] = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        opened, language, lines = "", "", list[str]()
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
            fence = _FENCE.match(line)
            if fence is None:
                lines.append(line)
            elif not opened:
                opened, language, lines = f"{page.relative_to(ROOT)}:{number}", fence[3].strip(), []
            else:
                found.append((opened, language, "\n".join(lines)))
                opened = ""
        assert not opened, f"{opened} does not end"
    return found


def test_every_block_is_run_or_says_that_it_is_but_shown() -> None:
    unrun = [place for place, language, _ in blocks() if language not in RUN | SHOWN | {"json"}]
    assert unrun == []


def test_every_json_block_is_json() -> None:
    for place, language, text in blocks():
        if language == "json":
            assert [json.loads(line) for line in _documents(text)], place


def _documents(text: str) -> list[str]:
    """Return a block as one document, or as one a line."""
    try:
        json.loads(text)
    except ValueError:
        return text.splitlines()
    return [text]
