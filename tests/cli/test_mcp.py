"""Tool servers from the terminal: listed, approved, tested, called; and dialoom as one."""

import asyncio
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp.client.stdio import StdioServerParameters

from dialoom.base.errors import UsageError
from dialoom.cli.mcp import MOST_NAMES, listed
from dialoom.cli.mcp_export import exported_tools
from dialoom.cli.mcp_serve import place_of
from dialoom.mcp import BearerAuth, MCPClient, McpError, MCPServerConfig, Transport
from dialoom.mcp.asking import fields_of
from dialoom.mcp.results import observation_of
from mcp import Client
from tests.cli.terminal import Terminal

HOSTILE = Path(__file__).parents[1] / "mcp" / "hostile_stdio.py"

TOOLS = '''
from dialoom.agent import ReActAgent
from dialoom.graph import END, START, GraphBuilder
from dialoom.llm import MockProvider
from dialoom.tools import ToolRegistry, tool

@tool
def shout(words: str) -> str:
    """Say it loud."""
    print("not for the protocol")
    return words.upper() + "!"

@tool
def fail() -> str:
    """Fail."""
    raise ValueError("it broke")

both = ToolRegistry([shout, fail])
builder = GraphBuilder("double")
builder.add_channel("n", type=int, default=0)
builder.add_node("double", lambda ctx: {"n": 2 * ctx.state["n"]})
builder.add_edge(START, "double")
builder.add_edge("double", END)
graph = builder.build()
agent = ReActAgent(MockProvider().queue_text("hello"), name="greeter")
everything = [both, (graph, agent)]
number = 7
'''


OLDER = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the settings of the person at the terminal are."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.delenv("DIALOOM_MCP_TOKEN", raising=False)
    return tmp_path / "settings" / "dialoom"


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "own_tools.py"
    path.write_text(TOOLS, encoding="utf-8")
    return path


