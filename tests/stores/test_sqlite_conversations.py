"""The SQLite store: its contracts, what is in the file, what is no file of ours, and one writer for all."""

import asyncio
import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest

from dialoom.base.errors import ConflictError, StoreError, UsageError
from dialoom.conversation import (
    Append,
    CardEntry,
    Conversation,
    ConversationNotFoundError,
    Header,
    HeaderChange,
    TextEntry,
    Truncate,
    screen,
)
from dialoom.conversation.cards import UnknownCard
from dialoom.stores import SqliteConversationStore, conversation_words, sqlite_opener
from dialoom.stores.conversation_file import CONVERSATIONS
from dialoom.testing import ManualClock
from dialoom.testing.conversation_contract import ConversationStoreContract
from dialoom.testing.conversation_extras_contract import AttachmentStoreContract, DraftStoreContract

BEHIND = "updated <= 9 AND (updated < 9 OR id > 'a')"
LONG_NUMBER = 10**5000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "conversations.sqlite"


class TestSqliteConversationStore(ConversationStoreContract, DraftStoreContract, AttachmentStoreContract):
    @pytest.fixture
    def store(self, path: Path) -> Iterator[SqliteConversationStore]:
        self.path = path
        self.opened = [SqliteConversationStore(path)]
        yield self.opened[0]
        for store in self.opened:
            store.close()

    async def reopen(self, store: SqliteConversationStore) -> SqliteConversationStore:
        store.close()
        self.opened.append(SqliteConversationStore(self.path))
        return self.opened[-1]


def said(text: str) -> Append:
    return Append(TextEntry(role="user", content=text))


async def filled(path: Path, *texts: str, title: str = "") -> str:
    """Make a file with one conversation and close it; return the conversation's id."""
    conversation = Conversation()
    conversation.update(HeaderChange(title=title))
    with SqliteConversationStore(path) as store:
        await store.create(conversation)
        for text in texts:
            await store.append(conversation.id, [said(text)])
    return conversation.id


def ask(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def change(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(sql)
        connection.commit()


def raw_bytes(path: Path) -> bytes:
    """Everything on the disk that belongs to the store."""
    return b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))


async def test_the_file_is_durable_and_says_whose_it_is(path: Path) -> None:
    conversation_id = await filled(path, "hi")
    assert ask(path, "PRAGMA journal_mode") == [("wal",)]
    assert ask(path, "PRAGMA application_id") == [(CONVERSATIONS.application_id,)]
    assert ask(path, "PRAGMA user_version") == [(CONVERSATIONS.layout,)]
    assert ask(path, "SELECT id, length, visible FROM conversation") == [(conversation_id, 1, 1)]
    assert ask(path, "SELECT key, keep, body FROM record") == [
        (None, None, '{"kind":"Text","role":"user","content":"hi"}')
    ]


async def test_a_truncation_adds_a_row_and_rewrites_no_entry(path: Path) -> None:
    conversation_id = await filled(path, "a", "b", "c")
    before = ask(path, "SELECT number, body FROM record ORDER BY number")
    with SqliteConversationStore(path) as store:
        await store.append(conversation_id, [Truncate(1), said("d")])
        assert (await store.window(conversation_id)).total == 2
    rows = ask(path, "SELECT number, body FROM record ORDER BY number")
    assert rows[:3] == before
    assert [row[1] for row in rows[3:]] == [None, '{"kind":"Text","role":"user","content":"d"}']


async def test_a_window_and_a_page_are_read_through_an_index(path: Path) -> None:
    await filled(path, "a")
    for sql, index in (
        ("SELECT body FROM record WHERE shown >= 1 AND shown < 9 ORDER BY shown", "record_shown"),
        ("SELECT 1 FROM record WHERE number >> 32 = 1 AND key = 'k'", "record_key"),
        (f"SELECT id FROM conversation WHERE {BEHIND} ORDER BY updated DESC, id", "conversation_by_change"),
    ):
        plan = " ".join(str(row[3]) for row in ask(path, f"EXPLAIN QUERY PLAN {sql}"))
        assert f"INDEX {index} (" in plan
        assert "TEMP B-TREE" not in plan


