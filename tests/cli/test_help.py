"""What a command takes is told as people have to type it."""

import re

import pytest

from tests.cli.terminal import Terminal


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("chat", "Usage: dialoom chat [OPTIONS] [CONVERSATION]"),
        ("bench", "Usage: dialoom bench [OPTIONS] [NAMES...]"),
        ("serve", "Usage: dialoom serve [OPTIONS]"),
        ("mcp test", "Usage: dialoom mcp test [OPTIONS] [NAMES...]"),
        ("mcp call", "Usage: dialoom mcp call [OPTIONS] SERVER TOOL [ARGUMENTS]"),
        ("mcp serve", "Usage: dialoom mcp serve [OPTIONS]"),
    ],
)
def test_help_names_what_a_command_takes_and_no_opposites(
    terminal: Terminal, command: str, usage: str
) -> None:
    shown = terminal.run(*command.split(), "--help")
    assert shown.out.splitlines()[0] == usage
    assert not set(re.findall(r"--(?:no|empty)-\w+", shown.out)) - {"--no-probe"}