def list_in(path: Path, **servers: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")


def test_servers_are_listed_with_their_state_and_nothing_is_started(
    terminal: Terminal, settings: Path
) -> None:
    list_in(settings / "mcp.json", mine={"command": "npx"})
    list_in(
        Path(".mcp.json"),
        theirs={"command": "rm"},
        web={"url": "https://u:p@a.example/mcp?key=s3cret"},
        off={"command": "npx", "disabled": True},
        half={"type": "sse"},
        mine={"command": "rm"},
        far={"command": "npx", "envFile": ".env"},
    )
    shown = terminal.run("mcp", "list")
    own = str(settings / "mcp.json")
    assert [line.split() for line in shown.out.splitlines()] == [
        ["mine", "ready", "npx", own],
        ["theirs", "not", "approved", "rm", ".mcp.json"],
        ["web", "not", "approved", "https://a.example/mcp", ".mcp.json"],
        ["off", "disabled", "npx", ".mcp.json"],
        ["half", "invalid:", "url:", "is", "no", "absolute", "http", "or", "https", "address", ".mcp.json"],
        ["far", "not", "approved", "npx", ".mcp.json"],
    ]
    assert shown.err == (
        "dialoom: .mcp.json: mcp server 'far': envFile is not followed; put its variables into env\n"
    )


def test_without_any_server_it_is_told_where_to_put_one(terminal: Terminal, settings: Path) -> None:
    shown = terminal.run("mcp", "list")
    assert (shown.code, shown.out) == (0, "")
    assert shown.err == (
        f"dialoom: no mcp server is listed; put a file .mcp.json here, or {settings / 'mcp.json'}\n"
    )
    assert (
        terminal.run("mcp", "test").err == "dialoom: there is no mcp server to test; see dialoom mcp list\n"
    )


def test_a_server_of_a_project_is_approved_once_it_was_seen(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_in(Path(".mcp.json"), theirs={"command": "rm", "args": ["-rf", "my files"]})
    told = "theirs of .mcp.json would run rm -rf 'my files'\n"
    refused = terminal.run("mcp", "trust", "theirs")
    assert (refused.code, refused.out) == (2, told)
    assert "nobody can be asked here; add --yes once you have read what it would run" in refused.err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: "n")
    assert terminal.run("mcp", "trust", "theirs") == (1, told, "dialoom: not approved\n")
    monkeypatch.setattr("builtins.input", lambda _: "y")
    assert terminal.run("mcp", "trust", "theirs").out == told + "theirs is approved as it is now\n"
    assert "ready" in terminal.run("mcp", "list").out
    assert terminal.run("mcp", "trust", "theirs", "--revoke").out == "theirs is no longer approved\n"
    assert terminal.run("mcp", "trust", "theirs", "--revoke").out == "theirs is not approved\n"
    assert terminal.run("mcp", "trust", "gone").err == (
        "dialoom: there is no mcp server 'gone'; listed are: theirs\n"
    )


def test_ones_own_servers_need_no_approval(terminal: Terminal, settings: Path) -> None:
    list_in(settings / "mcp.json", mine={"command": "npx"})
    for words in (("mcp", "trust", "mine"), ("mcp", "trust", "mine", "--config", str(settings / "mcp.json"))):
        assert terminal.run(*words).out == "mine is one of your own servers and needs no approval\n"


def test_servers_are_tested_all_at_once_and_each_says_what_it_has_or_lacks(
    terminal: Terminal, settings: Path, tmp_path: Path
) -> None:
    list_in(
        settings / "mcp.json",
        good=small_server(tmp_path, "pages"),
        partly=small_server(tmp_path, "bad-tools"),
        dying={"command": sys.executable, "args": ["-c", "import sys; sys.exit('no key')"]},
        unset={"command": "${NOT_SET_ANYWHERE}"},
        off={"command": "npx", "disabled": True},
    )
    list_in(Path(".mcp.json"), theirs={"command": "rm"})
    shown = terminal.run("mcp", "test")
    lines = [line for line in shown.out.splitlines() if line.startswith("good")]
    others = {line.partition(":")[0]: line.partition(": ")[2] for line in shown.out.splitlines()}
    names = ", ".join(f"tool-{page}-{each}" for page in range(4) for each in range(3))
    assert shown.code == 1
    assert lines[0].startswith("good: ok, hostile 1, protocol 2025-11-25, 12 tools, 0 resources, 0 prompts, ")
    assert lines[1:] == [f"good: tools: {names}"]
    assert "partly: left out tool lost: tools.0.inputSchema: Field required\n" in shown.out
    assert "partly: left out tool without a name: tools.0.name: Field required\n" in shown.out
    assert "    no key" in shown.out.splitlines()
    assert others["dying"].startswith("the connection was lost; it ended with code 1, saying: no key; ")
    assert "NOT_SET_ANYWHERE, which is not set" in others["unset"]
    assert "was not approved" in others["theirs"]
    assert "off" not in others


@pytest.mark.parametrize("words", [("test",), ("serve", "--export", "own_tools.py:shout")])
def test_whose_reader_has_left_ends_in_silence(
    terminal: Terminal,
    settings: Path,
    tools: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    list_in(settings / "mcp.json", good=small_server(tmp_path))
    asks, asked = os.pipe()
    gone, answers = os.pipe()
    os.close(gone)
    with os.fdopen(asked, "w") as theirs:
        theirs.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": OLDER}) + "\n")
    with os.fdopen(asks) as stdin, os.fdopen(answers, "w") as stdout:
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr("sys.stdout", stdout)
        shown = terminal.run("mcp", *words)
        with suppress(BrokenPipeError):
            stdout.close()
    assert (shown.code, shown.err.removeprefix("1 tool: shout\n")) == (0, "")


def test_of_many_names_the_first_are_shown() -> None:
    names = [f"tool{number}" for number in range(MOST_NAMES + 2)]
    assert listed(names) == ", ".join(names[:MOST_NAMES]) + " and 2 more"


def small_server(folder: Path, *switches: str) -> dict[str, Any]:
    """A server that starts at once and has a tool for each way to answer."""
    log = str(folder / "hostile.log")
    return {"command": sys.executable, "args": [str(HOSTILE), *switches], "env": {"HOSTILE_LOG": log}}


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("echo", '{"word": "退款"}'), 0, '{"word": "\\u9000\\u6b3e"}\n'),
        (("failing",), 1, "it did not work\n"),
        (("empty",), 0, '{"kept":true}\n'),
        (("both",), 0, "kept it\n"),
    ],
)
def test_a_tool_is_called_and_its_answer_printed(
    terminal: Terminal, settings: Path, tmp_path: Path, words: tuple[str, ...], code: int, told: str
) -> None:
    list_in(settings / "mcp.json", good=small_server(tmp_path))
    shown = terminal.run("mcp", "call", "good", *words)
    assert (shown.code, shown.out) == (code, told)


