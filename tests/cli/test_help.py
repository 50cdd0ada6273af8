"""What a command takes is told as people have to type it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

from dialoom.cli.app import app
from dialoom.cli.config import FLAT
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


@pytest.mark.parametrize("command", ["triage", "doctor", "ask"])
def test_the_help_says_of_offline_what_is_true_of_every_command(terminal: Terminal, command: str) -> None:
    told = " ".join(terminal.run(command, "--help").out.replace("│", " ").split())
    assert "--offline Ask no model, as if there were none." in told


DOCS = Path(__file__).parents[2] / "docs"


def commands(group: App, *words: str) -> Iterator[tuple[str, ...]]:
    """The words of every command and group."""
    yield words
    for name in group:
        if not name.startswith("-"):
            yield from commands(group[name], *words, name)


def test_every_option_of_every_command_is_told_of_in_the_docs(terminal: Terminal) -> None:
    told = "".join((DOCS / page).read_text(encoding="utf-8") for page in ("cli.md", "mcp.md"))
    shown = {words: terminal.run(*words, "--help").out for words in commands(app)}
    options = {
        (*words, option) for words, help_ in shown.items() for option in re.findall(r"│ (--[a-z-]+)", help_)
    }
    assert len(options) > 80
    assert {each for each in options if not re.search(rf"{each[-1]}(?![\w-])", told)} == set()


def test_every_setting_is_told_of_in_the_docs() -> None:
    told = (DOCS / "settings.md").read_text(encoding="utf-8")
    assert {name for _, name in FLAT.values() if not re.search(rf"\b{name}\b", told)} == set()
