"""Killed while writing, or out of disk: what was acknowledged is there, and the store opens."""

from pathlib import Path
from types import ModuleType

import pytest

from dialoom.base.ids import new_id
from dialoom.stores import YamlConversationStore
from tests.crash import conversation_kills, dialog_kills
from tests.crash.arguments import KILLS, read_arguments
from tests.crash.conversation_kills import run_kills
from tests.crash.full_disk import MOST, NoDiskError, fill, small_disk

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "yaml"])
def test_a_killed_program_loses_no_acknowledged_entry(kind: str, tmp_path: Path) -> None:
    counts = run_kills(kind, tmp_path, 8, seed=8)
    assert (counts.kills, counts.problems) == (8, [])
    assert counts.acknowledged > 0


def test_make_crash_kills_as_often_as_it_says() -> None:
    (line,) = [line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("crash:")]
    assert f"kill -9 at {KILLS} random moments on each store" in line
    assert read_arguments("kills", None, []).kills == KILLS == 300


@pytest.mark.slow
@pytest.mark.parametrize("harness", [conversation_kills, dialog_kills])
def test_the_number_of_kills_is_that_of_each_store(
    harness: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["harness", "--kills", "2", "--seed", "4"])
    assert harness.main() == 0
    *stores, seed = capsys.readouterr().out.splitlines()
    assert [(line.split()[1], line.split()[2:4]) for line in stores] == [
        ("sqlite:", ["2", "kills,"]),
        ("yaml:", ["2", "kills,"]),
    ]
    assert seed.endswith("seed 4")


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
