"""The YAML store: its contract, files of seed 003's product, and files that hold no conversation."""

import codecs
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dialoom.base.errors import StoreError, UsageError
from dialoom.conversation import (
    Append,
    CardEntry,
    Conversation,
    ConversationNotFoundError,
    Header,
    HeaderChange,
    TextEntry,
    load_yaml,
)
from dialoom.stores import UnreadableFileError, YamlConversationStore, conversation_folder
from dialoom.testing import ManualClock
from dialoom.testing.conversation_contract import ConversationStoreContract

SEED_FILE = """\
sessionId: 3f2b0c1e-0000-4000-8000-000000000001
title: 网格化
createdAt: 2026-11-30T12:00:00.0000000+08:00
updatedAt: 2026-11-30T12:05:00
workflowMode: Guided
entries:
- kind: Text
  role: User
  content: 25
- kind: Special
  type: Table
  payload: |
    type: Table
    title: 结果
"""
SEED_ID = "3f2b0c1e-0000-4000-8000-000000000001"
TABLE = CardEntry(type="Table", payload="type: Table\ntitle: 结果\n")
BOMB = "a: &a [x, x]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "Sessions"


@pytest.fixture
def store(folder: Path) -> Iterator[YamlConversationStore]:
    with YamlConversationStore(folder, clock=ManualClock(2e9)) as store:
        yield store


class TestYamlConversationStore(ConversationStoreContract):
    @pytest.fixture
    def store(self, folder: Path) -> Iterator[YamlConversationStore]:
        self.folder = folder
        self.opened = [YamlConversationStore(folder)]
        yield self.opened[0]
        for store in self.opened:
            store.close()

    async def reopen(self, store: YamlConversationStore) -> YamlConversationStore:
        store.close()
        self.opened.append(YamlConversationStore(self.folder))
        return self.opened[-1]


def said(text: str) -> TextEntry:
    return TextEntry(role="user", content=text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".dialoom.lock")


@pytest.mark.promise("storage-001")
async def test_each_conversation_is_one_file_named_by_its_id(
    folder: Path, store: YamlConversationStore
) -> None:
    header = Header(id="wells", title="Wells", created=0, updated=0, workflow_mode="Guided")
    await store.create(Conversation(header))
    await store.append("wells", [Append(said("画图")), Append(TABLE)])
    await store.create(Conversation(Header(id="maps", created=0, updated=0)))
    assert names(folder) == ["maps.yaml", "wells.yaml"]
    assert load_yaml((folder / "wells.yaml").read_text("utf-8")) == {
        "sessionId": "wells",
        "title": "Wells",
        "createdAt": "1970-01-01T00:00:00.000Z",
        "updatedAt": "2033-05-18T03:33:20.000Z",
        "workflowMode": "Guided",
        "entries": [
            {"kind": "Text", "role": "user", "content": "画图"},
            {"kind": "Special", "type": "Table", "payload": TABLE.payload},
        ],
    }
    await store.delete("wells")
    assert names(folder) == ["maps.yaml"]


async def test_a_file_of_the_seeds_product_is_listed_opened_and_continued(
    folder: Path, store: YamlConversationStore
) -> None:
    (folder / f"{SEED_ID}.yaml").write_bytes(b"\xef\xbb\xbf" + SEED_FILE.replace("\n", "\r\n").encode())
    expected = Header(
        id=SEED_ID,
        title="网格化",
        created=1_796_011_200.0,
        updated=1_796_040_300.0,
        workflow_mode="Guided",
    )
    assert (await store.page()).headers == (expected,)
    assert (await store.load(SEED_ID)).entries == (said("25"), TABLE)
    assert await store.append(SEED_ID, [Append(said("go on"))]) == 3
    assert (await store.load(SEED_ID)).entries == (said("25"), TABLE, said("go on"))