async def test_what_was_deleted_leaves_no_bytes_in_the_file(path: Path) -> None:
    kept = await filled(path, "kept forever", title="kept title")
    gone = await filled(path, *(f"confidential{at} 机密" for at in range(50)), title="classified")
    with SqliteConversationStore(path) as store:
        await store.save_draft(gone, "undisclosed")
        await store.attach(gone, b"proprietary", name="embargoed", mime="a/b")
        await store.append(kept, [said("go on")])
        secrets = (
            b"confidential",
            b"classified",
            b"undisclosed",
            b"proprietary",
            b"embargoed",
            gone.encode(),
        )
        assert all(secret in raw_bytes(path) for secret in secrets)
        await store.delete(gone)
    left = raw_bytes(path)
    assert [secret for secret in (*secrets, "机密".encode()) if secret in left] == []
    with SqliteConversationStore(path) as store:
        assert [header.id for header in (await store.page(query="kept forever")).headers] == [kept]
        assert [header.id for header in (await store.page(query="kept title")).headers] == [kept]


async def test_a_search_finds_what_is_not_indexed_yet(path: Path) -> None:
    conversation = Conversation()
    with SqliteConversationStore(path) as store, SqliteConversationStore(path, read_only=True) as reader:
        await store.create(conversation)
        await store.append(conversation.id, [said("kriging"), said("gone"), Truncate(1)])
        for each in (store, reader):
            assert [header.id for header in (await each.page(query="krig")).headers] == [conversation.id]
            assert (await each.page(query="gone")).headers == ()
    assert ask(path, "SELECT count(*) FROM unindexed") == [(0,)]
    assert ask(path, "SELECT words FROM word ORDER BY rowid") == [("",), ("kriging",)]


async def test_many_records_at_once_are_all_indexed(path: Path) -> None:
    many = Conversation(records=[said(f"well{at}") for at in range(600)])
    with SqliteConversationStore(path) as store:
        await store.create(many)
        for _ in range(3):
            await store.create(Conversation(records=[said(f"map{at}") for at in range(100)]))
    with SqliteConversationStore(path) as store:
        assert [header.id for header in (await store.page(query="well599")).headers] == [many.id]
        assert len((await store.page(query="map99")).headers) == 3
    assert ask(path, "SELECT count(*) FROM word") == [(904,)]


async def test_a_record_another_process_indexed_meanwhile_is_indexed_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteConversationStore(path) as store:
        await store.create(Conversation(records=[said("kriging")]))
        store.close()
    change(path, "UPDATE conversation SET indexed = 0")
    change(path, "DELETE FROM word WHERE rowid > 1 << 32")
    change(path, "INSERT INTO unindexed VALUES (1)")
    cut = conversation_words.words

    def cut_while_another_indexes(text: str) -> list[str]:
        monkeypatch.setattr(conversation_words, "words", cut)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            assert conversation_words.index_some(other)
        return cut(text)

    monkeypatch.setattr(conversation_words, "words", cut_while_another_indexes)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert conversation_words.index_some(connection)
        assert not conversation_words.index_some(connection)
    assert ask(path, "SELECT words FROM word ORDER BY rowid") == [("",), ("kriging",)]


def test_a_new_file_may_be_opened_by_many_at_once(path: Path) -> None:
    start = Barrier(8)

    def open_and_create() -> str:
        start.wait(30)
        conversation = Conversation()
        with SqliteConversationStore(path) as store:
            asyncio.run(store.create(conversation))
        return conversation.id

    with ThreadPoolExecutor(8) as threads:
        ids = [future.result(60) for future in [threads.submit(open_and_create) for _ in range(8)]]
    assert sorted(str(row[0]) for row in ask(path, "SELECT id FROM conversation")) == sorted(ids)


