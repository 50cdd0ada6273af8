"""Calls on conversations: list, read, change, branch, drafts, and files of them out and in."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Literal, TypeAlias

import msgspec
from starlette.responses import Response

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import ConflictError
from dialoom.conversation.conversation import Conversation
from dialoom.conversation.drafts import DraftStore
from dialoom.conversation.exchange import ExportFormat, export_conversation, import_conversation
from dialoom.conversation.file_text import decode_text
from dialoom.conversation.header import HeaderChange
from dialoom.conversation.records import Append
from dialoom.conversation.store import ListedConversationStore, Window
from dialoom.server.choice import Choice
from dialoom.server.family import Alternatives, alternatives
from dialoom.server.files import disposition
from dialoom.server.numbered import as_read
from dialoom.server.problems import ProblemError
from dialoom.server.routes import AnyRoute, Call, Nothing, Route, content_type, read_bytes
from dialoom.server.run_tale import RunView
from dialoom.server.shown import Shelf, Shown, ShownCard, ShownHeader
from dialoom.server.tags import MAX_TAG, TagList, tagged, with_tags
from dialoom.server.talks import Talks

_MEDIA: dict[ExportFormat, str] = {
    "md": "text/markdown",
    "json": "application/json",
    "yaml": "application/yaml",
}
_BYTES = "application/octet-stream"
_MESSAGE = "message"
_MAX_LOOKS = 5
"""So many times a window is read again because meanwhile an answer under way became an entry."""
_Mode: TypeAlias = (
    Annotated[str, msgspec.Meta(max_length=1000)]
    | Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
    | bool
    | None
)
_Title = Annotated[str, msgspec.Meta(max_length=1000)]
_Limit = Annotated[int, msgspec.Meta(ge=1, le=200)]


class ListQuery(msgspec.Struct, frozen=True):
    """Which conversations: `q` has the words to find, `tag` one they have, `cursor` is of the page before."""

    q: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    tag: Annotated[str, msgspec.Meta(max_length=MAX_TAG)] = ""
    cursor: Annotated[str, msgspec.Meta(max_length=400)] | None = None
    limit: _Limit = 50


class HeaderPage(msgspec.Struct, frozen=True):
    """Some conversations, newest change first; `cursor` is None on the last page."""

    items: list[ShownHeader]
    cursor: str | None


class NewConversation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A conversation to begin."""

    title: _Title = ""
    workflow_mode: _Mode = None
    tags: TagList = []
    settings: Choice = Choice()