DOTNET_FILE = r"""
sessionId: wells
title: "\ud83d\ude00 网格化"
createdAt: 01/03/2025 10:00:00
updatedAt: 9999-12-31T23:59:59.9999999
entries:
- kind: Text
  role: User
  content: "\uD83D\uDDFA plot \ud83d"
- kind: Text
  role: User
  content: '\ud83d\ude00'
- kind: Special
  type: Table
  payload: |
    type: Table
    title: "\ud83d\ude00"
"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
async def test_a_file_of_dotnet_with_its_escapes_times_and_encodings_is_continued_in_utf_8(
    folder: Path, store: YamlConversationStore, encoding: str
) -> None:
    (folder / "wells.yaml").write_bytes(DOTNET_FILE.replace("\n", "\r\n").encode(encoding))
    entries = (
        said("🗺 plot �"),
        said(r"\ud83d\ude00"),
        CardEntry(type="Table", payload='type: Table\ntitle: "\\ud83d\\ude00"\n'),
    )
    loaded = await store.load("wells")
    assert loaded.entries == entries
    assert load_yaml(entries[2].payload) == {"type": "Table", "title": "😀"}
    assert loaded.header == Header(
        id="wells", title="😀 网格化", created=1_735_898_400.0, updated=253_402_214_400.0
    )
    await store.append("wells", [Append(said("go on 🧭"))])
    written = (folder / "wells.yaml").read_bytes().decode("utf-8").splitlines()
    assert written[2:4] == ['createdAt: "2025-01-03T10:00:00.000Z"', 'updatedAt: "9999-12-31T00:00:00.000Z"']
    assert (await store.load("wells")).entries == (*entries, said("go on 🧭"))
    assert names(folder) == ["wells.yaml"]


async def test_what_a_file_does_not_say_comes_from_its_name_and_date(
    folder: Path, store: YamlConversationStore
) -> None:
    path = folder / "notes.yaml"
    path.write_text("sessionId: another\nentries:\n- {kind: Text, role: user, content: hi}\n")
    os.utime(path, (1.7e9, 1.7e9))
    expected = Header(id="notes", created=1.7e9, updated=1.7e9)
    assert (await store.page()).headers == (expected,)
    loaded = await store.load("notes")
    assert (loaded.header, loaded.entries) == (expected, (said("hi"),))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the document is not a mapping"),
        (SEED_FILE.encode()[:150], "not readable as yaml: line 6: could not find expected ':'"),
        (SEED_FILE.encode()[: SEED_FILE.index("payload")], "entries[1]: not an entry of a conversation"),
        (b"\x00" * 100, "not readable as yaml"),
        (b"title: \xff\xfe", "it is not utf-8 at byte 7; save it as utf-8"),
        (
            "title: 网格化".encode("gb18030"),
            "it is not utf-8 at byte 7 but perhaps gb18030; save it as utf-8",
        ),
        (
            "title: für alle".encode("cp1252"),
            "it is not utf-8 at byte 8 but perhaps gb18030; save it as utf-8",
        ),
        (codecs.BOM_UTF16_LE + b"a", "it is not utf-16 at byte 2; save it as utf-8"),
        (codecs.BOM_UTF16_BE + b"\xd8\x3d\x00a", "it is not utf-16 at byte 2; save it as utf-8"),
        (
            "title: a".encode("utf-16-le"),
            "it is not utf-8 but perhaps utf-16 without its mark; save it as utf-8",
        ),
        (BOMB.encode(), "yaml line 2 has an alias; write the value out"),
        (b"entries: 5", "entries is not a list"),
        (b"title: [a]", "title is not text; quote it"),
        (b"createdAt: soon", "'soon' is no time"),
        (b"a: " + b"[" * 100 + b"]" * 100, "yaml line 1 has more than 64 levels"),
    ],
)
async def test_a_file_that_holds_no_conversation_is_kept_under_another_name_and_reported(
    folder: Path, store: YamlConversationStore, content: bytes, reason: str
) -> None:
    await store.create(Conversation(Header(id="whole", created=0, updated=0)))
    for call in (
        lambda: store.load("torn"),
        lambda: store.append("torn", [Append(said("x"))]),
        lambda: store.update("torn", HeaderChange(title="x")),
        lambda: store.window("torn"),
    ):
        (folder / "torn.yaml").write_bytes(content)
        with pytest.raises(UnreadableFileError) as refusal:
            await call()
        assert str(refusal.value).startswith(f"conversation torn cannot be read ({reason}")
        kept = str(refusal.value).partition("its file is kept as ")[2].partition(": repair it and")[0]
        assert (folder / kept).read_bytes() == content
    assert names(folder) == [
        *("torn.yaml.unreadable", "torn.yaml.unreadable-2", "torn.yaml.unreadable-3"),
        *("torn.yaml.unreadable-4", "whole.yaml"),
    ]
    with pytest.raises(ConversationNotFoundError):
        await store.load("torn")
    assert [header.id for header in (await store.page()).headers] == ["whole"]


async def test_a_listing_reports_what_it_leaves_out(
    folder: Path, store: YamlConversationStore, caplog: pytest.LogCaptureFixture
) -> None:
    await store.create(Conversation(Header(id="whole", title="wells", created=0, updated=0)))
    (folder / "torn.yaml").write_text("title: []", "utf-8")
    (folder / "my notes.yaml").write_text("title: private words", "utf-8")
    (folder / "folder.yaml").mkdir()
    (folder / "nowhere.yaml").symlink_to(folder / "gone")
    (folder / ".hidden.yaml").write_text("x")
    os.mkfifo(folder / "pipe.yaml")
    with caplog.at_level(logging.WARNING):
        for query in ("", "wells", ""):
            assert [header.id for header in (await store.page(query=query)).headers] == ["whole"]
    problems = store.problems
    assert {name: reason.split(";")[0] for name, reason in problems.items()} == {
        "torn.yaml": "conversation torn cannot be read (title is not text",
        "my notes.yaml": "'my notes' cannot name a conversation",
        "folder.yaml": f"{folder / 'folder.yaml'} is not a regular file",
        "nowhere.yaml": f"{folder / 'nowhere.yaml'} is not a regular file",
        "pipe.yaml": f"{folder / 'pipe.yaml'} is not a regular file",
    }
    assert len(caplog.records) == len(problems)
    assert "private words" not in caplog.text
    assert (folder / "torn.yaml.unreadable").read_text("utf-8") == "title: []"
    (folder / "torn.yaml").write_text("title: mended", "utf-8")
    assert {header.title for header in (await store.page()).headers} == {"wells", "mended"}
    assert "torn.yaml" not in store.problems
    with pytest.raises(StoreError, match=r"pipe.yaml is not a regular file; move it away"):
        await store.load("pipe")


async def test_a_listing_reads_again_what_changed(folder: Path, store: YamlConversationStore) -> None:
    await store.create(Conversation(Header(id="a", title="one", created=0, updated=0)))
    assert [header.title for header in (await store.page()).headers] == ["one"]
    text = (folder / "a.yaml").read_text("utf-8")
    (folder / "a.yaml").write_text(text.replace("one", "another"), "utf-8")
    assert [header.title for header in (await store.page()).headers] == ["another"]
    (folder / "a.yaml").unlink()
    assert (await store.page()).headers == ()


async def test_a_file_gone_while_a_folder_is_listed_is_no_problem(
    folder: Path, store: YamlConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.create(Conversation(Header(id="a", created=0, updated=0)))
    scan = conversation_folder.scan_folder

    def scan_and_delete(where: Path) -> Iterator[tuple[str, conversation_folder.Signature | None]]:
        found = list(scan(where))
        (where / "a.yaml").unlink()
        yield from found

    monkeypatch.setattr("dialoom.stores.yaml_conversations.scan_folder", scan_and_delete)
    assert (await store.page()).headers == ()
    assert store.problems == {}


async def test_a_conversation_too_large_to_be_read_back_is_not_written(
    folder: Path, store: YamlConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.create(Conversation(Header(id="a", created=0, updated=0)))
    before = (folder / "a.yaml").read_bytes()
    monkeypatch.setattr(conversation_folder, "MAX_CHARS", 1000)
    with pytest.raises(
        StoreError, match=r"^conversation a has \d+ characters, over the limit of a yaml file; go on"
    ):
        await store.append("a", [Append(said("x" * 1000))])
    monkeypatch.setattr(conversation_folder, "MAX_CHARS", 32 * 1024 * 1024)
    monkeypatch.setattr(conversation_folder, "MAX_NODES", 100)
    nodes = TextEntry(role="user", content="x", meta={"n": [0] * 100})
    with pytest.raises(
        StoreError, match=r"^conversation a cannot be kept as yaml: yaml line .* has more than 100 nodes"
    ):
        await store.append("a", [Append(nodes)])
    assert (folder / "a.yaml").read_bytes() == before
    assert names(folder) == ["a.yaml"]


async def test_a_file_over_the_limits_is_refused_where_it_lies(
    folder: Path, store: YamlConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.yaml").write_text(f"title: {'é' * 600}", "utf-8")
    for limit, size in (("MAX_CHARS", "607 characters"), ("_MAX_BYTES", "1207 bytes")):
        monkeypatch.setattr(conversation_folder, limit, 500)
        with pytest.raises(StoreError, match=f"^conversation a has {size}, over the limit of a yaml file"):
            await store.load("a")
    assert names(folder) == ["a.yaml"]


async def test_names_for_unreadable_files_run_out_one_day(
    folder: Path, store: YamlConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_folder, "_MAX_SET_ASIDE", 2)
    (folder / "a.yaml.unreadable").write_text("older")
    (folder / "a.yaml").write_text("[]")
    with pytest.raises(StoreError, match=r"keeps 2 unreadable files of a.yaml; remove some$"):
        await store.load("a")
    assert (folder / "a.yaml").read_text() == "[]"


async def test_a_write_that_fails_leaves_the_file_as_it_was(
    folder: Path, store: YamlConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.create(Conversation(Header(id="a", created=0, updated=0)))
    before = (folder / "a.yaml").read_bytes()

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(StoreError, match=r"cannot be used \(input/output error\); choose another folder"):
            await store.append("a", [Append(said("x"))])
    assert (folder / "a.yaml").read_bytes() == before
    assert names(folder) == ["a.yaml"]


def test_a_folder_that_cannot_be_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(
        StoreError, match=r"file cannot be used \(file exists\); choose another folder or free it$"
    ):
        YamlConversationStore(tmp_path / "file")


async def test_a_large_payload_and_awkward_words_are_kept(store: YamlConversationStore) -> None:
    card = CardEntry(type="Table", payload="type: Table\ntitle: " + "x" * 10_000_000)
    await store.create(Conversation(Header(id="a", created=0, updated=0)))
    await store.append("a", [Append(card), Append(said("no"), "yes")])
    assert (await store.load("a")).records == (Append(card), Append(said("no"), "yes"))


async def test_a_closed_store_says_so(folder: Path) -> None:
    store = YamlConversationStore(folder)
    store.close()
    store.close()
    for call in (store.page(), store.create(Conversation())):
        with pytest.raises(StoreError, match=r"is closed; open it again$"):
            await call
    with pytest.raises(UsageError):
        await store.load("../a")
