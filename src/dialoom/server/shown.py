"""Conversations as a page gets them: headers, and entries with each card once, at its newest."""

import asyncio
import logging
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, cast

import msgspec

from dialoom.base.errors import UsageError
from dialoom.conversation.cards.card import Card
from dialoom.conversation.cards.form import Form
from dialoom.conversation.cards.form_registry import FormRegistry
from dialoom.conversation.cards.registry import CardRegistry
from dialoom.conversation.cards.unknown import UnknownCard
from dialoom.conversation.entries import CardEntry, Entry, TextEntry
from dialoom.conversation.header import Header, WorkflowMode, to_rfc3339
from dialoom.conversation.store import ListedConversationStore, Window
from dialoom.dialog.settings import settings_in
from dialoom.llm.messages import Role, ToolCall
from dialoom.server.numbered import Numbering, passages_of
from dialoom.server.tags import tags_in

_log = logging.getLogger("dialoom.server")

MAX_TRANSCRIPTS = 64
MAX_SHOWN = 10_000
"""Of so many conversations it is known how much of them pages show."""


class ShownSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a conversation is set to; what is left out is the server's choice."""

    provider: str = ""
    model: str = ""
    system: str = ""
    skills: tuple[str, ...] = ()


class ShownHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A conversation in a list; `running` is the run that answers in it."""

    id: str
    title: str
    created_at: str
    updated_at: str
    workflow_mode: WorkflowMode
    branch_from: str | None
    running: str | None
    tags: list[str]
    settings: ShownSettings


class ShownCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool a model asked for: its arguments, the text it wrote, and why that is none."""

    id: str
    name: str
    arguments: dict[str, object] | None
    raw: str
    problem: str | None = None


