"""What the tests of hostile servers share: configs for `hostile_stdio.py`, and what a call said."""

import os
import sys
from pathlib import Path
from typing import Any

from dialoom.mcp import MCPServerConfig, McpTimeouts, Transport

PROGRAM = Path(__file__).parent / "hostile_stdio.py"


def stdio(*switches: str, log: Path | None = None, **settings: Any) -> MCPServerConfig:
    """A config that starts the hostile server with these switches."""
    environment = {"HOSTILE_LOG": str(log or os.devnull)}
    return MCPServerConfig(
        "hostile", command=sys.executable, arguments=[str(PROGRAM), *switches], **settings
    ).set_environment(environment)


def http(url: str, **settings: Any) -> MCPServerConfig:
    """A config for a server at `url` that is connected again without delay."""
    quick = McpTimeouts(connect=5, reconnect=0.01, max_reconnect=0.05)
    return MCPServerConfig(
        "remote", transport=Transport.STREAMABLE_HTTP, url=url, **{"timeouts": quick, **settings}
    )


def said(result: Any) -> str:
    """The words of a result that is one text."""
    (block,) = result.content
    return block.text


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and only waits to be collected does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
