"""Where an answer comes from: the passages it was given, and which of them it cites."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from dialoom.conversation.cards.card import Card, CardPart, Language, listed


class CitedSource(CardPart):
    """One numbered passage. `start` and `end` are characters of its document."""

    index: int = Field(ge=1)
    id: str = ""
    title: str = ""
    text: str = ""
    url: str | None = None
    page: int | None = None
    start: int | None = None
    end: int | None = None
    score: float | None = None


class Sources(Card):
    """The passages behind an answer; `cited` lists the numbers the answer names."""

    type: ClassVar[str] = "Sources"
    names: ClassVar[Mapping[Language, str]] = {"en": "sources", "zh": "来源"}

    query: str = ""
    sources: tuple[CitedSource, ...] = ()
    cited: tuple[int, ...] = ()

    def details(self) -> str:
        return listed(f"[{each.index}] {each.title or each.id}" for each in self.sources)
