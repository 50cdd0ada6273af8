"""A knowledge base: what it is made of, and how far it is read."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from dialoom.conversation.cards.actions import CardInput
from dialoom.conversation.cards.card import Card, CardPart, Language

MAX_SOURCES = 200


class KnowledgeSource(CardPart):
    """One file, page or folder, and how far it is."""

    id: str
    kind: Literal["file", "url", "dir"] = "file"
    label: str = ""
    status: Literal["queued", "loading", "chunking", "embedding", "done", "failed", "skipped"] = "queued"
    chunks: int = 0
    bytes: int = 0
    error: str | None = None
    error_code: str | None = None
    """What went wrong as a word for programs, such as `corrupt`; `error` says it to people in English."""


class KnowledgeTotals(CardPart):
    """What the base holds."""

    docs: int = 0
    chunks: int = 0


class KnowledgeManifest(CardPart):
    """What the index was built with; another one cannot be read with it."""

    embedder: str = ""
    model: str = ""
    dim: int | None = None
    chunker: str = ""
    hash: str = ""


class KnowledgeProgress(CardPart):
    """How far reading is: `done` of `total` in this phase."""

    phase: str = ""
    done: int = 0
    total: int = 0


class KnowledgeAttach(CardPart):
    """How a conversation asks this base."""

    top_k: int | None = Field(default=None, ge=1)
    mmr_lambda: float | None = Field(default=None, ge=0, le=1)
    filter: str | None = None


class KnowledgeBase(Card):
    """A knowledge base; at most 200 sources are listed, `totals` count all."""

    type: ClassVar[str] = "KnowledgeBase"
    names: ClassVar[Mapping[Language, str]] = {"en": "knowledge base", "zh": "知识库"}

    kb_id: str | None = None
    name: str = ""
    sources: tuple[KnowledgeSource, ...] = Field(default=(), max_length=MAX_SOURCES)
    totals: KnowledgeTotals | None = None
    manifest: KnowledgeManifest | None = None
    progress: KnowledgeProgress | None = None
    read_only: bool = False
    attach: KnowledgeAttach | None = None

    def details(self) -> str:
        totals = f"docs={self.totals.docs}, chunks={self.totals.chunks}" if self.totals else ""
        return ", ".join(part for part in (self.name, totals) if part)


class AddSource(CardInput):
    """Read another document: the id of an upload, or an address."""

    name = "add_source"
    needs_work = True

    file_id: str | None = None
    url: str | None = None


class RetrySource(CardInput):
    """Read a source again."""

    name = "retry_source"
    needs_work = True

    source_id: str


class RemoveSource(CardInput):
    """Take a source out of the base."""

    name = "remove_source"
    needs_work = True

    source_id: str


class AskBase(CardInput):
    """Ask the base, to see what it finds."""

    name = "query"
    needs_work = True

    text: str = Field(min_length=1, max_length=4000)
    top_k: int = Field(default=5, ge=1, le=50)


class AttachBase(CardInput):
    """Answer this conversation from the base."""

    name = "attach"
    needs_work = True

    top_k: int | None = Field(default=None, ge=1, le=50)
    mmr_lambda: float | None = Field(default=None, ge=0, le=1)
    filter: str | None = None

    def apply(self, card: Card) -> Card:
        return card.changed(attach=self.model_dump(by_alias=True, exclude_unset=True))


class DetachBase(CardInput):
    """Answer this conversation without the base again."""

    name = "detach"

    def apply(self, card: Card) -> Card:
        return card.changed(attach=None)
