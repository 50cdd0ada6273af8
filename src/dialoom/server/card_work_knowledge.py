"""What people do with a knowledge base's card: take documents in and out, try a question, answer from it."""

import asyncio
from collections.abc import Callable
from typing import Final, cast

import msgspec

from dialoom.base.errors import DialoomError, UsageError
from dialoom.base.ids import new_id
from dialoom.base.text import one_line
from dialoom.conversation.cards.card import Card
from dialoom.conversation.cards.knowledge_base import (
    MAX_SOURCES,
    AddSource,
    AskBase,
    AttachBase,
    KnowledgeBase,
    KnowledgeProgress,
    KnowledgeSource,
    KnowledgeTotals,
    RemoveSource,
    RetrySource,
)
from dialoom.conversation.cards.sources import CitedSource, Sources
from dialoom.dialog import Skill
from dialoom.rag import RagConfig
from dialoom.rag.service.requests import Delete, Ingest, Stats
from dialoom.server.card_work import CardHandlers, CardWork, Desk
from dialoom.server.knowledge import KnowledgeBases, OpenBase
from dialoom.server.problems import ProblemError, not_found
from dialoom.server.talks import Ground

GROUNDED: Final = Skill(
    name="answers-from-sources",
    description="Answers from the numbered sources that come with a question, and cites them.",
    instructions=RagConfig().instructions,
    mode="always",
)
"""What a model has to follow to answer from the passages that come with a question."""


class _Counts(msgspec.Struct, frozen=True):
    documents: int = 0
    chunks: int = 0


class _Failed(msgspec.Struct, frozen=True):
    code: str
    message: str


class _Report(msgspec.Struct, frozen=True):
    chunks: int = 0
    failures: list[_Failed] = []


class KnowledgeWork:
    """Does the actions of `KnowledgeBase` cards over the knowledge bases of a server."""

    def __init__(self, bases: KnowledgeBases) -> None:
        self._bases = bases

    def handlers(self) -> CardHandlers:
        return {
            ("KnowledgeBase", "add_source"): self.add,
            ("KnowledgeBase", "retry_source"): self.retry,
            ("KnowledgeBase", "remove_source"): self.remove,
            ("KnowledgeBase", "query"): self.query,
            ("KnowledgeBase", "attach"): self.attach,
            ("KnowledgeBase", "detach"): self.detach,
        }

    async def add(self, work: CardWork) -> Card:
        """Take an upload or a web page in; how far it is comes as further states of the card."""
        card, given = _card(work), cast("AddSource", work.given)
        base = await self._writable(card)
        if (given.file_id is None) == (given.url is None):
            raise UsageError("give the id of an uploaded file, or an address, one of the two")
        if given.file_id is not None:
            info = await asyncio.to_thread(work.desk.keep.files.find, given.file_id)
            name = await self._bases.add_file(base.id, info, work.desk.keep.files.path(info.id))
            source = KnowledgeSource(id=name, label=info.name, bytes=info.size, status="loading", kind="file")
        else:
            url = given.url or ""
            if not url.startswith(("http://", "https://")) or len(url) > 4096:
                raise UsageError("an address begins with http:// or https://; give the whole of it")
            source = KnowledgeSource(id=url, label=one_line(url, 200), status="loading", kind="url")
        return self._begin(work, base, source)

    async def retry(self, work: CardWork) -> Card:
        card = _card(work)
        base = await self._writable(card)
        source = _source(card, cast("RetrySource", work.given).source_id)
        return self._begin(work, base, source.changed(status="loading", error=None, error_code=None))

    async def remove(self, work: CardWork) -> Card:
        """Take a source out of the base, and off the card."""
        card = _card(work)
        base = await self._writable(card)
        source = _source(card, cast("RemoveSource", work.given).source_id)
        await base.ask(Delete(documents=[self._bases.document(base.id, source.id)]))
        rest = [each for each in card.sources if each.id != source.id]
        return card.changed(sources=[each.stored() for each in rest], totals=await _totals(base))

    async def query(self, work: CardWork) -> Card:
        """Show what the base finds, as a card of its own."""
        card, given = _card(work), cast("AskBase", work.given)
        base = await self._open(card)
        passages = await self._bases.passages(base.id, given.text, k=given.top_k)
        found = Sources(
            id=new_id(),
            title=one_line(given.text, 80),
            query=given.text,
            sources=tuple(CitedSource.model_validate(each) for each in passages),
        )
        await work.show(found)
        return card

    async def attach(self, work: CardWork) -> Card:
        """Answer the conversation from this base, and from no other one it was answered from before."""
        card, given = _card(work), cast("AttachBase", work.given)
        await self._open(card)
        if given.mmr_lambda is not None or given.filter is not None:
            raise UsageError("only topK can be chosen here; leave mmrLambda and filter out")
        for other in await work.desk.of_type(work.conversation_id, card.type):
            if other.id != card.id and cast("KnowledgeBase", other).attach is not None:
                await work.show(other.changed(attach=None))
        await work.desk.talks.teach(work.conversation_id, GROUNDED, wanted=True)
        return card

    async def detach(self, work: CardWork) -> Card:
        """Answer the conversation without this base again."""
        await work.desk.talks.teach(work.conversation_id, GROUNDED, wanted=False)
        return work.card

    def _begin(self, work: CardWork, base: OpenBase, source: KnowledgeSource) -> Card:
        work.desk.start(self._take_in(work, base, source), f"ingest {base.id} {new_id()}")
        return _with(_card(work), source, progress=KnowledgeProgress(phase="loading", done=0, total=1))

    async def _take_in(self, work: CardWork, base: OpenBase, source: KnowledgeSource) -> None:
        """Read one source and show on the card what came of it."""
        place = self._bases.document(base.id, source.id)
        try:
            report = msgspec.convert((await base.ask(Ingest(paths=[place], replace=True)))[-1], _Report)
            totals = await _totals(base)
        except DialoomError as error:
            report, totals = _Report(failures=[_Failed(error.code, str(error))]), None
        if report.failures:
            failed = report.failures[0]
            ended = source.changed(
                status="failed", error=one_line(failed.message, 300), error_code=failed.code
            )
        else:
            ended = source.changed(status="done", chunks=report.chunks)
        await work.change(_ending(ended, totals))

    async def _open(self, card: KnowledgeBase) -> OpenBase:
        if not card.kb_id:
            raise UsageError("this card names no knowledge base; make one first and show it with /kb")
        return await self._bases.open(card.kb_id)

    async def _writable(self, card: KnowledgeBase) -> OpenBase:
        base = await self._open(card)
        if base.read_only or card.read_only:
            raise ProblemError(403, "read_only", "this knowledge base is read-only; ask who writes it")
        return base


