"""Guards that come with us: a longest length, patterns to refuse or to blot out, a list of tools.

Exports for `dialoom.agent`: `AllowTools`, `Forbid`, `MaxLength`, `Redact`.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from dialoom.agent.guards import Allow, Block, Replace
from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.llm.json_schema import JsonSchema
from dialoom.llm.messages import ToolCall

MAX_SEARCHED: Final = 1_000_000
"""Longer texts are blocked rather than searched."""
MAX_BLOTTED: Final = 5_000
"""A text with more matches than this is blocked as a whole."""
_REACH: Final = 8
_SINGLE: Final = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
"""Characters that are words, or their punctuation, of languages that set none apart."""
_LETTER: Final = rf"[^\s{_SINGLE}]"
_WORD: Final = re.compile(rf"[{_SINGLE}]|{_LETTER}+")
_TOO_LONG: Final = Block(f"the text has more than {MAX_SEARCHED} characters, so it cannot be searched")
_TOO_MANY: Final = Block(f"the text holds more than {MAX_BLOTTED} things to blot out")


class MaxLength:
    """Blocks texts of more than `most` characters. For `input`, `output` and `after_tool`."""

    def __init__(self, most: int) -> None:
        if most < 1:
            raise UsageError(f"the most characters are {most}; give 1 or more")
        self._most = most

    def __call__(self, text: str, _call: ToolCall | None = None, /) -> Allow | Block:
        if len(text) <= self._most:
            return Allow()
        return Block(f"the text has {len(text)} characters; at most {self._most} are let through")


class Forbid:
    """Blocks texts in which a pattern is found; `reason` says why. For `input`, `output` and `after_tool`.

    Patterns are matched in linear time, so lookaround and back references are refused with `UsageError`.
    """

    def __init__(self, *patterns: str, reason: str = "the text holds what is not allowed here") -> None:
        if not patterns:
            raise UsageError("nothing is forbidden; give one pattern or more")
        self._patterns = [_Pattern(pattern) for pattern in patterns]
        self._reason = reason

    def __call__(self, text: str, _call: ToolCall | None = None, /) -> Allow | Block:
        if len(text) > MAX_SEARCHED:
            return _TOO_LONG
        return Block(self._reason) if any(each.found_in(text) for each in self._patterns) else Allow()


class Redact:
    """Blots out the words in which a pattern is found. For `input`, `output` and `after_tool`.

    Whole words go, without the punctuation around them when the pattern is found within; a match may span
    up to nine words. Where words are not set apart, as in Chinese, each character is one. Pieces of the text
    are searched, so leave `^` and `$` out. Patterns are those of `Forbid`.
    """

    def __init__(self, pattern: str, *, replacement: str = "[redacted]") -> None:
        self._pattern = _Pattern(pattern)
        self._whole = _Pattern(rf"^{_LETTER}*?(?:{pattern}){_LETTER}*$")
        self._replacement = replacement

    def __call__(self, text: str, _call: ToolCall | None = None, /) -> Allow | Replace[str] | Block:
        if len(text) > MAX_SEARCHED:
            return _TOO_LONG
        if not self._pattern.found_in(text):
            return Allow()
        blotted = self._blotted(text)
        return _TOO_MANY if blotted is None else Replace(blotted)

    def _blotted(self, text: str) -> str | None:
        words = [match.span() for match in _WORD.finditer(text)]
        pieces: list[str] = []
        done, first = 0, 0
        while (found := self._next(text, words, first)) is not None:
            begin, end = self._core(text, words[found[0]][0], words[found[1]][1])
            pieces += (text[done:begin], self._replacement)
            done, first = end, found[1] + 1
            if len(pieces) > 2 * MAX_BLOTTED:
                return None
        return "".join((*pieces, text[done:]))

    def _next(self, text: str, words: list[tuple[int, int]], first: int) -> tuple[int, int] | None:
        """Return the first and last of the next words that hold a match.

        Only growing stretches are looked at, so all of a text costs little more than one look at it.
        """

        def found(begin: int, last: int) -> bool:
            return self._pattern.found_in(text[words[begin][0] : words[last][1]])

        reach = 1
        while first < len(words) and not found(first, min(first + reach, len(words)) - 1):
            first_unread = first + reach
            if first_unread >= len(words):
                return None
            reach *= 2
        if first >= len(words):
            return None
        ends = range(first + reach // 2, min(first + reach, len(words)))
        last = ends[bisect_left(ends, 1, key=lambda end: int(found(first, end)))]
        begins = range(first, last + 1)
        begin = begins[bisect_left(begins, 1, key=lambda place: int(not found(place, last))) - 1]
        return begin, self._longest(text, words, begin, last)

    def _longest(self, text: str, words: list[tuple[int, int]], begin: int, last: int) -> int:
        """Return the last word of a longer match that begins in the same one."""
        further = range(min(last + _REACH, len(words) - 1), last, -1)
        spans = (text[words[begin][0] : words[end][1]] for end in further)
        return next(
            (end for end, span in zip(further, spans, strict=True) if self._whole.found_in(span)), last
        )

    def _core(self, text: str, begin: int, end: int) -> tuple[int, int]:
        """Return where the words begin and end without punctuation, when the match is within."""
        span = text[begin:end]
        inner = re.sub(r"^\W+|\W+$", "", span)
        if not inner or not self._pattern.found_in(inner):
            return begin, end
        begin += span.index(inner)
        return begin, begin + len(inner)


class AllowTools:
    """Blocks calls of all other tools. For `before_tool`."""

    def __init__(self, names: Iterable[str]) -> None:
        if isinstance(names, str):
            raise UsageError(f"tools are allowed by a list of names; write AllowTools([{names!r}])")
        self._names = frozenset(names)

    def __call__(self, call: ToolCall, /) -> Allow | Block:
        if call.name in self._names:
            return Allow()
        allowed = ", ".join(sorted(self._names)) or "none"
        return Block(
            f"the tool {one_line(call.name, 80)!r} is not allowed here; those allowed are: {allowed}"
        )


class _Pattern:
    """A regular expression that is searched for in linear time. Raises `UsageError` when it cannot be."""

    def __init__(self, pattern: str) -> None:
        try:
            self._absent = JsonSchema(
                {"not": {"pattern": pattern}}
            )  # so what cannot be checked counts as found
        except UsageError as error:
            raise UsageError(
                f"the pattern {one_line(pattern, 80)!r} cannot be used; write it without lookaround and back "
                "references, for it is matched in linear time"
            ) from error
        if self.found_in(""):
            raise UsageError(
                f"the pattern {one_line(pattern, 80)!r} is found in an empty text; let it need a letter"
            )

    def found_in(self, text: str) -> bool:
        return not self._absent.accepts(text)
