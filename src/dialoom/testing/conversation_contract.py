"""What every `ConversationStore` must do, as tests: subclass the suite and say how to open your store.

    class TestMyStore(ConversationStoreContract):
        @pytest.fixture
        def store(self, tmp_path):
            return MyStore(tmp_path)

The tests are coroutines; run them with pytest-asyncio in auto mode.
"""

import asyncio
from collections.abc import Sequence
from typing import Literal

from dialoom.base.errors import ConflictError, UsageError
from dialoom.base.ids import new_id
from dialoom.conversation.conversation import Conversation
from dialoom.conversation.entries import CardEntry, Entry, TextEntry
from dialoom.conversation.header import Header, HeaderChange
from dialoom.conversation.records import Append, Truncate, fold
from dialoom.conversation.store import ConversationNotFoundError, ListedConversationStore
from dialoom.llm.messages import ToolCall
from dialoom.testing.conversation_steps import created, refuses

HOSTILE_IDS = ("", "..", "../a", "a/b", "a\\b", "a\x00b", "CON", "nul", "COM1", "%2e%2e", "a" * 65, "名", ".")

_SEARCHES: dict[str, tuple[int, ...]] = {
    "contours GRID": (0,),
    "cont gri": (0,),
    "25": (0,),
    "ontours": (),
    "grid other": (),
    "克里金": (1,),
    "里": (1,),
    "法": (1,),
    "网格 金法": (1,),
    "网里": (),
    "full": (2,),
    "a網": (3,),
    "other": (0, 1, 2, 3),
    "!": (),
}
"""What is looked for, and in which of the texts it is found."""

AWKWARD_TEXTS = (
    "",
    " lead and trail ",
    "你好，世界 👩‍🔬",
    "a\r\nb\rc\n",
    "no",
    "017",
    "2026-11-30",
    "1e3",
    "null",
    "~",
    "- not: [a, list]\n# nor a comment",
    "\x00\x07\x1b\x7f\x85\u2028\u2029\ufeff\ufffe",
    "\ud83d half",
    "x" * 100_000,
)


