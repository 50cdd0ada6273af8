"""Looking for words: how texts and queries are cut, so that every store finds the same."""

import re
import unicodedata

import msgspec

from dialoom.base.errors import UsageError

MAX_QUERY = 1000
MAX_TERMS = 32
MAX_WORD = 64
# scripts that put no spaces between words: Chinese, Japanese, Korean, Thai, Lao, Burmese, Khmer
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u312f"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(rf"[{_SPACELESS}]+|[^\W{_SPACELESS}]+")
_IS_SPACELESS = re.compile(f"[{_SPACELESS}]")


class SearchQuery(msgspec.Struct, frozen=True):
    """What is looked for: each term is words in a row, of which the last may go on in the text."""

    terms: tuple[tuple[str, ...], ...]

    def matches(self, text: str) -> bool:
        """Tell whether `text` has every term; a query without terms matches nothing."""
        found = words(text)
        return bool(self.terms) and all(_stands_in(term, found) for term in self.terms)


def words(text: str) -> list[str]:
    """Return the words of `text` in their order, folded: case, width and accents' spelling are one.

    A run of a script without spaces gives each pair of neighbours and its last character, so that any part
    of it is found; a word is cut after 64 characters.
    """
    found: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _IS_SPACELESS.match(run):
            found += (run[at : at + 2] for at in range(len(run)))
        else:
            found.append(run[:MAX_WORD])
    return found


def parse_query(query: str) -> SearchQuery | None:
    """Read what a person typed: None when it is blank, which asks for everything. Raises `UsageError`."""
    if len(query) > MAX_QUERY:
        raise UsageError(f"a search of {len(query)} characters is too long; use at most {MAX_QUERY}")
    if not query.strip():
        return None
    runs: list[str] = _RUN.findall(unicodedata.normalize("NFKC", query).casefold())
    if len(runs) > MAX_TERMS:
        raise UsageError(f"a search for {len(runs)} words is too long; use at most {MAX_TERMS}")
    return SearchQuery(tuple(_term(run) for run in runs))


def _term(run: str) -> tuple[str, ...]:
    # without the last character alone, which stands only at a run's end
    return (run[:MAX_WORD],) if not _IS_SPACELESS.match(run) else tuple(words(run)[: max(1, len(run) - 1)])


def _stands_in(term: tuple[str, ...], found: list[str]) -> bool:
    *whole, beginning = term
    return any(
        found[at].startswith(beginning) and found[at - len(whole) : at] == whole
        for at in range(len(whole), len(found))
    )