async def test_calls_that_wait_together_share_a_transaction(path: Path) -> None:
    conversation = Conversation()
    with SqliteConversationStore(path) as store:
        await store.create(conversation)
        versions: set[object] = set()
        with closing(sqlite3.connect(path)) as watcher:

            async def append(at: int) -> None:
                await store.append(conversation.id, [said(str(at))])
                versions.add(watcher.execute("PRAGMA data_version").fetchone()[0])

            await asyncio.gather(*(append(at) for at in range(100)))
        assert (await store.window(conversation.id)).total == 100
        assert len(versions) < 50


async def test_one_refused_call_refuses_no_other(path: Path) -> None:
    conversation = Conversation()
    with SqliteConversationStore(path) as store:
        await store.create(conversation)
        unwritable = Append(TextEntry(role="user", content="x", meta={"n": LONG_NUMBER}))
        answers = await asyncio.gather(
            store.append(conversation.id, [said("a")]),
            store.append("nobody", [said("b")]),
            store.append(conversation.id, [unwritable]),
            store.create(conversation),
            store.append(conversation.id, [said("c")]),
            return_exceptions=True,
        )
    assert [answer if isinstance(answer, int) else type(answer) for answer in answers] == [
        *(1, ConversationNotFoundError, UsageError, ConflictError, 2),
    ]


async def test_a_large_payload_is_kept_and_shown_as_a_placeholder(path: Path) -> None:
    conversation = Conversation()
    card = CardEntry(type="Table", payload="type: Table\ntitle: " + "x" * 10_000_000)
    with SqliteConversationStore(path) as store:
        await store.create(conversation)
        await store.append(conversation.id, [Append(card), said("next")])
        loaded = await store.load(conversation.id)
    assert loaded.entries == (card, said("next").entry)
    shown = screen(loaded.entries)
    assert isinstance(shown[0].card, UnknownCard)


async def test_an_entry_that_could_not_be_read_back_is_refused(path: Path) -> None:
    conversation = Conversation()
    with SqliteConversationStore(path) as store:
        await store.create(conversation)
        with pytest.raises(
            UsageError, match=r"^an entry of \d+ characters is over the limit of 33554432; cut it$"
        ):
            await store.append(conversation.id, [said("a"), said("x" * (32 * 1024 * 1024))])
        with pytest.raises(UsageError, match="has settings that json cannot hold"):
            await store.update(conversation.id, HeaderChange(settings={"n": LONG_NUMBER}))
        loaded = await store.load(conversation.id)
    assert (loaded.header, loaded.records) == (conversation.header, ())


async def test_times_come_from_the_clock_and_never_go_back(path: Path) -> None:
    clock = ManualClock(1000.0)
    header = Header(id="a", created=2000, updated=2000)
    with SqliteConversationStore(path, clock=clock) as store:
        await store.create(Conversation(header))
        await store.append("a", [said("x")])
        assert (await store.load("a")).header.updated == 2000
        later = SqliteConversationStore(path, clock=ManualClock(3000.5))
        with later:
            await later.append("a", [said("y"), Truncate(9)])
            await later.append("a", [Truncate(9)])
        assert (await store.load("a")).header.updated == 3000.5


async def test_a_file_opened_for_reading_refuses_every_change(path: Path) -> None:
    conversation_id = await filled(path, "hi")
    before = path.read_bytes()
    with SqliteConversationStore(path, read_only=True) as store:
        assert (await store.load(conversation_id)).entries == (said("hi").entry,)
        for call in (
            store.create(Conversation()),
            store.append(conversation_id, [said("x")]),
            store.update(conversation_id, HeaderChange(title="x")),
            store.delete(conversation_id),
            store.save_draft(conversation_id, "x"),
            store.attach(conversation_id, b"x", name="a", mime="a/b"),
        ):
            with pytest.raises(StoreError, match=r"is open for reading only; open it for writing$"):
                await call
    assert path.read_bytes() == before


