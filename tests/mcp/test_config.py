"""The description of a tool server: set, read, written, and kept without loss."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.mcp.config import MAX_CONFIG_BYTES, MCPServerConfig
from dialoom.mcp.config_fields import BearerAuth, McpTimeouts, OAuth, Transport

EMPTY = {
    "name": "",
    "transport": "stdio",
    "command": "",
    "arguments": [],
    "environment": {},
    "url": "",
    "headers": {},
    "enabled": True,
    "autoStart": True,
}


def read(fields: dict[str, Any]) -> MCPServerConfig:
    config = MCPServerConfig()
    config.from_dict(fields)
    return config


@pytest.mark.promise("mcpconfig-004")
def test_the_transports_are_numbered():
    assert [(each.name, each.value) for each in Transport] == [
        ("STDIO", 0),
        ("SSE", 1),
        ("STREAMABLE_HTTP", 2),
    ]


@pytest.mark.promise("mcpconfig-008", "mcpconfig-028", "mcpconfig-032", "mcpconfig-040")
def test_a_new_config_is_empty_enabled_started_and_a_child_process():
    config = MCPServerConfig()
    assert config.to_dict() == EMPTY
    assert (config.transport, config.enabled, config.auto_start) == (Transport.STDIO, True, True)


@pytest.mark.promise("mcpconfig-009", "mcpconfig-019")
def test_the_name_is_given_first_and_can_be_changed():
    config = MCPServerConfig("files")
    assert config.name == "files"
    assert config.set_name("papers").name == "papers"


@pytest.mark.promise(
    "mcpconfig-001",
    "mcpconfig-015",
    "mcpconfig-016",
    "mcpconfig-017",
    "mcpconfig-018",
    "mcpconfig-020",
    "mcpconfig-021",
    "mcpconfig-022",
    "mcpconfig-023",
    "mcpconfig-041",
)
def test_settings_are_chained_and_read_back():
    config = MCPServerConfig("both")
    chained = (
        config.set_transport(Transport.SSE)
        .set_command("node")
        .set_arguments(["server.js", "/my data"])
        .set_environment({"MODE": "fast"})
        .set_url("https://tools.example/sse")
        .set_headers({"X-Tenant": "acme"})
        .set_enabled(False)
        .set_auto_start(False)
    )
    assert chained is config
    assert (config.transport, config.command, config.arguments) == (
        Transport.SSE,
        "node",
        ("server.js", "/my data"),
    )
    assert (config.environment, config.headers) == ({"MODE": "fast"}, {"X-Tenant": "acme"})
    assert (config.url, config.enabled, config.auto_start) == ("https://tools.example/sse", False, False)


def test_keywords_say_the_same_as_setters():
    auth = OAuth(client_id="me", scopes=("read",))
    timeouts = McpTimeouts(connect=3, idle=5)
    config = MCPServerConfig(
        "all",
        transport=Transport.STREAMABLE_HTTP,
        url="https://tools.example/mcp",
        cwd="/tmp",
        timeouts=timeouts,
        prefix="t_",
        allow_tools=["a", "b"],
        deny_tools=["b"],
        inherit_env=("PATH",),
        auth=auth,
        sse_fallback=True,
        subscribe=False,
    )
    other = MCPServerConfig("all").set_transport(Transport.STREAMABLE_HTTP)
    other.set_url("https://tools.example/mcp").set_cwd("/tmp").set_timeouts(timeouts).set_prefix("t_")
    other.set_allow_tools(["a", "b"]).set_deny_tools(["b"]).set_inherit_env(("PATH",)).set_auth(auth)
    other.set_sse_fallback(True).set_subscribe(False)
    assert config == other
    assert (config.cwd, config.timeouts, config.prefix, config.auth) == ("/tmp", timeouts, "t_", auth)
    assert (config.allow_tools, config.deny_tools, config.inherit_env) == (("a", "b"), ("b",), ("PATH",))
    assert (config.sse_fallback, config.subscribe) == (True, False)
    assert read(config.to_dict()) == config


def test_what_cannot_be_a_setting_is_refused_at_once():
    unknown: dict[str, Any] = {"comand": "npx"}
    with pytest.raises(UsageError, match="an mcp server has no setting 'comand'; it has command, arguments"):
        MCPServerConfig("x", **unknown)
    with pytest.raises(UsageError, match="arguments of mcp server 'x' is wrong: Expected `array`, got `str`"):
        MCPServerConfig("x").set_arguments("-y server")
    config = MCPServerConfig("x", arguments=["kept"])
    with pytest.raises(UsageError):
        config.set_arguments("-y server")
    with pytest.raises(UsageError):
        config.from_dict({"name": 3, "arguments": ["lost"]})
    assert config == MCPServerConfig("x", arguments=["kept"])
    assert config.arguments == ("kept",)
    text: Any = "sse"
    with pytest.raises(UsageError, match="transport of mcp server 'x' is no Transport"):
        MCPServerConfig("x", transport=text)
    with pytest.raises(UsageError, match="timeout 'idle' of an mcp server is 0; give seconds above 0"):
        McpTimeouts(idle=0)


@pytest.mark.promise("mcpconfig-037", "mcpconfig-038")
def test_switching_the_transport_clears_nothing():
    config = MCPServerConfig("x", command="npx", arguments=["a"], url="https://tools.example/mcp")
    for transport in (Transport.SSE, Transport.STREAMABLE_HTTP, Transport.STDIO):
        config.set_transport(transport)
        assert (config.command, config.arguments, config.url) == ("npx", ("a",), "https://tools.example/mcp")
    fields = config.set_transport(Transport.SSE).to_dict()
    assert (fields["transport"], fields["command"], fields["url"]) == (
        "sse",
        "npx",
        "https://tools.example/mcp",
    )


@pytest.mark.promise("mcpconfig-011", "mcpconfig-012", "mcpconfig-013", "mcpconfig-003", "mcpconfig-010")
def test_an_unknown_transport_counts_as_stdio_and_is_written_back_unchanged():
    fields = {
        **EMPTY,
        "name": "future",
        "transport": "quic",
        "command": "npx",
        "url": "quic://far.example",
        "lanes": {"count": 4},
    }
    config = read(fields)
    assert (config.transport, config.command, config.url) == (Transport.STDIO, "npx", "quic://far.example")
    assert config.to_dict() == fields


@pytest.mark.parametrize("written", ["http", "streamable-http", "streamable_http", "streamableHttp", "HTTP"])
def test_the_ways_others_write_streamable_http_are_read_and_kept(written: str):
    config = read({"name": "x", "transport": written, "url": "https://tools.example/mcp"})
    assert config.transport is Transport.STREAMABLE_HTTP
    assert config.to_dict()["transport"] == written


@pytest.mark.promise("mcpconfig-014", "mcpconfig-024", "mcpconfig-025", "mcpconfig-026")
@pytest.mark.parametrize(
    ("fields", "valid"),
    [
        ({"name": "x", "command": "npx"}, True),
        ({"name": "", "command": "npx"}, False),
        ({"name": " ", "command": "npx"}, False),
        ({"name": "x"}, False),
        ({"name": "x", "url": "https://tools.example"}, False),
        ({"name": "x", "transport": "sse", "url": "https://tools.example/sse"}, True),
        ({"name": "x", "transport": "streamableHttp", "url": "http://127.0.0.1:80/mcp"}, True),
        ({"name": "x", "transport": "sse", "command": "npx"}, False),
        ({"name": "x", "transport": "sse", "url": "/sse"}, False),
        ({"name": "x", "transport": "sse", "url": "ftp://tools.example/sse"}, False),
        ({"name": "x", "transport": "sse", "url": "https:///sse"}, False),
        ({"name": "x", "transport": "quic", "command": "npx"}, True),
        ({"name": "x", "command": "npx", "arguments": "-y"}, False),
    ],
)
def test_from_dict_tells_what_is_valid_tells(fields: dict[str, Any], valid: bool):
    config = MCPServerConfig()
    assert (config.from_dict(fields), config.is_valid) == (valid, valid)


@pytest.mark.promise("mcpconfig-030", "mcpconfig-039")
def test_each_transport_looks_at_its_own_target_only():
    config = MCPServerConfig("x", command="npx", url="not a url")
    assert config.is_valid
    assert not config.set_transport(Transport.SSE).is_valid
    config.set_url("https://tools.example/sse").set_command("")
    assert config.is_valid


def test_problems_name_the_setting_and_never_its_value():
    config = read(
        {
            "name": "x",
            "transport": "sse",
            "url": "nowhere",
            "headers": {"Bad Name": "s3cret", "X-Key": "line\r\nbreak", "X-End": "Bearer "},
            "timeouts": {"idle": -1},
            "inheritEnv": "s3cret",
        }
    )
    assert config.problems() == (
        "timeouts: timeout 'idle' of an mcp server is -1.0; give seconds above 0",
        "inheritEnv: is not one of the values it may have",
        "url: is no absolute http or https address",
        "headers: 'Bad Name' cannot be sent",
        "headers: 'X-Key' cannot be sent",
        "headers: 'X-End' cannot be sent",
    )
    child = read({"name": "x", "command": "a\0b", "environment": {"": "1", "PORT": 3000}})
    assert child.environment == {"": "1", "PORT": "3000"}
    assert child.problems() == (
        "command: a NUL character stands in it, its arguments or its environment",
        "environment: a variable's name is empty or holds '='",
    )


def test_setting_a_misread_field_again_mends_it():
    config = read({"name": "x", "command": "npx", "arguments": "-y"})
    assert config.to_dict()["arguments"] == "-y"
    assert config.set_arguments(["-y"]).is_valid


def test_without_a_name_the_config_keeps_its_own():
    config = MCPServerConfig("mine")
    assert config.from_dict({"command": "npx"})
    assert config.name == "mine"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "Expected `object`, got `array`"),
        ("{", "Input data was truncated"),
        ('{"name": 3}', "the name of an mcp server is not text; write it in quotes"),
        ("[" * 100_000, "an mcp server config is no JSON object"),
        (" " * (MAX_CONFIG_BYTES + 1), "an mcp server config is longer than 1048576 characters"),
        ('"\ud800"', "an mcp server config is no JSON object"),
    ],
)
def test_hostile_json_is_refused_in_one_line(text: str, told: str):
    with pytest.raises(UsageError) as refused:
        MCPServerConfig().from_json(text)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_json_cannot_carry_is_refused():
    with pytest.raises(UsageError, match="holds what JSON cannot carry"):
        MCPServerConfig().from_dict({"command": object()})


def test_configs_written_alike_are_equal_and_a_copy_is_its_own():
    config = MCPServerConfig("x", command="npx")
    twin = config.copy()
    assert twin == config
    assert twin.set_command("uvx") != config
    assert config != "x"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = (*EMPTY, "cwd", "timeouts", "prefix", "allowTools", "denyTools", "inheritEnv", "auth", "subscribe")
_KNOWN = st.sampled_from(_FIELDS)


@given(st.text(max_size=8), st.dictionaries(_KNOWN | st.text(max_size=6), _JSON, max_size=8))
def test_reading_and_writing_loses_nothing(name: str, fields: dict[str, Any]):
    fields["name"] = name
    config = read(fields)
    written = config.to_dict()
    assert written == EMPTY | fields
    assert read(written) == config
    again = MCPServerConfig()
    again.from_json(config.to_json())
    assert again == config
    assert isinstance(config.to_json(redact=True), str)
    assert repr(config).startswith("MCPServerConfig(")


def test_no_secret_is_shown():
    secret = "s3cret-marker"
    config = MCPServerConfig(
        "x",
        transport=Transport.STREAMABLE_HTTP,
        command="npx",
        arguments=["--api-key", secret, f"--token={secret}", f"https://u:{secret}@h/p?k={secret}", "plain"],
        environment={"API": secret, "MODE": "${MODE}"},
        url=f"https://user:{secret}@tools.example/mcp?key={secret}",
        headers={"Authorization": f"Bearer {secret}", "X-Ref": "Bearer ${TOKEN}"},
        auth=BearerAuth(token=secret),
    )
    config.from_dict(config.to_dict() | {"vendorKey": secret, "nothing": None})
    told = json.loads(config.to_json(redact=True))
    assert told == {
        "name": "x",
        "transport": "streamableHttp",
        "command": "npx",
        "arguments": ["--api-key", "***", "--token=***", "https://h/p", "plain"],
        "environment": {"API": "***", "MODE": "${MODE}"},
        "url": "https://tools.example/mcp",
        "headers": {"Authorization": "***", "X-Ref": "Bearer ${TOKEN}"},
        "enabled": True,
        "autoStart": True,
        "auth": {"type": "bearer", "token": "***"},
        "vendorKey": "***",
        "nothing": None,
    }
    assert secret not in repr(config) + repr(config.auth) + repr(OAuth(client_secret=secret))
    assert secret in config.to_json()
