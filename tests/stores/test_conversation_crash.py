"""Killed while writing, or out of disk: what was acknowledged is there, and the store opens."""

from pathlib import Path

import pytest

from dialoom.base.ids import new_id
from dialoom.stores import YamlConversationStore
from tests.crash.conversation_kills import run_kills
from tests.crash.full_disk import MOST, NoDiskError, fill, small_disk


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "yaml"])
def test_a_killed_program_loses_no_acknowledged_entry(kind: str, tmp_path: Path) -> None:
    counts = run_kills(kind, tmp_path, 8, seed=8)
    assert (counts.kills, counts.problems) == (8, [])
    assert counts.acknowledged > 0


@pytest.mark.parametrize("kind", ["sqlite", "yaml"])
async def test_a_full_disk_is_said_and_takes_nothing_that_was_acknowledged(kind: str, tmp_path: Path) -> None:
    try:
        with small_disk(tmp_path) as disk:
            filled = await fill(kind, disk)
    except NoDiskError as error:
        pytest.skip(str(error))
    assert filled.problems == []
    assert 10 < filled.acknowledged < MOST


async def test_what_a_killed_program_left_half_written_is_swept_away(tmp_path: Path) -> None:
    (tmp_path / f".abc.{new_id()}.tmp").write_text("sessionId: ab")
    (tmp_path / ".notes.tmp").write_text("not ours")
    with YamlConversationStore(tmp_path) as store:
        assert (await store.page()).headers == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".dialoom.lock", ".notes.tmp"]
