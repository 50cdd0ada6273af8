"""Rows of a table in plain text, and the names of its columns."""

import re
from collections.abc import Sequence
from itertools import pairwise

TABLE_RULE = re.compile(r"[\s|:+=-]+")
_TABS = re.compile(r"(?<=\S)\t+(?=\S)")
_FEWEST_NAMED = 3


def is_row(line: str) -> bool:
    """Whether a line holds cells, between bars or tabs."""
    return line.lstrip().startswith("|") or " | " in line or _TABS.search(line.strip()) is not None


def cells_of(line: str) -> tuple[str, ...]:
    """Return the cells of a row, in their order."""
    if "|" in line:
        return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))
    return tuple(cell.strip() for cell in _TABS.split(line.strip()))


def columns_of(lines: Sequence[str], *, is_first: bool) -> tuple[str, ...]:
    """Return the names of a table's columns, in their order; nothing when it is not sure of them.

    They stand above a rule. Without one they are the first row of a wide table that has no number in it; two
    columns may as well be names and values, and a passage that begins with a row may have lost the first.
    """
    for above, line in pairwise(lines):
        if "|" in above and TABLE_RULE.fullmatch(line):
            return cells_of(above)
    rows = [cells_of(line) for line in lines if is_row(line)]
    if len(rows) < 2 or (is_first and is_row(lines[0])):
        return ()
    names = rows[0]
    is_named = len(names) >= _FEWEST_NAMED and all(names) and not any(map(_has_digit, names))
    return names if is_named and all(len(row) == len(names) for row in rows) else ()


def _has_digit(cell: str) -> bool:
    return any(char.isdigit() for char in cell)
