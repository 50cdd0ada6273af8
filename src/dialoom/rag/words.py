"""What a text is found by: words without their endings, and pairs of characters in scripts without blanks."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

import regex

from dialoom.llm.offline.words import without_ending

TOKENIZER = "words-v3"
"""Names how `tokens` cuts; an index keeps it, for the same words must come out when a chunk is deleted."""
MOST_ASKED = 64
_LONGEST = 64
_ASCII_WORD = re.compile("[a-z0-9]+")
_UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u30fc\uff70"
)
_RUN = regex.compile(
    rf"([{_UNSPACED}]+)|((?![{_UNSPACED}])[\p{{L}}\p{{N}}](?:(?![{_UNSPACED}])[\p{{L}}\p{{M}}\p{{N}}])*)"
)
# Latin, Greek and Cyrillic letters, punctuation and signs: nothing unseen, no marks, no runs without blanks.
_EASY = re.compile(
    "[\0-\xac\xae-\u02af\u0370-\u0482\u048a-\u052f\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2100-\u2bff]*"
)
_EASY_WORD = re.compile(r"[^\W_]+")
_UNSEEN = regex.compile(r"\p{Default_Ignorable_Code_Point}+")
"""What is in a text and not seen: soft hyphens, zero-width spaces, marks of direction, halves of emoji."""
_ACCENTS = re.compile("[\u0300-\u036f]")
_FUNCTION_WORDS = frozenset(
    _ASCII_WORD.findall(
        """a about after all also am an and any are as at be because been before being but by can could did
        do does doing for from get give had has have he her here him his how i if in into is it its just
        like long many may me might more most much must my no not of often on one or other our out please
        shall she should so some such tell than that the their them then there these they this those to too
        something anything someone somebody anyone anybody thing things
        up us use very want was we were what when where which who whom whose why will with would you your"""
    )
)
_QUESTION_WORDS = re.compile("什么|多长时间|多少|多久|哪些|哪个|哪一|如何|怎么|怎样|为什么|是否|请问")
_FUNCTION_CHARS = frozenset(
    "的了吗呢吧啊呀嘛是在有和与及或也都就还要会能可以我你您他她它们这那个些不没被把给对从到为上下去来后前时候"
    "什么怎样多少几哪谁何如请问想知道告诉关于得着过让跟最很太才再又应该"
)


def tokens(text: str) -> list[str]:
    """The tokens of a text in order, repeats kept: lower case, without accents and English endings.

    A run of a script without blanks gives each of its characters and each pair of neighbours.
    """
    if text.isascii():
        return [_word(word) for word in _ASCII_WORD.findall(text.lower())]
    text = unicodedata.normalize("NFKC", text)
    folded = text.casefold()
    if _EASY.fullmatch(folded):  # English with its quotation marks: a third of the time
        return [_word(word) for word in _EASY_WORD.findall(folded)]
    found: list[str] = []
    for unspaced, word in _runs(text):
        if word:
            found.append(_word(word))
        else:
            found += unspaced
            found += map("".join, pairwise(unspaced))
    return found


def question_tokens(question: str) -> list[str]:
    """The distinct tokens worth looking for, at most `MOST_ASKED`, without function and question words.

    All of them when nothing else is left; none for a text without a letter or digit.
    """
    told = [*dict.fromkeys(_asked(_QUESTION_WORDS.sub(" ", question)))]
    left = [token for token in told if not _is_function(token)]
    return (left or told or [*dict.fromkeys(_asked(question))])[:MOST_ASKED]


def _runs(text: str) -> list[tuple[str, str]]:
    """Runs of characters without blanks between words, and words; one of each pair is empty."""
    seen = _UNSEEN.sub("", unicodedata.normalize("NFKC", text))
    found: list[tuple[str, str]] = _RUN.findall(seen.casefold())
    return found


def _asked(question: str) -> Iterator[str]:
    """Pairs only where there are any: single characters are everywhere and cost ten times the work."""
    for unspaced, word in _runs(question):
        if word:
            yield word if word in _FUNCTION_WORDS else _word(word)
        elif len(unspaced) == 1:
            yield unspaced
        else:
            yield from map("".join, pairwise(unspaced))


def _is_function(token: str) -> bool:
    return token in _FUNCTION_WORDS or _FUNCTION_CHARS.issuperset(token)


@lru_cache(maxsize=65_536)
def _word(word: str) -> str:
    if word.isascii():
        return without_ending(word[:_LONGEST])
    folded = _ACCENTS.sub("", unicodedata.normalize("NFD", word))
    return without_ending(unicodedata.normalize("NFC", folded)[:_LONGEST])