def test_a_tool_that_is_not_there_is_told_with_those_that_are(
    terminal: Terminal, settings: Path, tmp_path: Path
) -> None:
    list_in(settings / "mcp.json", good=small_server(tmp_path), broken=small_server(tmp_path, "pages"))
    told = "dialoom: good lists no tool '{}'; it has: echo\n"
    shown = terminal.run("mcp", "call", "good", "gone")
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.startswith(told.format("gone"))
    assert "no such tool" in shown.err
    assert terminal.run("mcp", "call", "good", "failing").err == told.format("failing")
    assert told.format("refused") in terminal.run("mcp", "call", "good", "refused").err
    assert "lists no tool" not in terminal.run("mcp", "call", "broken", "tool-0-0").err
    crashed = terminal.run("mcp", "call", "good", "crash")
    assert "it ended with code 3" in crashed.err
    assert "lists no tool" not in crashed.err


def test_a_result_is_printed_as_it_came(terminal: Terminal, settings: Path, tmp_path: Path) -> None:
    list_in(settings / "mcp.json", good=small_server(tmp_path))
    whole = terminal.run("mcp", "call", "good", "both", "--json")
    assert (whole.code, json.loads(whole.out)["structuredContent"]) == (0, {"kept": True})


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("[]", "the arguments are no JSON object: Expected `object`, got `array`; write them like"),
        ("{", "the arguments are no JSON object: Input data was truncated"),
        (" " * 1_048_577, "the arguments are longer than 1048576 characters; shorten them"),
    ],
)
def test_arguments_that_are_none_are_refused_before_anything_starts(
    terminal: Terminal, arguments: str, told: str
) -> None:
    shown = terminal.run("mcp", "call", "any", "tool", arguments)
    assert (shown.code, told in shown.err) == (2, True)


def test_a_server_that_cannot_be_used_is_not_started(terminal: Terminal, settings: Path) -> None:
    list_in(settings / "mcp.json", half={"type": "sse"})
    assert terminal.run("mcp", "call", "half", "x").err == (
        "dialoom: mcp server 'half' cannot be used: url: is no absolute http or https address\n"
    )


async def test_the_official_client_uses_dialoom_as_a_server(docs: Path, tmp_path: Path, tools: Path) -> None:
    arguments = ["-m", "dialoom", "mcp", "serve", "--docs", "docs", "--offline", "--export", f"{tools}:shout"]
    server = StdioServerParameters(command=sys.executable, args=arguments, cwd=tmp_path, env=dict(os.environ))
    async with asyncio.timeout(60), Client(server) as client:
        assert [each.name for each in (await client.list_tools()).tools] == [
            "search",
            "fetch",
            "ask",
            "shout",
        ]
        answer = await client.call_tool("ask", {"question": "How long do refunds take?"})
        assert answer.structured_content is not None
        assert "three working days. [1]" in answer.structured_content["answer"]
        assert [each.type for each in answer.content] == ["text", "resource_link"]
        shouted = await client.call_tool("shout", {"words": "hi"})
        assert shouted.structured_content is None
        assert shouted.content[0].text == "HI!"  # pyright: ignore[reportAttributeAccessIssue] - a text block


