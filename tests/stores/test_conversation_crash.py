"""Killed while writing, or out of disk: what was acknowledged is there, and the store opens."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dialoom.base.errors import StoreError
from dialoom.base.ids import new_id
from dialoom.conversation import Append, Conversation, TextEntry
from dialoom.stores import YamlConversationStore
from tests.crash.conversation_kills import run_kills
from tests.crash.conversation_writer import open_store


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "yaml"])
def test_a_killed_program_loses_no_acknowledged_entry(kind: str, tmp_path: Path) -> None:
    counts = run_kills(kind, tmp_path, 8, seed=8)
    assert (counts.kills, counts.problems) == (8, [])
    assert counts.acknowledged > 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "dialoom", disk],
        check=False,
        capture_output=True,
        text=True,
    )
    if mounted.returncode:
        pytest.skip(
            f"NOT TESTED: a full disk; mounting a tmpfs is not allowed here: {mounted.stderr.strip()}"
        )
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("kind", ["sqlite", "yaml"])
async def test_a_full_disk_is_said_and_takes_nothing_that_was_acknowledged(
    kind: str, small_disk: Path
) -> None:
    conversation = Conversation()
    entries: list[TextEntry] = []
    with open_store(kind, small_disk) as store:
        await store.create(conversation)
        with pytest.raises(StoreError, match="is full; free some space, then try again"):
            for at in range(1000):
                entry = TextEntry(role="user", content=f"{at} " + "x" * 10_000)
                await store.append(conversation.id, [Append(entry)])
                entries.append(entry)
        assert 10 < len(entries) < 1000
        assert (await store.load(conversation.id)).entries == tuple(entries)
    with open_store(kind, small_disk) as store:
        assert (await store.load(conversation.id)).entries == tuple(entries)
        assert [header.id for header in (await store.page()).headers] == [conversation.id]


async def test_what_a_killed_program_left_half_written_is_swept_away(tmp_path: Path) -> None:
    (tmp_path / f".abc.{new_id()}.tmp").write_text("sessionId: ab")
    (tmp_path / ".notes.tmp").write_text("not ours")
    with YamlConversationStore(tmp_path) as store:
        assert (await store.page()).headers == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".dialoom.lock", ".notes.tmp"]