def test_reading_asks_for_a_file_that_is_there(path: Path) -> None:
    with pytest.raises(StoreError, match=r"there are no conversations at .*; open it for writing to begin$"):
        SqliteConversationStore(path, read_only=True)
    assert not path.exists()


def a_text(path: Path) -> None:
    path.write_text("dear diary, " * 100)


def another_database(path: Path) -> None:
    change(path, "CREATE TABLE theirs (x)")


def an_empty_database_of_another_program(path: Path) -> None:
    change(path, "PRAGMA application_id = 7")


def a_newer_layout(path: Path) -> None:
    asyncio.run(filled(path, "hi"))
    change(path, "PRAGMA user_version = 99")


def a_torn_file(path: Path) -> None:
    asyncio.run(filled(path, *("x" * 1000 for _ in range(50))))
    path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (a_text, "holds no whole file of conversations; restore it, or choose another path"),
        (another_database, "is a file of another program; choose another path for conversations"),
        (an_empty_database_of_another_program, "is a file of another program; "),
        (a_newer_layout, "was written by a newer dialoom (layout 99); upgrade to use it"),
        (a_torn_file, "holds no whole file of conversations; "),
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_not_ours_is_left_as_it_is(
    path: Path, make: Callable[[Path], None], message: str, read_only: bool
) -> None:
    make(path)
    before = path.read_bytes()
    with pytest.raises(StoreError) as refusal:
        SqliteConversationStore(path, read_only=read_only)
    assert message in str(refusal.value)
    assert path.read_bytes() == before


def test_a_path_that_cannot_be_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(
        StoreError, match=r"file/c.sqlite cannot be used \(.*\); choose another path or free it$"
    ):
        SqliteConversationStore(tmp_path / "file" / "c.sqlite")
    with pytest.raises(StoreError, match=r"cannot be used \(unable to open database file\); check the disk$"):
        SqliteConversationStore(tmp_path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("UPDATE record SET body = '{'", "has a damaged row; restore the file from a copy"),
        ('UPDATE record SET body = \'{"kind": "Text"}\'', "has a damaged row; "),
        (
            "UPDATE conversation SET about = '['",
            "has a damaged row; ",
        ),
        ('UPDATE conversation SET about = \'{"branch_from": ".."}\'', "has a damaged row; "),
        ("UPDATE record SET body = NULL, keep = -1", "has a damaged row; "),
        ("UPDATE record SET body = NULL, keep = 'x'", "has a damaged row; "),
        ("UPDATE record SET body = x'ff'", "has a damaged row; "),
        ("UPDATE record SET key = x'ff'", "has a damaged row; "),
        ("UPDATE conversation SET updated = 'x'", "has a damaged row; "),
        ("UPDATE conversation SET created = x'ff'", "has a damaged row; "),
        ("UPDATE conversation SET title = x'ff'", "has a damaged row; "),
        ("UPDATE conversation SET about = x'ff'", "has a damaged row; "),
        ("UPDATE conversation SET length = 'x'", "has a damaged row; "),
        ("DROP TABLE record", "cannot be used (no such table: record); check the disk"),
    ],
)
async def test_damage_met_while_reading_is_said(path: Path, damage: str, message: str) -> None:
    conversation_id = await filled(path, "hi")
    change(path, damage)
    with SqliteConversationStore(path) as store, pytest.raises(StoreError) as refusal:
        await store.load(conversation_id)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    "damage", ["about = '['", "updated = 'x'", "updated = x'ff'", "updated = 1e300", "title = x'ff'"]
)
async def test_a_listing_leaves_out_a_damaged_header_and_names_it(path: Path, damage: str) -> None:
    damaged = await filled(path, "hi")
    others = [await filled(path, "hi") for _ in range(3)]
    branch = Conversation(Header(id="twig", branch_from=others[0], created=1.0, updated=1.0))
    with SqliteConversationStore(path) as store:
        await store.create(branch)
    change(path, f"UPDATE conversation SET {damage} WHERE id = '{damaged}'")
    with SqliteConversationStore(path) as store:
        listed, cursor = list[str](), None
        while True:
            page = await store.page(query="", cursor=cursor, limit=1)
            listed += [header.id for header in page.headers]
            if (cursor := page.cursor) is None:
                break
        assert sorted(listed) == sorted([*others, "twig"])
        assert [header.id for header in await store.branches(others[0])] == ["twig"]
        told = f"conversation {damaged} has a damaged row; restore the file from a copy"
        assert store.problems == {damaged: told}
        assert {each.id for each in (await store.page(query="hi")).headers} == set(others)
        await store.delete(damaged)
        assert store.problems == {}


