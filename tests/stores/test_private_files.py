"""A file that a store makes is for its owner's eyes only; an older one keeps its mode."""

import asyncio
import stat
import sys
from pathlib import Path

import pytest

from dialoom.conversation import Append, Conversation, TextEntry
from dialoom.conversation.store import ListedConversationStore
from dialoom.stores import (
    JsonlCheckpointStore,
    SqliteCheckpointStore,
    SqliteConversationStore,
    SqliteVectorStore,
    YamlConversationStore,
)
from dialoom.testing.checkpoint_contract import checkpoint_after, say

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes of this kind")


def modes(folder: Path) -> dict[str, str]:
    files = [each for each in folder.iterdir() if not each.name.endswith(".lock")]
    return {each.name: f"{stat.S_IMODE(each.stat().st_mode):o}" for each in sorted(files)}


def talk(store: ListedConversationStore) -> str:
    """Keep a conversation, and say something in it afterwards."""
    conversation = Conversation()
    asyncio.run(store.create(conversation))
    asyncio.run(store.append(conversation.id, [Append(TextEntry(role="user", content="hi"))]))
    return conversation.id


def test_what_a_store_makes_can_be_read_by_its_owner_only(tmp_path: Path) -> None:
    with (
        SqliteConversationStore(tmp_path / "chat.sqlite") as conversations,
        SqliteCheckpointStore(tmp_path / "runs.sqlite"),
        JsonlCheckpointStore(tmp_path / "runs.jsonl") as lines,
        SqliteVectorStore(tmp_path / "knowledge.sqlite") as knowledge,
        YamlConversationStore(tmp_path / "talks") as talks,
    ):
        talk(conversations)
        name = talk(talks)
        lines.save(checkpoint_after(None, "c1", say("1")))
        knowledge.snapshot(str(tmp_path / "copy.sqlite"))
        made = modes(tmp_path)
        assert made.pop("talks") != ""
        assert set(made.values()) == {"600"}
        assert {"chat.sqlite", "chat.sqlite-wal", "runs.jsonl", "runs.sqlite", "knowledge.sqlite"} < set(made)
        assert modes(tmp_path / "talks")[f"{name}.yaml"] == "600"


def test_an_older_file_keeps_its_mode(tmp_path: Path) -> None:
    with (
        SqliteConversationStore(tmp_path / "chat.sqlite"),
        YamlConversationStore(tmp_path / "talks") as talks,
    ):
        name = talk(talks)
    older = (tmp_path / "chat.sqlite", tmp_path / "talks" / f"{name}.yaml")
    for each in older:
        each.chmod(0o640)
    with SqliteConversationStore(older[0]) as store, YamlConversationStore(tmp_path / "talks") as talks:
        talk(store)
        asyncio.run(talks.append(name, [Append(TextEntry(role="user", content="more"))]))
    assert {f"{stat.S_IMODE(each.stat().st_mode):o}" for each in older} == {"640"}