class ShownText(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    tag_field="kind",
    tag="Text",
):
    """Something said.

    `sources` are what an answer's `[n]` point to, in their order; `attachments` the files sent with it or
    returned by a tool.
    """

    index: int
    role: Role
    content: str
    reasoning: str = ""
    status: str | None = None
    tool_calls: tuple[ShownCall, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    is_error: bool = False
    sources: list[object] = []
    attachments: list[object] = []


class ShownCard(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="kind", tag="Special"):
    """A card in its first place, with its newest state; `rev` is the entry that holds that.

    `card` is None when the payload cannot be read; then `problem` says why. `locked` takes no actions.
    `schema` is the JSON Schema of a form's answers.
    """

    index: int
    rev: int
    type: str
    payload: str
    card: dict[str, object] | None
    card_id: str | None
    locked: bool
    problem: str = ""
    schema: dict[str, object] | None = None


Shown: TypeAlias = ShownText | ShownCard


class Transcript:
    """Which card stands where in one conversation: what one entry alone does not tell."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.count = 0
        self._states: list[tuple[int, str | None, CardEntry]] = []
        self._first: dict[str, int] = {}
        self._newest: dict[int, tuple[int, CardEntry]] = {}
        self._later: set[int] = set()
        self._grounds: list[tuple[int, list[object]]] = []
        self._cited: list[tuple[int, tuple[int, ...]]] = []
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> int:
        """Take the next entry; return the index at which it is shown."""
        index, self.count = self.count, self.count + 1
        if not isinstance(entry, CardEntry):
            if entry.role == "user":
                self._grounds.append((index, passages_of(entry)))
            elif entry.role == "assistant" and (numbering := self.numbering(index)).passages:
                self._cited.append((index, numbering.answered(entry.content)[1].cited))
            return index
        self._states.append((index, entry.card_id, entry))
        return self._place(*self._states[-1])

    def truncate(self, keep: int) -> None:
        """Forget all but the first `keep` entries."""
        self.count = keep
        self._states = [state for state in self._states if state[0] < keep]
        self._grounds = [each for each in self._grounds if each[0] < keep]
        self._cited = [each for each in self._cited if each[0] < keep]
        self._first.clear()
        self._newest.clear()
        self._later.clear()
        for state in self._states:
            self._place(*state)

    def numbering(self, index: int) -> Numbering:
        """Return the passages of the question that the entry at `index` answers, as cited before it."""
        at = bisect_left(self._grounds, index, key=lambda each: each[0])
        if not at:
            return Numbering([])
        question, passages = self._grounds[at - 1]
        before = bisect_left(self._cited, index, key=lambda each: each[0])
        answer, cited = self._cited[before - 1] if before else (-1, ())
        return Numbering(passages, cited if answer > question else ())

    def is_folded(self, index: int) -> bool:
        """Tell whether the entry is a later state of a card, which is shown in its first place."""
        return index in self._later

    def newest(self, index: int) -> tuple[int, CardEntry]:
        """Return the newest state of the card whose first place this is, with its index."""
        return self._newest[index]

    def find(self, card_id: str) -> int | None:
        """Return a card's first place, or None when there is no such card."""
        return self._first.get(card_id)

    def cards_of(self, name: str) -> list[CardEntry]:
        """Return the newest state of every card of one type, in their order."""
        return [entry for _, (_, entry) in sorted(self._newest.items()) if entry.type == name]

    def _place(self, index: int, card_id: str | None, entry: CardEntry) -> int:
        first = index if card_id is None else self._first.setdefault(card_id, index)
        self._newest[first] = (index, entry)
        if first != index:
            self._later.add(index)
        return first


class Shelf:
    """Shows conversations of one store; what changed elsewhere is read again."""

    def __init__(
        self,
        store: ListedConversationStore,
        cards: CardRegistry,
        forms: FormRegistry,
        running: Callable[[str], str | None],
    ) -> None:
        self.cards = cards
        self.forms = forms
        self._store = store
        self._running = running
        self._transcripts: OrderedDict[str, Transcript] = OrderedDict()
        self._shown: OrderedDict[str, int] = OrderedDict()

    def header(self, header: Header) -> ShownHeader:
        return ShownHeader(
            id=header.id,
            title=header.title,
            created_at=to_rfc3339(header.created),
            updated_at=to_rfc3339(header.updated),
            workflow_mode=header.workflow_mode,
            branch_from=header.branch_from,
            running=self._running(header.id),
            tags=tags_in(header),
            settings=_settings(header),
        )

    async def window(
        self, conversation_id: str, *, before: int | None, limit: int
    ) -> tuple[Window, list[Shown]]:
        """Return a window of the log and what of it is shown."""
        window = await self._store.window(conversation_id, before=before, limit=limit)
        if conversation_id not in self._shown:  # else some page may still show what was there before
            self.was_told(conversation_id, window.total)
        transcript = await self.transcript(conversation_id, window.total)
        shown = [
            self.entry(window.start + at, entry, transcript)
            for at, entry in enumerate(window.entries)
            if is_shown(entry) and not transcript.is_folded(window.start + at)
        ]
        return window, shown

    async def transcript(self, conversation_id: str, count: int) -> Transcript:
        """Return the transcript of the first `count` entries; the whole log is read when it is not known."""
        known = self._transcripts.get(conversation_id)
        if known is None or known.count != count:
            entries = (await self._store.load(conversation_id)).entries
            known = await asyncio.to_thread(Transcript, entries[:count])
            self._transcripts[conversation_id] = known
        self._transcripts.move_to_end(conversation_id)
        while len(self._transcripts) > MAX_TRANSCRIPTS:
            self._transcripts.popitem(last=False)
        return known

    def has_missed(self, conversation_id: str, count: int) -> bool:
        """Tell whether a page may show another number of entries than `count`, and was not told why."""
        return self._shown.get(conversation_id, count) != count

    def was_told(self, conversation_id: str, count: int) -> None:
        """Know that every page is told by now of so many entries, or to load again."""
        self._shown[conversation_id] = count
        self._shown.move_to_end(conversation_id)
        while len(self._shown) > MAX_SHOWN:
            self._shown.popitem(last=False)

    def forget(self, conversation_id: str) -> None:
        """Read this conversation anew when it is next shown."""
        self._transcripts.pop(conversation_id, None)

    def entry(self, index: int, entry: Entry, transcript: Transcript) -> Shown:
        """Show the entry at `index`, which is its first place when it is a card."""
        if isinstance(entry, TextEntry):
            if entry.role != "assistant" or not entry.content:
                return _text(index, entry, entry.content, [])
            content, numbering = transcript.numbering(index).answered(entry.content)
            return _text(index, entry, content, numbering.listed())
        rev, newest = transcript.newest(index)
        card = self.cards.decode_entry(newest, self.forms)
        if isinstance(card, UnknownCard):
            _log.warning("card shown as a placeholder", extra={"card_type": card.type[:64], "entry": rev})
        return _card(index, rev, newest, card)


def is_shown(entry: Entry) -> bool:
    """Tell whether people see the entry at all: texts for the model alone they do not."""
    return isinstance(entry, CardEntry) or entry.role != "system"


def card_fields(card: Card) -> dict[str, object]:
    """Return a card as a page gets it: its fields, and the type they are of."""
    return {"type": card.type, **card.stored()}


def _settings(header: Header) -> ShownSettings:
    try:
        chosen = settings_in(header.settings)
    except UsageError:  # of another product, or damaged: the dialog says so when it is opened
        return ShownSettings()
    return ShownSettings(
        provider=chosen.provider_id,
        model=chosen.model_id,
        system=chosen.system,
        skills=chosen.active_skills,
    )


def _text(index: int, entry: TextEntry, content: str, sources: list[object]) -> ShownText:
    return ShownText(
        index=index,
        role=entry.role,
        content=content,
        reasoning=entry.reasoning,
        status=entry.status,
        tool_calls=tuple(map(_call, entry.tool_calls)),
        tool_call_id=entry.tool_call_id,
        tool_name=entry.tool_name,
        is_error=entry.is_error,
        sources=sources,
        attachments=_listed(entry.meta.get("attachments")),
    )


def _card(index: int, rev: int, entry: CardEntry, card: Card | UnknownCard) -> ShownCard:
    unknown = isinstance(card, UnknownCard)
    return ShownCard(
        index=index,
        rev=rev,
        type=entry.type,
        payload=entry.payload,
        card=None if unknown else card_fields(card),
        card_id=card.id,
        locked=unknown or card.locked or card.is_closed,
        problem=card.reason if unknown else "",
        schema=card.schema_of_answers() if isinstance(card, Form) else None,
    )


def _call(call: ToolCall) -> ShownCall:
    return ShownCall(call.id, call.name, call.arguments, call.raw, call.problem)


def _listed(value: object) -> list[object]:
    return list(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else []
