"""What a docstring says about a tool and its parameters."""

import re
from collections.abc import Collection, Mapping
from inspect import cleandoc
from typing import NamedTuple

_SECTION = re.compile(r"(?:Args|Arguments|Parameters|参数)[:：]\s*")
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^()]*\))?[:：]\s*(.*)")


class Documentation(NamedTuple):
    """The words about a function, and those about each parameter."""

    description: str
    parameters: Mapping[str, str]


def read_docstring(text: str | None, names: Collection[str]) -> Documentation:
    """Return what `text` says. `names` are the parameters that may be described.

    Two forms are read: a Google section `Args:`, and `name: description` at the start of a line or after
    a sentence or two spaces, as in `Units on hand.  sku: article number`. Both may be written with the marks
    of Chinese, and a section may be called `参数`.
    """
    rest, listed = _take_section(cleandoc(text or "").splitlines(), names)
    description, inline = _take_inline("\n".join(rest), [name for name in names if name not in listed])
    return Documentation(re.sub(r"\n{3,}", "\n\n", description).strip(), inline | listed)


def _take_section(lines: list[str], names: Collection[str]) -> tuple[list[str], dict[str, str]]:
    """Return the lines outside of the section, and the descriptions within."""
    start = next((place for place, line in enumerate(lines) if _SECTION.fullmatch(line)), None)
    if start is None:
        return lines, {}
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or lines[end][0].isspace()):
        end += 1
    entries: dict[str, list[str]] = {}
    words: list[str] = []
    indent = min((_indent(line) for line in lines[start + 1 : end] if line.strip()), default=0)
    for line in lines[start + 1 : end]:
        entry = _ENTRY.fullmatch(line.strip()) if _indent(line) == indent else None
        if entry:
            words = entries.setdefault(entry[1], [])
        words += (entry[2] if entry else line).split()
    found = {name: " ".join(text) for name, text in entries.items() if name in names and text}
    return [*lines[:start], *lines[end:]], found


def _take_inline(text: str, names: Collection[str]) -> tuple[str, dict[str, str]]:
    """Return `text` without its `name: description` parts, and those."""
    if not names:
        return text, {}
    name = "|".join(map(re.escape, names))
    label = re.compile(
        rf"(?:(?:\A|\n)[ \t]*|[ \t]{{2,}}|(?<=[.;,])[ \t]+|(?<=[。；，]))({name})(?::[ \t]+|：[ \t]*)"
    )
    description, *parts = label.split(text)
    found: dict[str, str] = {}
    for key, words in zip(parts[::2], parts[1::2], strict=True):
        own, gap, rest = words.partition("\n\n")
        found.setdefault(key, " ".join(own.split()).rstrip(",;，；"))
        description += gap + rest
    return description, found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