class ConversationStoreContract:
    """The suite. `reopen` is for stores that outlive their object."""

    async def reopen(self, store: ListedConversationStore) -> ListedConversationStore:
        """Return what another process would find; a store on disk closes and opens again here."""
        return store

    async def test_what_was_appended_is_loaded_in_order(self, store: ListedConversationStore) -> None:
        conversation = await created(store)
        entries = [_said("user", "hi"), _said("assistant", "hello"), _card("c1", "a"), _said("user", "bye")]
        for entry in entries:
            await store.append(conversation.id, [Append(entry)])
        loaded = await (await self.reopen(store)).load(conversation.id)
        assert loaded.entries == tuple(entries)
        assert loaded.records == tuple(Append(entry) for entry in entries)

    async def test_creating_keeps_header_and_whole_log(self, store: ListedConversationStore) -> None:
        header = Header(
            id=new_id(),
            title="网格 25 m",
            branch_from="parent",
            created=1_700_000_000.125,
            updated=1_700_000_001.25,
            workflow_mode="guided",
            settings={"model": "mock:m", "nested": {"a": [1, 2.5, None, True]}},
        )
        records = [Append(_said("user", "a"), "run/1/0"), Append(_said("user", "b")), Truncate(1)]
        await store.create(Conversation(header, records))
        loaded = await (await self.reopen(store)).load(header.id)
        assert (loaded.header, loaded.records) == (header, tuple(records))

    async def test_every_kind_of_text_comes_back_unchanged(self, store: ListedConversationStore) -> None:
        conversation = await created(store)
        entries = [
            *(_said("user", text) for text in AWKWARD_TEXTS),
            *(TextEntry(role="assistant", content="", reasoning=text) for text in AWKWARD_TEXTS),
            TextEntry(
                role="assistant",
                content="calling",
                status="incomplete",
                tool_calls=(ToolCall(id="1", name="grid", arguments={"cell": 25}, raw='{"cell": 25}'),),
                meta={"seq": 7, "tags": ["a", None]},
            ),
            TextEntry(role="tool", content="boom", tool_call_id="1", tool_name="grid", is_error=True),
            CardEntry(type="Broken", payload=": not [yaml"),
        ]
        await store.append(conversation.id, [Append(entry) for entry in entries])
        assert (await (await self.reopen(store)).load(conversation.id)).entries == tuple(entries)

    async def test_a_key_delivered_twice_adds_one_entry(self, store: ListedConversationStore) -> None:
        conversation = await created(store)
        once = Append(_said("assistant", "once"), "run/1/0")
        assert await store.append(conversation.id, [once, once]) == 1
        assert await store.append(conversation.id, [Truncate(0)]) == 2
        store = await self.reopen(store)
        assert await store.append(conversation.id, [once, Append(_said("user", "next"))]) == 3
        assert (await store.load(conversation.id)).entries == (_said("user", "next"),)

    async def test_truncating_hides_and_keeps(self, store: ListedConversationStore) -> None:
        conversation = await created(store)
        records = [Append(_said("user", text)) for text in "abc"]
        assert await store.append(conversation.id, [*records, Truncate(1)]) == 4
        assert await store.append(conversation.id, [Truncate(1)]) == 4
        loaded = await store.load(conversation.id)
        assert loaded.entries == (_said("user", "a"),)
        assert loaded.records == (*records, Truncate(1))

    async def test_writers_at_once_lose_nothing_and_keep_their_order(
        self, store: ListedConversationStore
    ) -> None:
        conversation = await created(store)

        async def write(writer: int) -> None:
            for at in range(10):
                pair = [Append(_said("user", f"{writer}:{at}:{half}")) for half in "ab"]
                await store.append(conversation.id, pair)

        await asyncio.gather(*(write(writer) for writer in range(8)))
        texts = _texts((await store.load(conversation.id)).entries)
        assert [text[:-1] for text in texts[::2]] == [text[:-1] for text in texts[1::2]]
        for writer in range(8):
            own = [text for text in texts if text.startswith(f"{writer}:")]
            assert own == [f"{writer}:{at}:{half}" for at in range(10) for half in "ab"]

    async def test_loading_gives_an_object_of_its_own(self, store: ListedConversationStore) -> None:
        conversation = await created(store)
        (await store.load(conversation.id)).append(_said("user", "not stored"))
        assert (await store.load(conversation.id)).entries == ()

    async def test_an_id_names_one_conversation(self, store: ListedConversationStore) -> None:
        conversation = await created(store)
        await refuses(ConflictError, store.create(conversation))
        await store.delete(conversation.id)
        await refuses(ConversationNotFoundError, store.load(conversation.id))
        await store.create(conversation)
        assert (await store.load(conversation.id)).header == conversation.header

    async def test_an_unknown_or_hostile_id_is_one_clear_error(self, store: ListedConversationStore) -> None:
        await refuses(ConversationNotFoundError, store.load(new_id()))
        await refuses(ConversationNotFoundError, store.append(new_id(), [Truncate(0)]))
        await refuses(ConversationNotFoundError, store.update(new_id(), HeaderChange(title="x")))
        await refuses(ConversationNotFoundError, store.delete(new_id()))
        await refuses(ConversationNotFoundError, store.window(new_id()))
        for hostile in HOSTILE_IDS:
            await refuses(UsageError, store.load(hostile))

    async def test_title_mode_and_settings_change_and_stay(self, store: ListedConversationStore) -> None:
        conversation = await created(store, "before")
        change = HeaderChange(title="after", workflow_mode="free", settings={"a": 1})
        changed = await store.update(conversation.id, change)
        assert (changed.title, changed.workflow_mode, changed.settings) == ("after", "free", {"a": 1})
        assert changed.updated >= conversation.header.updated
        assert (await (await self.reopen(store)).load(conversation.id)).header == changed

    async def test_a_header_is_read_alone(self, store: ListedConversationStore) -> None:
        conversation = Conversation(Header(id="one", title="Wells", created=5, updated=6, settings={"k": 1}))
        await store.create(conversation)
        assert await store.header("one") == conversation.header
        await refuses(ConversationNotFoundError, store.header("two"))

    async def test_branches_are_found_from_what_they_replace(self, store: ListedConversationStore) -> None:
        await store.create(Conversation(Header(id="root", created=1, updated=1)))
        for id_, at, origin in (("b", 3, "root"), ("a", 2, "root"), ("c", 4, "a"), ("d", 2, "root")):
            await store.create(Conversation(Header(id=id_, created=at, updated=at, branch_from=origin)))
        assert [header.id for header in await store.branches("root")] == ["a", "d", "b"]
        assert [header.id for header in await store.branches("a")] == ["c"]
        assert await store.branches("nowhere") == ()
        await store.delete("root")
        assert len(await store.branches("root")) == 3

    async def test_a_listing_goes_through_all_once_newest_first(self, store: ListedConversationStore) -> None:
        ids = [(await created(store, f"n{at}", updated=1e9 + at // 2)).id for at in range(7)]
        seen: list[Header] = []
        cursor: str | None = None
        for _ in range(4):
            page = await store.page(cursor=cursor, limit=2)
            seen += page.headers
            cursor = page.cursor
        assert cursor is None
        assert sorted(header.id for header in seen) == sorted(ids)
        assert [header.updated for header in seen] == sorted((each.updated for each in seen), reverse=True)

    async def test_what_was_changed_last_is_listed_first(self, store: ListedConversationStore) -> None:
        older = await created(store, updated=1e9)
        await created(store, updated=1e9 + 1)
        await store.append(older.id, [Append(_said("user", "again"))])
        assert (await store.page(limit=1)).headers == ((await store.load(older.id)).header,)

    async def test_search_finds_titles_and_visible_text_in_any_language(
        self, store: ListedConversationStore
    ) -> None:
        by_title = await created(store, "Kriging of Wells")
        by_text = await created(store)
        records = [Append(_said("user", "请用克里金法")), Append(_said("user", "secret plan")), Truncate(1)]
        await store.append(by_text.id, records)
        assert await _found(store, "kriging") == [by_title.id]
        assert await _found(store, "克里金") == [by_text.id]
        assert await _found(store, "secret plan") == []

    async def test_search_wants_every_word_of_the_query_in_one_text(
        self, store: ListedConversationStore
    ) -> None:
        texts = ("Grid of 25m cells, drawn as contours", "网格化：克里金法", "Ｆｕｌｌ width", "Ａ網")
        ids = [(await created(store)).id for _ in texts]
        for conversation_id, text in zip(ids, texts, strict=True):
            await store.append(conversation_id, [Append(_said("user", text)), Append(_said("user", "other"))])
        for query, places in _SEARCHES.items():
            assert sorted(await _found(store, query)) == sorted(ids[place] for place in places), query
        assert len(await _found(store, " \n")) == len(texts)
        for query in ("x" * 1001, "word " * 33):
            await refuses(UsageError, store.page(query=query))

    async def test_a_found_listing_goes_on_behind_its_cursor(self, store: ListedConversationStore) -> None:
        wanted = [(await created(store, f"wells {at}", updated=1e9 + at)).id for at in range(5)]
        await created(store, "maps", updated=1e9 + 2.5)
        first = await store.page(query="wells", limit=3)
        rest = await store.page(query="wells", cursor=first.cursor, limit=3)
        assert [header.id for header in (*first.headers, *rest.headers)] == wanted[::-1]
        assert rest.cursor is None

    async def test_a_new_title_is_found_and_the_old_is_not(self, store: ListedConversationStore) -> None:
        conversation = await created(store, "before")
        await store.update(conversation.id, HeaderChange(title="after"))
        assert await _found(store, "after") == [conversation.id]
        assert await _found(store, "before") == []
        await store.delete(conversation.id)
        assert await _found(store, "after") == []

    async def test_a_window_reads_the_newest_and_then_backwards(self, store: ListedConversationStore) -> None:
        conversation = await created(store)
        entries = [_said("user", str(at)) for at in range(10)]
        await store.append(conversation.id, [*map(Append, entries), Append(_said("user", "x")), Truncate(10)])
        newest = await store.window(conversation.id, limit=4)
        assert (newest.start, newest.total, newest.entries) == (6, 10, tuple(entries[6:]))
        older = await store.window(conversation.id, before=newest.start, limit=8)
        assert (older.start, older.total, older.entries) == (0, 10, tuple(entries[:6]))
        assert (await store.window(conversation.id, before=0)).entries == ()
        assert (await store.window(conversation.id, before=99, limit=1)).entries == (entries[9],)

    async def test_limits_and_cursors_from_elsewhere_are_refused(
        self, store: ListedConversationStore
    ) -> None:
        conversation = await created(store)
        for limit in (0, -1, 201):
            await refuses(UsageError, store.page(limit=limit))
            await refuses(UsageError, store.window(conversation.id, limit=limit))
        for cursor in ("", "x", "é", "W10="):
            await refuses(UsageError, store.page(cursor=cursor))

    async def test_the_log_is_what_its_records_fold_to(self, store: ListedConversationStore) -> None:
        conversation = await created(store)
        records = [Append(_said("user", "a")), Truncate(0), Append(_said("user", "b")), Truncate(5)]
        await store.append(conversation.id, records)
        loaded = await store.load(conversation.id)
        assert loaded.entries == fold(records) == fold(loaded.records)


async def _found(store: ListedConversationStore, query: str) -> list[str]:
    return [header.id for header in (await store.page(query=query)).headers]


def _said(role: Literal["user", "assistant"], content: str) -> TextEntry:
    return TextEntry(role=role, content=content)


def _card(card_id: str, title: str) -> CardEntry:
    return CardEntry(type="Table", payload=f"type: Table\nid: {card_id}\ntitle: {title}\n")


def _texts(entries: Sequence[Entry]) -> list[str]:
    return [entry.content for entry in entries if isinstance(entry, TextEntry)]
