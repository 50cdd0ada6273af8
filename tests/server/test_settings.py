"""What a server may be set to, and how it is started from a terminal."""

import socket
from pathlib import Path

import pytest

from dialoom.base.errors import StoreError, UsageError
from dialoom.cli.app import run
from dialoom.cli.exits import ExitCode
from dialoom.cli.serve_kit import add_kit, own_kit
from dialoom.conversation import MemoryConversationStore
from dialoom.dialog import Center, Kit, Prompt, Skill, Stores
from dialoom.graph import MemoryCheckpointStore
from dialoom.mcp import MCPServerConfig
from dialoom.server import RateLimit, ServerSettings
from dialoom.server.rate import Buckets
from dialoom.server.serving import listen
from dialoom.server.tokens import Doorkeeper, load_token
from dialoom.testing.clock import ManualClock

TOKEN = "a token of sixteen or more"


def chosen(**fields: object) -> ServerSettings:
    return ServerSettings(**{"token": TOKEN, "data": Path("data"), **fields})  # pyright: ignore[reportArgumentType] - wrong ones too


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"token": "short"}, "16 or more printable"),
        ({"token": "x" * 20 + "\n"}, "16 or more printable"),
        ({"port": 70_000}, "70000 is no port"),
        ({"host": "0.0.0.0"}, "name the hosts people use"),
        ({"host": "192.168.1.5"}, "name the hosts people use"),
        ({"host": "chat.example.org"}, "name the hosts people use"),
        ({"allowed_hosts": ("https://chat.example.org",)}, "is no host"),
        ({"allowed_hosts": ("chat.example.org:99999",)}, "is no host"),
        ({"allowed_hosts": ("*",)}, "is no host"),
        ({"max_streams": 0}, "0 streams leave none of 1500 connections for calls"),
        ({"max_connections": 1_000}, "1000 streams leave none of 1000 connections for calls"),
    ],
)
def test_what_would_leave_a_server_open_or_unreachable_is_refused(
    fields: dict[str, object], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        chosen(**fields)


def test_each_way_to_a_server_has_its_hosts_origins_and_address() -> None:
    local = chosen()
    assert local.hosts == {"127.0.0.1:8321", "localhost:8321", "[::1]:8321"}
    assert local.origins == {f"http://{host}" for host in local.hosts}
    assert (local.url, local.cookie) == ("http://127.0.0.1:8321", "dialoom_8321")
    assert chosen(host="::1").url == "http://[::1]:8321"
    assert "localhost" in chosen(port=80).hosts
    for host in ("127.0.0.2", "wells.localhost", "::ffff:127.0.0.1"):
        named = chosen(host=host)
        assert named.hosts == local.hosts | {named.url.removeprefix("http://")}
    public = chosen(host="0.0.0.0", allowed_hosts=("chat.example.org", "[2001:db8::1]:8321"), secure=True)
    assert public.hosts == {"0.0.0.0:8321", "chat.example.org", "[2001:db8::1]:8321"}
    assert "https://chat.example.org" in public.origins
    assert public.url == "https://chat.example.org"
    assert TOKEN not in repr(public)


@pytest.mark.parametrize(("per_second", "burst"), [(0, 1), (1, 0), (-1, 5)])
def test_a_limit_that_lets_nothing_through_is_refused(per_second: float, burst: int) -> None:
    with pytest.raises(UsageError, match="a rate limit needs"):
        RateLimit(per_second, burst)


async def test_a_bucket_fills_again_and_callers_that_rested_longest_are_forgotten() -> None:
    clock = ManualClock()
    buckets = Buckets(RateLimit(2, 2), clock=clock)
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 0.5]
    assert buckets.take("b") == 0
    await clock.advance(0.5)
    assert [buckets.take("a"), buckets.take("a")] == [0, 0.5]
    for at in range(10_001):
        buckets.take(f"crowd {at}")
    assert [buckets.take("a"), buckets.take("a")] == [0, 0]