async def test_a_file_whose_damage_is_told_in_no_utf_8_is_refused_all_the_same(path: Path) -> None:
    await filled(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET name = CAST(x'ea41' AS TEXT), sql = 'CREATE' WHERE name = 'draft'"
        )
        connection.commit()
    with pytest.raises(StoreError, match="holds no whole file of conversations; restore it, or choose"):
        SqliteConversationStore(path)


async def test_a_damaged_row_harms_no_search_and_no_other_conversation(path: Path) -> None:
    conversation_id = await filled(path, "hi", "kriging")
    change(path, "UPDATE record SET body = '{' WHERE body LIKE '%hi%'")
    change(path, "UPDATE conversation SET indexed = 0")
    change(path, "DELETE FROM word WHERE rowid > 1 << 32")
    change(path, "INSERT INTO unindexed VALUES (1)")
    with SqliteConversationStore(path, read_only=True) as store:
        assert [header.id for header in (await store.page(query="kriging")).headers] == [conversation_id]
    with SqliteConversationStore(path) as store:
        await store.append(conversation_id, [said("go on")])
    assert ask(path, "SELECT words FROM word ORDER BY rowid") == [("",), ("kriging",), ("go on",)]


async def test_a_damaged_attachment_is_said(path: Path) -> None:
    conversation_id = await filled(path)
    with SqliteConversationStore(path) as store:
        kept = await store.attach(conversation_id, b"whole", name="a", mime="a/b")
    assert kept.hash == hashlib.sha256(b"whole").hexdigest()
    change(path, "UPDATE content SET bytes = x'00'")
    damaged = pytest.raises(StoreError, match=f"attachment {kept.hash} is damaged; restore the file")
    with SqliteConversationStore(path) as store, damaged:
        await store.read_attachment(conversation_id, kept.hash)


async def test_a_file_others_keep_locked_is_a_conflict(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_opener, "BUSY_SECONDS", 0.02)
    conversation_id = await filled(path)
    with (
        SqliteConversationStore(path) as store,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ConflictError, match=r"was locked by another process for .* seconds; try again$"):
            await store.append(conversation_id, [said("x")])
        assert (await store.load(conversation_id)).records == ()
        other.execute("ROLLBACK")
        assert await store.append(conversation_id, [said("y")]) == 1


def test_a_new_file_that_others_hold_is_waited_for_and_then_a_conflict(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_opener, "BUSY_SECONDS", 0.05)
    asyncio.run(filled(path))
    change(path, "PRAGMA journal_mode = DELETE")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM record").fetchone()
        with pytest.raises(ConflictError):
            SqliteConversationStore(path)


async def test_a_place_that_cannot_be_written_is_said(path: Path) -> None:
    error = sqlite3.OperationalError("attempt to write a readonly database")
    error.sqlite_errorcode = sqlite3.SQLITE_READONLY
    assert str(CONVERSATIONS.error(error, "c.sqlite")) == (
        "c.sqlite cannot be written; check its permissions"
    )


async def test_a_closed_store_says_so(path: Path) -> None:
    store = SqliteConversationStore(path)
    store.close()
    store.close()
    for call in (store.page(), store.create(Conversation())):
        with pytest.raises(StoreError, match=r"is closed; open it again$"):
            await call
