"""What passages can be asked about: the questions and titles that stand in them."""

from collections.abc import Sequence

from dialoom.llm.messages import SourcePart
from dialoom.llm.offline.units import cut, is_stamped, tidy
from dialoom.llm.offline.words import is_chinese


def topics(sources: Sequence[SourcePart], *, chinese: bool) -> dict[str, int]:
    """Return what some sources open with, each with its number; empty when no source holds a text.

    What is in the language asked for comes alone; else what there is; else the sources' own names.
    """
    named: dict[str, int] = {}
    found: dict[str, int] = {}
    for source in sources:
        if source.text.strip():
            named.setdefault(tidy(source.title or source.id), source.index)
        if opening := _opening(source.text):
            found.setdefault(opening, source.index)
    spoken = {text: index for text, index in found.items() if is_chinese(text) == chinese}
    return spoken or found or named


def _opening(text: str) -> str:
    """Return the first title or question of a passage, "" when there is none; a log has none."""
    units = cut(text)
    if any(is_stamped(unit.text) for unit in units):
        return ""
    return next((unit.text for unit in units if unit.asks or unit.kind == "heading"), "")
