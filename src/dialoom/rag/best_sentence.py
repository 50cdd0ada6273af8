"""Points at the sentence of each source that says most about the question, for a reader to look at first."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from dialoom.rag.boundaries import find_boundaries
from dialoom.rag.context import ContextSource, Span
from dialoom.rag.words import question_tokens, tokens

_USUAL_TOKENS = 24


def mark_best_sentences(question: str, sources: Sequence[ContextSource]) -> list[ContextSource]:
    """The sources, each with the span of its best sentence; without one when none shares a word.

    A word of the question counts more the fewer of all the sentences hold it, and less in a long sentence.
    """
    asked = frozenset(question_tokens(question))
    spans = [_sentences(source.text) for source in sources]
    words = [
        [tokens(source.text[span.start : span.end]) for span in found]
        for source, found in zip(sources, spans, strict=True)
    ]
    held = [asked.intersection(told) for each in words for told in each]
    seen = Counter(token for shared in held for token in shared)
    worth = {token: math.log(1 + len(held) / count) for token, count in seen.items()}
    return [
        msgspec.structs.replace(source, best=_best(found, told, worth))
        for source, found, told in zip(sources, spans, words, strict=True)
    ]


def _sentences(text: str) -> list[Span]:
    """The sentences and lines of a text, without the blanks around them."""
    boundaries = find_boundaries(text, (), start=0, stop=len(text))
    places = sorted({0, *boundaries.paragraphs, *boundaries.sentences, len(text)})
    spans: list[Span] = []
    for start, end in pairwise(places):
        told = text[start:end]
        left = start + len(told) - len(told.lstrip())
        right = start + len(told.rstrip())
        if left < right:
            spans.append(Span(left, right))
    return spans


def _best(spans: Sequence[Span], words: Sequence[list[str]], worth: dict[str, float]) -> Span | None:
    scores = [_score(told, worth) for told in words]
    best = max(scores, default=0.0)
    return spans[scores.index(best)] if best > 0 else None


def _score(told: Sequence[str], worth: dict[str, float]) -> float:
    shared = sum(worth.get(token, 0.0) for token in set(told))
    return shared / (0.75 + 0.25 * max(len(told) / _USUAL_TOKENS, 0.5))
