"""Files of tool servers, in the shapes of other hosts."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.mcp.config import MAX_CONFIG_BYTES, MCPServerConfig
from dialoom.mcp.config_fields import OAuth, Transport
from dialoom.mcp.config_files import (
    ServerFile,
    parse_server_file,
    read_server_file,
    write_server_file,
)

CLAUDE_CODE = {
    "mcpServers": {
        "files": {"command": "npx", "args": ["-y", "server", "/data"], "env": {"LOG": "${LOG:-warn}"}},
        "issues": {
            "type": "http",
            "url": "https://issues.example/mcp",
            "headers": {"Authorization": "Bearer ${ISSUES}"},
            "oauth": {"clientId": "me", "callbackPort": 7000, "scopes": "read write"},
        },
        "old": {"type": "sse", "url": "https://old.example/sse"},
    },
    "theme": "dark",
}
VS_CODE = """{
  // asked for once
  "inputs": [{"id": "key", "type": "promptString",},],
  "servers": {
    "search": {
      "type": "stdio", "command": "node", "args": ["s.js", "http://not.a/comment"], /* both
      lines */ "cwd": "${workspaceFolder}", "env": {"KEY": "${input:key}"}, "envFile": ".env",
    },
  }
}"""


def parsed(document: dict[str, Any]) -> ServerFile:
    return parse_server_file(json.dumps(document))


def test_a_file_of_claude_code_is_read():
    assert parsed(CLAUDE_CODE).servers == (
        MCPServerConfig(
            "files",
            command="npx",
            arguments=["-y", "server", "/data"],
            environment={"LOG": "${LOG:-warn}"},
        ),
        _as_written(
            "http",
            MCPServerConfig(
                "issues",
                url="https://issues.example/mcp",
                headers={"Authorization": "Bearer ${ISSUES}"},
                auth=OAuth(client_id="me", callback_port=7000, scopes=("read", "write")),
            ),
        ),
        MCPServerConfig("old", transport=Transport.SSE, url="https://old.example/sse"),
    )


def _as_written(transport: str, config: MCPServerConfig) -> MCPServerConfig:
    config.from_dict(config.to_dict() | {"transport": transport})
    return config


def test_a_file_of_vs_code_is_read_with_its_comments_and_what_is_not_followed_is_told():
    found = parse_server_file(VS_CODE)
    (config,) = found.servers
    assert (config.name, config.command, config.arguments) == (
        "search",
        "node",
        ("s.js", "http://not.a/comment"),
    )
    assert (config.cwd, config.environment) == ("${workspaceFolder}", {"KEY": "${input:key}"})
    assert (found.shape, found.commented) == ("servers", True)
    assert found.notes == ("mcp server 'search': envFile is not followed; put its variables into env",)
    with pytest.raises(UsageError, match="the file has comments, which would be lost; edit it by hand"):
        found.text_with(found.servers)


@pytest.mark.parametrize(
    ("entry", "transport", "fallback", "enabled"),
    [
        ({"command": "npx"}, Transport.STDIO, False, True),
        ({"url": "https://a.example/mcp"}, Transport.STREAMABLE_HTTP, True, True),
        ({"serverUrl": "https://a.example/mcp"}, Transport.STREAMABLE_HTTP, True, True),
        ({"httpUrl": "https://a.example/mcp", "disabled": True}, Transport.STREAMABLE_HTTP, True, False),
        ({"type": "streamableHttp", "url": "https://a.example/mcp"}, Transport.STREAMABLE_HTTP, False, True),
        ({"type": "sse", "url": "https://a.example/sse", "disabled": False}, Transport.SSE, False, True),
        ({"type": "quic", "url": "https://a.example", "command": "npx"}, Transport.STDIO, False, True),
    ],
)
def test_the_spellings_of_other_hosts(
    entry: dict[str, Any], transport: Transport, fallback: bool, enabled: bool
):
    document = {"mcpServers": {"x": entry}}
    found = parsed(document)
    (config,) = found.servers
    assert (config.transport, config.sse_fallback, config.enabled) == (transport, fallback, enabled)
    assert config.is_valid
    assert json.loads(found.text_with(found.servers)) == document


def test_cursor_writes_a_login_in_capitals():
    entry = {"url": "https://a.example/mcp", "auth": {"CLIENT_ID": "me", "CLIENT_SECRET": "s", "scopes": []}}
    (config,) = parsed({"mcpServers": {"x": entry}}).servers
    assert config.auth == OAuth(client_id="me", client_secret="s")


def test_only_what_changed_is_written_and_in_the_spelling_that_is_there():
    document = {
        "mcpServers": {
            "a": {"serverUrl": "https://a.example", "disabled": False, "alwaysAllow": ["x"], "cwd": "/a"},
            "b": {"command": "npx", "env": {"K": "v"}},
        },
        "other": 1,
    }
    found = parsed(document)
    a, _ = found.servers
    a = a.copy().set_url("https://b.example").set_enabled(False)
    fields = a.to_dict()
    del fields["cwd"]
    a.from_dict(fields)
    new = MCPServerConfig("c", command="uvx", arguments=["server"])
    assert json.loads(found.text_with([a, new])) == {
        "mcpServers": {
            "a": {"serverUrl": "https://b.example", "disabled": True, "alwaysAllow": ["x"]},
            "c": {"command": "uvx", "args": ["server"]},
        },
        "other": 1,
    }


def test_two_servers_of_one_name_are_not_written():
    twins = [MCPServerConfig("x", command="a"), MCPServerConfig("x", command="b")]
    with pytest.raises(UsageError, match="two mcp servers are called 'x'; rename one of them"):
        parsed(CLAUDE_CODE).text_with(twins)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
_KEYS = st.sampled_from(
    [
        "type",
        "transport",
        "command",
        "args",
        "arguments",
        "env",
        "url",
        "serverUrl",
        "disabled",
        "enabled",
        "auth",
    ]
)
_ENTRY = st.dictionaries(_KEYS | st.text(max_size=6), _JSON, max_size=6)


@given(
    st.sampled_from(["mcpServers", "servers"]),
    st.dictionaries(st.text(max_size=6), _ENTRY, max_size=3),
    st.dictionaries(st.text(max_size=6), _JSON, max_size=2),
)
def test_a_file_written_again_is_the_same_document(shape: str, entries: dict[str, Any], more: dict[str, Any]):
    document = {**more, shape: entries}
    found = parsed(document)
    assert json.loads(found.text_with(found.servers)) == document


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{}", 'the file lists no mcp servers; it needs a key "mcpServers" or "servers"'),
        ("[]", "the file is no JSON object: Expected `object`, got `array`; mend it"),
        ("// only a comment", "the file is no JSON object: Input data was truncated; mend it"),
        ('{"servers": []}', "servers is no JSON object; list servers by name"),
        (
            json.dumps({"mcpServers": {str(number): {} for number in range(1001)}}),
            "the file lists 1001 mcp servers; at most 1000 are read",
        ),
    ],
)
def test_a_file_that_lists_nothing_says_why(text: str, told: str):
    with pytest.raises(UsageError) as refused:
        parse_server_file(text)
    assert str(refused.value) == told


def test_an_entry_that_is_none_is_left_out_and_kept():
    read = parsed({"mcpServers": {"x": 1, "files": {"command": "npx"}, "y": None}})
    (files,) = read.servers
    assert (files.name, read.notes) == (
        "files",
        (
            """mcp server 'x' is left out; write it like {"command": "npx"}""",
            """mcp server 'y' is left out; write it like {"command": "npx"}""",
        ),
    )
    again = json.loads(read.text_with([files.set_command("uvx"), MCPServerConfig("y", command="new")]))
    assert again == {"mcpServers": {"x": 1, "files": {"command": "uvx"}, "y": {"command": "new"}}}


def test_files_are_read_and_written_whole(tmp_path: Path):
    path = tmp_path / "new" / "mcp.json"
    first = MCPServerConfig("files", command="npx", arguments=["server", "/my data"])
    write_server_file(path, [first])
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    second = MCPServerConfig("more", transport=Transport.SSE, url="https://a.example/sse")
    write_server_file(path, [*read_server_file(path).servers, second])
    assert read_server_file(path).servers == (first, second)
    assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in path.parent.iterdir()] == ["mcp.json"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path):
    with pytest.raises(
        UsageError, match=r"cannot read .*gone.json: No such file or directory; check the file"
    ):
        read_server_file(tmp_path / "gone.json")
    big, other, empty = tmp_path / "big", tmp_path / "other", tmp_path / "empty"
    big.write_bytes(b" " * (MAX_CONFIG_BYTES + 1))
    other.write_bytes(b'{"mcpServers": "\xff"}')
    empty.write_bytes(b"{}")
    for path, told in [
        (big, "big is larger than 1048576 bytes"),
        (other, "other is not UTF-8 text; save it as that"),
        (empty, "empty: the file lists no mcp servers"),
    ]:
        with pytest.raises(UsageError, match=told):
            read_server_file(path)


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path):
    (tmp_path / "mcp.json").mkdir()
    with pytest.raises(UsageError, match="cannot read"):
        write_server_file(tmp_path / "mcp.json", [])
    assert [each.name for each in tmp_path.iterdir()] == ["mcp.json"]