def grounds(bases: KnowledgeBases | None, desk: Desk, always: Ground | None) -> Ground:
    """Return what finds passages: in the base a conversation was attached to, else as `always` does."""

    async def ground(conversation_id: str, question: str) -> list[object]:
        if bases is not None:
            for card in await desk.of_type(conversation_id, KnowledgeBase.type):
                attached = cast("KnowledgeBase", card)
                if attached.attach is not None and attached.kb_id:
                    return await bases.passages(attached.kb_id, question, k=attached.attach.top_k)
        return [] if always is None else await always(conversation_id, question)

    return ground


def _card(work: CardWork) -> KnowledgeBase:
    return cast("KnowledgeBase", work.card)


def _source(card: KnowledgeBase, source_id: str) -> KnowledgeSource:
    found = next((each for each in card.sources if each.id == source_id), None)
    if found is None:
        raise not_found("source", source_id)
    return found


def _with(card: KnowledgeBase, source: KnowledgeSource, **fields: object) -> KnowledgeBase:
    """Return the card with one source new or changed; of too many the oldest are not listed."""
    sources = {each.id: each for each in card.sources} | {source.id: source}
    listed = [each.stored() for each in list(sources.values())[-MAX_SOURCES:]]
    return card.changed(sources=listed, **fields)


def _ending(source: KnowledgeSource, totals: KnowledgeTotals | None) -> Callable[[Card], Card]:
    def change(card: Card) -> Card:
        base = cast("KnowledgeBase", card)
        return _with(base, source, progress=None, totals=totals or base.totals)

    return change


async def _totals(base: OpenBase) -> KnowledgeTotals:
    counts = msgspec.convert((await base.ask(Stats()))[-1], _Counts)
    return KnowledgeTotals(docs=counts.documents, chunks=counts.chunks)