def test_a_token_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new/token"
    token = load_token(path)
    assert (len(token) >= 32, load_token(path)) == (True, token)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    path.write_text("half\n")
    with pytest.raises(StoreError, match="token holds no token; remove it, and a new one is made"):
        load_token(path)
    path.write_bytes(b"\xff")
    with pytest.raises(StoreError, match="cannot be used"):
        load_token(path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be used"):
        load_token(tmp_path / "file/token")


async def test_a_link_ends_when_it_is_used_when_it_is_old_and_when_too_many_follow() -> None:
    clock = ManualClock()
    door = Doorkeeper(TOKEN, session_seconds=60, clock=clock)
    first = door.new_link()
    assert [door.use_link(first), door.use_link(first), door.use_link("")] == [True, False, False]
    old = door.new_link()
    await clock.advance(25 * 3600)
    assert door.use_link(old) is False
    pushed = door.new_link()
    for _ in range(100):
        door.new_link()
    assert door.use_link(pushed) is False


def test_no_half_of_an_answer_waits_for_the_other_to_be_acknowledged() -> None:
    with listen(chosen(port=0)) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_a_place_that_is_taken_is_told() -> None:
    with listen(chosen(port=0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StoreError, match=f"cannot listen at 127.0.0.1:{port} .*; choose another --port"):
            listen(chosen(port=port))


def test_an_address_that_others_reach_needs_a_token_of_ones_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DIALOOM_SERVER_TOKEN", raising=False)
    assert run(["serve", "--host", "0.0.0.0", "--offline"]) is ExitCode.USAGE
    assert "set DIALOOM_SERVER_TOKEN to a secret of your own first" in capsys.readouterr().err
    monkeypatch.setenv("DIALOOM_SERVER_TOKEN", TOKEN)
    assert run(["serve", "--host", "0.0.0.0", "--offline"]) is ExitCode.USAGE
    assert "name the hosts people use" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("place", "content", "told"),
    [
        ("", "a file", "nothing can be kept in {} (file exists); choose another --data"),
        ("token", "", "--data {} cannot be used: the token file {}/token holds no token; remove it"),
        ("conversations.sqlite", "not ours", "--data {} cannot be used: {}/conversations.sqlite holds no"),
        ("settings.json", "{", "--data {} cannot be used: the settings {}/settings.json cannot be read"),
    ],
)
def test_a_folder_that_cannot_be_used_is_told_by_its_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str, content: str, told: str
) -> None:
    data = tmp_path / "data"
    (data / place).parent.mkdir(exist_ok=True)
    (data / place).write_text(content)
    code = run(["serve", "--offline", "--port", "0", "--data", str(data)])
    assert code is ExitCode.INDEX
    assert told.replace("{}", str(data)) in capsys.readouterr().err


TOO_LONG = "an approval cannot wait 10000000000.0 s; give more than 0 and at most 3162240000"
NONE_LEFT = "9 streams leave none of 9 connections for calls"


@pytest.mark.parametrize(
    ("words", "file", "variables", "told"),
    [
        ("--approval-seconds 1e10", "", {}, TOO_LONG),
        ("", "[serve]\napproval_seconds = 1e10", {}, TOO_LONG),
        ("", "", {"DIALOOM_SERVE_APPROVAL_SECONDS": "1e10"}, TOO_LONG),
        ("--max-streams 9 --max-connections 9", "[serve]\nmax_streams = 3", {}, NONE_LEFT),
        ("--max-streams 9", "[serve]\nmax_connections = 9\nmax_streams = 3", {}, NONE_LEFT),
        ("", "max_connections = 9", {"DIALOOM_SERVE_MAX_STREAMS": "9"}, NONE_LEFT),
        ("--max-streams 0", "", {}, "--max-streams"),
        ("", "[serve]\nmax_streams = 0", {}, "max_streams"),
        (
            "",
            "[serve]\nmax_stream = 5",
            {},
            "[serve] has no setting 'max_stream', perhaps max_streams is meant",
        ),
    ],
)
def test_the_bounds_of_a_server_are_flags_and_settings_and_refused_when_they_leave_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    file: str,
    variables: dict[str, str],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dialoom.toml").write_text(file)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert run(["serve", "--offline", "--port", "0", *words.split()]) is ExitCode.USAGE
    assert told in capsys.readouterr().err


def test_an_empty_name_of_a_folder_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["serve", "--offline", "--data", ""]) is ExitCode.USAGE
    assert "--data is empty; name a file or folder" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_persons_own_skills_and_prompts_are_offered_and_no_tool_server_of_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert own_kit() == Kit()
    center = Center(Stores(MemoryConversationStore(), MemoryCheckpointStore()))
    center.add_skill(Skill(name="brief", description="Answers in one line."))
    center.add_prompt(Prompt(name="ask", template="How deep is {{ well }}?"))
    center.add_mcp(MCPServerConfig("wells").set_command("wells"))
    center.save_settings(tmp_path / "dialoom/center.json")
    other = Center(Stores(MemoryConversationStore(), MemoryCheckpointStore()))
    add_kit(other, own_kit())
    assert (other.skills, other.prompts, other.mcps) == (center.skills, center.prompts, ())
