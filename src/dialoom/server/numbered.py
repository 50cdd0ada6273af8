"""How answers number the passages of their question: in the order in which people read of them.

A log keeps the numbers that the model was given. What is shown of it counts the passages anew, along all
answers to one question: the first that is cited is 1. Those that nobody cites follow in their old order.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import msgspec

from dialoom.conversation.entries import Entry, TextEntry
from dialoom.conversation.grounds import KEY
from dialoom.rag.renumber import CitationNumbers


class Numbering(NamedTuple):
    """The passages of a question, and the numbers its answers cited so far, in the order of people."""

    passages: list[object]
    cited: tuple[int, ...] = ()

    def begin(self) -> CitationNumbers | None:
        """Return what numbers a further answer as it comes; None where there is nothing to number."""
        if not self.passages or not self._is_counted:
            return None
        numbers = CitationNumbers(len(self.passages))
        numbers.feed("".join(f"[{number}]\n" for number in self.cited))  # what was cited keeps its number
        return numbers

    def answered(self, content: str) -> tuple[str, "Numbering"]:
        """Return an answer as people read it, and the numbering after it."""
        numbers = self.begin()
        if numbers is None:
            return content, self
        shown = numbers.feed(content) + numbers.close()
        return shown, self._replace(cited=tuple(numbers.order))

    def cites(self, order: Sequence[int]) -> list[object]:
        """Return the passages of which an answer cites these so far, under the numbers that people see."""
        return self._replace(cited=tuple(order)).listed()[: len(order)]

    def listed(self) -> list[object]:
        """Return the passages under the numbers that people see, in their order."""
        if not self._is_counted:
            return self.passages
        rest = (number for number in range(1, len(self.passages) + 1) if number not in self.cited)
        return [
            {**cast("Mapping[str, object]", self.passages[number - 1]), "index": place}
            for place, number in enumerate([*self.cited, *rest], 1)
        ]

    @property
    def _is_counted(self) -> bool:
        """Whether the passages bear the numbers from 1 on, as this server gives them."""
        found = (each.get("index") for each in self.passages if isinstance(each, Mapping))  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - as stored
        return list(found) == list(range(1, len(self.passages) + 1))  # pyright: ignore[reportUnknownArgumentType] - compared only


def passages_of(entry: Entry) -> list[object]:
    """Return the passages that are kept with a question, as they are stored."""
    kept = entry.meta.get(KEY) if isinstance(entry, TextEntry) else None
    return list(cast("list[object] | tuple[object, ...]", kept)) if isinstance(kept, list | tuple) else []


def numbering_of(newest_first: Iterable[Entry]) -> Numbering:
    """Return how the next answer counts: behind what the answers before it, to the same question, cited."""
    answers: list[str] = []
    numbering = Numbering([])
    for entry in newest_first:
        if isinstance(entry, TextEntry) and entry.role == "user":
            numbering = Numbering(passages_of(entry))
            break
        if isinstance(entry, TextEntry) and entry.role == "assistant":
            answers.append(entry.content)
    for content in reversed(answers):
        numbering = numbering.answered(content)[1]
    return numbering


def as_read(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield a log with the citations of its answers as people see them."""
    numbering = Numbering([])
    for entry in entries:
        if isinstance(entry, TextEntry) and entry.role == "user":
            numbering = Numbering(passages_of(entry))
        if isinstance(entry, TextEntry) and entry.role == "assistant" and numbering.passages:
            content, numbering = numbering.answered(entry.content)
            yield msgspec.structs.replace(entry, content=content)
        else:
            yield entry