def test_tools_registries_graphs_agents_and_lists_of_them_are_exported(tools: Path) -> None:
    exported = exported_tools([f"{tools}:everything"])
    assert [each.name for each in exported] == ["shout", "fail", "double", "greeter"]
    assert [each.name for each in exported_tools([f"{tools}:shout", f"{tools}:graph"])] == ["shout", "double"]


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("tools", "'tools' exports nothing; write FILE.py:NAME"),
        ("own_tools.py:", "'own_tools.py:' exports nothing; write FILE.py:NAME"),
        ("own_tools.py:gone", "own_tools.py has no 'gone'; export a name that it defines"),
        (
            "own_tools.py:number",
            "own_tools.py:number is a int; export a tool, a registry, a graph or an agent",
        ),
        ("notes.txt:x", "notes.txt is no Python file; export from one that ends in .py"),
        ("gone.py:x", "there is no file gone.py; export from one that is there"),
        ("broken.py:x", "broken.py cannot be run: ZeroDivisionError: division by zero"),
    ],
)
def test_what_exports_nothing_is_named(
    place: str, told: str, tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.py").write_text("1 / 0", encoding="utf-8")
    Path("notes.txt").write_text("x = 1", encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        exported_tools([place])
    assert str(refused.value).startswith(told)


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        ("localhost:8710", ("localhost", 8710)),
        ("[::1]:9", ("::1", 9)),
        ("example.com:80", None),
        ("127.0.0.1", None),
        ("127.0.0.1:70000", None),
        (":80", None),
    ],
)
def test_an_address_to_serve_at(address: str, parts: tuple[str, int] | None) -> None:
    if parts is None:
        with pytest.raises(UsageError, match="is no address of this machine; write"):
            place_of(address)
    else:
        place = place_of(address)
        assert (place.host, place.port, place.access.token) == (*parts, None)


def test_beyond_this_machine_a_token_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="can be reached by others; set DIALOOM_MCP_TOKEN"):
        place_of("0.0.0.0:80")
    monkeypatch.setenv("DIALOOM_MCP_TOKEN", "")
    assert place_of("127.0.0.1:80").access.token is None
    with pytest.raises(UsageError, match="can be reached by others; set DIALOOM_MCP_TOKEN"):
        place_of("0.0.0.0:80")
    monkeypatch.setenv("DIALOOM_MCP_TOKEN", "secret")
    monkeypatch.setenv("DIALOOM_MCP_HOSTS", "tools.example, 10.0.0.5")
    access = place_of("0.0.0.0:80").access
    assert (access.token, access.hosts) == (
        "secret",
        ("tools.example", "tools.example:*", "10.0.0.5", "10.0.0.5:*"),
    )


def test_with_nothing_to_serve_it_is_told_what_could_be(terminal: Terminal) -> None:
    told = "dialoom: there is nothing to serve; name a folder with --docs, or --export FILE.py:NAME\n"
    assert terminal.run("mcp", "serve") == (2, "", told)


@pytest.mark.slow
async def test_over_http_tools_are_served_to_who_has_the_token(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIALOOM_MCP_TOKEN", "s3cret")
    words = ("-m", "dialoom", "mcp", "serve", "--http", "127.0.0.1:0", "--docs", "docs", "--offline")
    served = await asyncio.create_subprocess_exec(sys.executable, *words, cwd=tmp_path, stderr=PIPE)
    assert served.stderr is not None
    try:
        async with asyncio.timeout(60):
            while not (url := (await served.stderr.readline()).decode().strip()).startswith("http"):
                assert url, "it did not begin to serve"
            config = MCPServerConfig("ours", transport=Transport.STREAMABLE_HTTP, url=url)
            with pytest.raises(McpError) as refused:
                await MCPClient(config).initialize()
            assert refused.value.facts.status == 401
            async with MCPClient(config.copy().set_auth(BearerAuth(token="s3cret"))) as client:
                answer = fields_of(await client.call_tool("ask", {"question": "How long do refunds take?"}))
                assert "three working days" in observation_of(answer, tool="ask").content
                await client.subscribe_resource((await client.resources())[0].uri)
                served.send_signal(signal.SIGINT)  # while a client listens
                _read, *said = (await served.stderr.read()).decode().splitlines()
                code = await served.wait()  # `kill` would take the code of one that ended
                assert said == ["dialoom: interrupted; what was finished before is kept"]
    finally:
        if served.returncode is None:
            served.kill()
        await served.wait()
    assert code in {0, 130}


def test_an_address_in_use_is_told_in_one_line(terminal: Terminal, tools: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        shown = terminal.run("mcp", "serve", "--http", f"127.0.0.1:{port}", "--export", f"{tools}:shout")
    told = f"dialoom: cannot serve at 127.0.0.1:{port}: Address already in use; choose another port"
    assert (shown.code, shown.err.splitlines()) == (2, ["1 tool: shout", told])
