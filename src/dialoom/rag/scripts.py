"""Which scripts a text is written in, and which ones a language needs."""

from collections.abc import Iterable

import regex

_LEAST_SHARE = 0.02
_SCRIPTS = {
    "Latin": r"\p{Latin}",
    "Chinese": r"\p{Han}",
    "Japanese": r"[\p{Hiragana}\p{Katakana}]",
    "Korean": r"\p{Hangul}",
    "Cyrillic": r"\p{Cyrillic}",
    "Greek": r"\p{Greek}",
    "Arabic": r"\p{Arabic}",
    "Hebrew": r"\p{Hebrew}",
    "Devanagari": r"\p{Devanagari}",
    "Thai": r"\p{Thai}",
}
_MARKS = {name: regex.compile(pattern) for name, pattern in _SCRIPTS.items()}
_OF_LANGUAGE = {
    "zh": ("Chinese",),
    "ja": ("Japanese", "Chinese"),
    "ko": ("Korean",),
    "el": ("Greek",),
    "he": ("Hebrew",),
    "hi": ("Devanagari",),
    "mr": ("Devanagari",),
    "ne": ("Devanagari",),
    "th": ("Thai",),
    **dict.fromkeys(("ar", "fa", "ur"), ("Arabic",)),
    **dict.fromkeys(("ru", "uk", "bg", "be", "mk", "sr", "kk", "mn"), ("Cyrillic",)),
}


def scripts_of(text: str) -> frozenset[str]:
    """The scripts that at least one in fifty letters of a text is of."""
    counts = {name: len(marks.findall(text)) for name, marks in _MARKS.items()}
    least = max(sum(counts.values()) * _LEAST_SHARE, 1)
    return frozenset(name for name, count in counts.items() if count >= least)


def scripts_of_languages(languages: Iterable[str]) -> frozenset[str]:
    """The scripts of languages by their codes; one not known here is taken to be written in Latin letters.

    Latin letters belong to every model: names and numbers of units stand in texts of all languages.
    """
    named = (code.lower().split("-")[0] for code in languages)
    return frozenset(script for code in named for script in _OF_LANGUAGE.get(code, ())) | {"Latin"}


def name_scripts(scripts: Iterable[str]) -> str:
    """The scripts as a person lists them."""
    return ", ".join(sorted(scripts))
