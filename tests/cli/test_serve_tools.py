"""The tool servers of `dialoom serve`: the approved ones of a file, and none that a conversation brings."""

import json
from pathlib import Path

import pytest

from dialoom.base.errors import UsageError
from dialoom.cli.mcp_servers import user_folder
from dialoom.cli.serve_flags import ServeFlags
from dialoom.cli.serve_tools import tool_servers, tool_source
from dialoom.mcp import MCPServerConfig
from tests.cli.terminal import Terminal


@pytest.fixture
def listed(terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's file of tool servers, of which `good` was approved."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    servers = {
        "good": {"command": "good-server"},
        "strange": {"command": "strange-server", "envFile": ".env"},
        "off": {"command": "off-server", "disabled": True},
    }
    path = tmp_path / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    assert terminal.run("mcp", "trust", "good", "--yes").code == 0
    return path


def names(servers: tuple[MCPServerConfig, ...]) -> list[str]:
    return [each.name for each in servers]


def test_of_a_file_the_approved_servers_are_used_and_the_others_are_said(
    listed: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert names(tool_servers(ServeFlags(mcp_config=listed))) == ["good"]
    said = capfd.readouterr().err
    assert "envFile is not followed" in said
    assert "strange" in said
    assert "off" not in said


def test_named_servers_have_to_be_approved(listed: Path) -> None:
    assert names(tool_servers(ServeFlags(server=("good",)))) == ["good"]
    with pytest.raises(UsageError, match="strange"):
        tool_servers(ServeFlags(server=("strange",), mcp_config=listed))
    assert tool_servers(ServeFlags()) == ()
    assert not user_folder().joinpath("mcp.json").exists()


async def test_a_server_that_a_conversation_brings_is_not_started() -> None:
    with pytest.raises(UsageError, match="it came with the conversation"):
        await tool_source(()).open(MCPServerConfig("theirs").set_command("rm"))