class ConversationEdit(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What to change of a conversation; what is left out stays."""

    title: _Title | msgspec.UnsetType = msgspec.UNSET
    workflow_mode: _Mode | msgspec.UnsetType = msgspec.UNSET
    tags: TagList | msgspec.UnsetType = msgspec.UNSET
    settings: Choice = Choice()


class BranchAt(msgspec.Struct, frozen=True):
    """How many of the first entries the branch begins with."""

    at: Annotated[int, msgspec.Meta(ge=0, le=2**31)]


class BranchList(msgspec.Struct, frozen=True):
    """Where a conversation has alternatives."""

    items: list[Alternatives]


class EntriesQuery(msgspec.Struct, frozen=True):
    """A window of the log: `limit` entries before the index `before`, the newest without it."""

    before: Annotated[int, msgspec.Meta(ge=0, le=2**31)] | None = None
    limit: _Limit = 60


class EntryWindow(msgspec.Struct, frozen=True):
    """Entries from `start` on, of `total` there are; follow the events behind `cursor` to stay current.

    `run` is the answer under way, with what of it was said so far.
    """

    start: int
    total: int
    cursor: str
    entries: list[Shown]
    run: RunView | None


class Draft(msgspec.Struct, frozen=True):
    """What is typed and not sent; an empty text removes it."""

    text: Annotated[str, msgspec.Meta(max_length=256 * 1024)]


class DraftSet(msgspec.Struct, frozen=True):
    """Drafts by key: "message" for the next message, a card's id for its answers."""

    drafts: dict[str, str]


class FormatQuery(msgspec.Struct, frozen=True):
    """The kind of file."""

    format: Literal["md", "json", "yaml"] = "yaml"


class Conversations:
    """Serves what the store has; what changes a conversation goes through its dialog."""

    def __init__(
        self,
        store: ListedConversationStore,
        drafts: DraftStore,
        shelf: Shelf,
        talks: Talks,
        *,
        cursor: Callable[[], str],
        max_import: int,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._store = store
        self._drafts = drafts
        self._shelf = shelf
        self._talks = talks
        self._cursor = cursor
        self._max_import = max_import
        self._clock = clock

    def routes(self) -> list[AnyRoute]:
        one = "/api/v1/conversations/{id}"
        return [
            Route(
                "GET", "/api/v1/conversations", self.list_all, query=ListQuery, answer=HeaderPage,
                summary="List or search conversations, newest change first",
            ),
            Route(
                "POST", "/api/v1/conversations", self.create, body=NewConversation, answer=ShownHeader,
                status=201, summary="Begin a conversation",
            ),
            Route(
                "POST", "/api/v1/conversations/import", self.take_in, query=FormatQuery, answer=ShownHeader,
                status=201, takes=(*_MEDIA.values(), _BYTES), refusals=(409,),
                summary="Import a conversation from a file",
            ),
            Route("GET", one, self.show, answer=ShownHeader, summary="Show a conversation's header"),
            Route(
                "PATCH", one, self.change, body=ConversationEdit, answer=ShownHeader, refusals=(409,),
                summary="Change title, mode or settings",
            ),
            Route("DELETE", one, self.delete, refusals=(409,), summary="Delete a conversation for good"),
            Route(
                "POST", one + "/branch", self.branch, body=BranchAt, answer=ShownHeader, status=201,
                summary="Begin a new conversation with the first entries of this one",
            ),
            Route(
                "GET", one + "/branches", self.branches, answer=BranchList,
                summary="List the conversations that go on differently, by the entry where they part",
            ),
            Route(
                "GET", one + "/entries", self.entries, query=EntriesQuery, answer=EntryWindow,
                summary="Read a window of what was said and shown",
            ),
            Route("GET", one + "/drafts", self.drafts, answer=DraftSet, summary="List drafts"),
            Route("GET", one + "/drafts/{key}", self.draft, answer=Draft, summary="Read a draft"),
            Route("PUT", one + "/drafts/{key}", self.save_draft, body=Draft, summary="Keep a draft"),
            Route(
                "GET", one + "/export", self.export, query=FormatQuery, media="*/*",
                summary="Export a conversation as a file",
            ),
        ]  # fmt: skip

    async def list_all(self, call: Call[ListQuery, Nothing]) -> HeaderPage:
        query = call.query
        if query.tag:
            page = await tagged(self._store, query.tag, query=query.q, cursor=query.cursor, limit=query.limit)
        else:
            page = await self._store.page(query=query.q, cursor=query.cursor, limit=query.limit)
        return HeaderPage([self._shelf.header(header) for header in page.headers], page.cursor)

    async def create(self, call: Call[Nothing, NewConversation]) -> ShownHeader:
        conversation = Conversation(clock=self._clock)
        new = call.body
        conversation.update(
            HeaderChange(title=new.title, workflow_mode=new.workflow_mode, settings=with_tags({}, new.tags))
        )
        kept = await self._keep(conversation)
        if new.settings == Choice():
            return kept
        await self._talks.choose(kept.id, new.settings, None)
        return self._shelf.header(await self._store.header(kept.id))

    async def show(self, call: Call[Nothing, Nothing]) -> ShownHeader:
        return self._shelf.header(await self._store.header(call.id()))

    async def change(self, call: Call[Nothing, ConversationEdit]) -> ShownHeader:
        edit, conversation_id = call.body, call.id()
        title = edit.title if isinstance(edit.title, str) else None
        if not isinstance(edit.workflow_mode, msgspec.UnsetType):
            await self._talks.update(conversation_id, HeaderChange(workflow_mode=edit.workflow_mode))
        if isinstance(edit.tags, list):
            settings = (await self._store.header(conversation_id)).settings
            await self._talks.update(conversation_id, HeaderChange(settings=with_tags(settings, edit.tags)))
        if title is not None or edit.settings != Choice():
            await self._talks.choose(conversation_id, edit.settings, title)
        return self._shelf.header(await self._store.header(conversation_id))

    async def delete(self, call: Call[Nothing, Nothing]) -> None:
        await self._talks.remove(call.id())

    async def branch(self, call: Call[Nothing, BranchAt]) -> ShownHeader:
        branch_id = await self._talks.branch(call.id(), call.body.at)
        return self._shelf.header(await self._store.header(branch_id))

    async def branches(self, call: Call[Nothing, Nothing]) -> BranchList:
        return BranchList(await alternatives(self._store, call.id()))

    async def entries(self, call: Call[EntriesQuery, Nothing]) -> EntryWindow:
        found = await self._snapshot(call)
        if any(map(_is_open_question, found.entries)):
            await self._talks.close_questions(call.id())
            found = await self._snapshot(call)
        return found

    async def _snapshot(self, call: Call[EntriesQuery, Nothing]) -> EntryWindow:
        """Return the log, and the run as it was at the cursor: what is told from there on continues both."""
        for _ in range(_MAX_LOOKS - 1):
            found = await self._look(call)
            if _goes_on(found.run, self._talks.runs.current(call.id())):
                return found
        return await self._look(
            call
        )  # who follows it sees the end of an answer beside its entry, for a moment

    async def _look(self, call: Call[EntriesQuery, Nothing]) -> EntryWindow:
        # first: what happens while the log is read is then told again, not missed
        cursor, run = self._cursor(), self._talks.runs.current(call.id())
        window, shown = await self._window(call)
        return EntryWindow(window.start, window.total, cursor, shown, run)

    async def _window(self, call: Call[EntriesQuery, Nothing]) -> tuple[Window, list[Shown]]:
        return await self._shelf.window(call.id(), before=call.query.before, limit=call.query.limit)

    async def drafts(self, call: Call[Nothing, Nothing]) -> DraftSet:
        kept = await self._drafts.drafts(call.id())
        return DraftSet({slot or _MESSAGE: text for slot, text in kept.items()})

    async def draft(self, call: Call[Nothing, Nothing]) -> Draft:
        kept = await self._drafts.drafts(call.id())
        return Draft(kept.get(_slot(call.name("key")), ""))

    async def save_draft(self, call: Call[Nothing, Draft]) -> None:
        await self._drafts.save_draft(call.id(), call.body.text, slot=_slot(call.name("key")))

    async def export(self, call: Call[FormatQuery, Nothing]) -> Response:
        kind = call.query.format
        conversation = await self._store.load(call.id())
        text = await asyncio.to_thread(_exported, conversation, kind)
        name = f"{conversation.header.title or conversation.id}.{kind}"
        content = text.encode("utf-8", "replace")
        return Response(content, headers=disposition(name), media_type=_MEDIA[kind])

    async def take_in(self, call: Call[FormatQuery, Nothing]) -> ShownHeader:
        kind = call.query.format
        if content_type(call.request) not in {_MEDIA[kind], _BYTES}:
            raise ProblemError(415, "content_type", f"send a {kind} file as {_MEDIA[kind]} or {_BYTES}")
        content = await read_bytes(call.request, self._max_import)
        return await self._keep_import(await asyncio.to_thread(decode_text, content), kind)

    async def _keep_import(self, text: str, kind: ExportFormat) -> ShownHeader:
        """Keep an import under its own id, or under a new one when that is taken."""
        conversation = await asyncio.to_thread(lambda: import_conversation(text, kind, clock=self._clock))
        try:
            return await self._keep(conversation)
        except ConflictError:
            again = await asyncio.to_thread(
                lambda: import_conversation(text, kind, fresh_id=True, clock=self._clock)
            )
            return await self._keep(again)

    async def _keep(self, conversation: Conversation) -> ShownHeader:
        await self._store.create(conversation)
        return self._shelf.header(conversation.header)


def _exported(conversation: Conversation, kind: ExportFormat) -> str:
    """Return the text of a file: what people read as they saw it, what programs read as it is stored."""
    if kind != "md":
        return export_conversation(conversation, kind)
    seen = map(Append, as_read(conversation.entries))
    return export_conversation(Conversation(conversation.header, seen), kind)


def _goes_on(before: RunView | None, now: RunView | None) -> bool:
    """Tell whether nothing that a run had said was made an entry meanwhile."""
    if before is None or now is None or before.id != now.id:
        return before is None or not (before.text or before.reasoning)
    return now.text.startswith(before.text) and now.reasoning.startswith(before.reasoning)


def _is_open_question(shown: Shown) -> bool:
    """Tell whether a run may wait for this card: it asks with approvals and forms."""
    return isinstance(shown, ShownCard) and not shown.locked and shown.type in {"Approval", "Form"}


def _slot(key: str) -> str:
    return "" if key == _MESSAGE else key
