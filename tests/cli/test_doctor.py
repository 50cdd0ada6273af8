"""The doctor examines a server, writes its profile, and the other commands use it."""

import json
from pathlib import Path

import msgspec
import pytest

from dialoom.base.errors import UsageError
from dialoom.cli.bench import bench
from dialoom.cli.settings import Config, ModelTable
from dialoom.llm import WireProfile
from dialoom.testing.wire import WireReply, WireRequest, WireServer
from tests.cli.terminal import Terminal
from tests.cli.test_ask import said


def prose_only(request: WireRequest) -> WireReply:
    """A server that lists one model, answers everything with prose and ignores what it does not know."""
    if request.method == "GET":
        return WireReply(body=(b'{"data": [{"id": "tiny"}]}',))
    if request.path.endswith("/embeddings"):
        return WireReply(status=501, body=(b"{}",))
    return said("Hello ", "there.")


async def test_a_server_is_examined_and_its_profile_written_and_used(terminal: Terminal) -> None:
    async with WireServer(prose_only) as server:
        words = ("--base-url", f"{server.url}/v1", "--model", "openai:tiny")
        shown = await terminal.run_beside("doctor", *words, "--profile", "tiny.json")
    assert shown.code == 0
    assert "tools" in shown.out
    assert json.loads(Path("tiny.json").read_text(encoding="utf-8"))["tool_mode"] == "off"
    profile = Config(model=ModelTable(profile=Path("tiny.json"))).wire_profile()
    assert profile is not None
    assert profile.tool_mode == "off"


def test_without_a_model_there_is_nothing_to_examine(terminal: Terminal) -> None:
    shown = terminal.run("doctor")
    assert (shown.code, shown.out) == (3, "")
    assert "there is no model to examine; name one with --model" in shown.err


async def test_a_server_that_is_not_there_is_a_finding_and_exit_code_6(terminal: Terminal) -> None:
    async with WireServer([]) as server:
        address = f"{server.url}/v1"
    shown = await terminal.run_beside("doctor", "--base-url", address, "--model", "openai:tiny")
    assert shown.code == 6
    assert "refused" in shown.out


async def test_a_profile_that_cannot_be_written_is_said(terminal: Terminal) -> None:
    async with WireServer(prose_only) as server:
        words = ("--base-url", f"{server.url}/v1", "--model", "openai:tiny")
        shown = await terminal.run_beside("doctor", *words, "--profile", "no/such/folder.json")
    assert shown.code == 5
    assert "cannot write no/such/folder.json" in shown.err


def test_a_profile_is_named_in_the_config_or_refused_by_name(tmp_path: Path) -> None:
    assert Config().wire_profile() is None
    good = tmp_path / "good.json"
    good.write_bytes(msgspec.json.encode(WireProfile(tool_mode="schema")))
    assert Config(model=ModelTable(profile=good)).wire_profile() == WireProfile(tool_mode="schema")
    bad = tmp_path / "bad.json"
    bad.write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match=r"bad\.json is not a profile"):
        Config(model=ModelTable(profile=bad)).wire_profile()
    with pytest.raises(UsageError, match="cannot read the profile"):
        Config(model=ModelTable(profile=tmp_path / "none.json")).wire_profile()


def test_benches_run_from_a_clone_and_are_said_to_be_missing_elsewhere(
    terminal: Terminal, tmp_path: Path
) -> None:
    folder = tmp_path / "bench"
    folder.mkdir()
    here = Path.cwd()
    cases = f"--cases={here / 'c.jsonl'}"
    expected = ["imports", "--json", cases, "--client=my program", f"--client-at={here}", "--most-cuts=0"]
    script = f"import sys; sys.exit(0 if sys.argv[1:] == {expected} else 3)"
    (folder / "__main__.py").write_text(script, encoding="utf-8")
    given = {"cases": [Path("c.jsonl")], "client": "my program", "most_cuts": 0}
    assert bench(["imports"], as_json=True, root=tmp_path, **given) == 0
    assert bench(["other"], as_json=False, root=tmp_path) == 1
    with pytest.raises(UsageError, match="clone the repository and run make bench there"):
        bench([], as_json=False, root=tmp_path / "elsewhere")


def test_a_bench_that_is_not_there_is_answered_with_those_that_are(terminal: Terminal) -> None:
    shown = terminal.run("bench", "nope")
    assert shown.code == 2
    assert shown.err.startswith("dialoom: there is no bench 'nope'; there are: imports")
