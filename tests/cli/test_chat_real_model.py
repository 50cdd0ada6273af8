"""The chat with a real model: a tool, a skill and a prompt, killed in mid-answer and gone on with."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from dialoom.conversation import TextEntry
from dialoom.dialog import Center, Prompt, Skill
from dialoom.stores import SqliteConversationStore
from tests.cli.terminal import Terminal
from tests.cli.test_chat import home, lines_until
from tests.local_model import LocalModel

__all__ = ["home"]
SOON = 120.0

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.timeout(240),
    pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot kill a process without a word"),
]


async def begin_chat(model: LocalModel, *words: str) -> asyncio.subprocess.Process:
    server = ("--base-url", model.base_url, "--model", "openai:local", "--no-probe")
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dialoom", "chat", *words, *server),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


async def test_a_chat_with_a_real_model_is_killed_and_goes_on(
    terminal: Terminal, local_model: LocalModel, tmp_path: Path
) -> None:
    center = Center().add_prompt(Prompt("story", "Tell me a long story about {{who}}."))
    center.add_skill(Skill(name="plain", description="Plain words.", instructions="Use plain words."))
    center.save_settings(tmp_path / "home/config/dialoom/center.json")
    async with asyncio.timeout(SOON):
        child = await begin_chat(local_model, "--tool", "calculator", "--max-tokens", "400")
        assert child.stdin is not None
        assert child.stdout is not None
        assert await lines_until(child.stderr, "/help tells")
        child.stdin.write(b"/skill plain\n/prompt story who=rivers\n")
        assert await child.stdout.readline() == b"plain is on\n"
        assert await child.stdout.read(20)
        os.kill(child.pid, signal.SIGKILL)
        await child.communicate()

        child = await begin_chat(local_model, "--tool", "calculator", "--max-tokens", "24", "--resume")
        out, err = await child.communicate(b"And now in one word?\n")
    assert child.returncode == 0, err.decode()
    assert out.decode().startswith("you: Tell me a long story about rivers.\n")
    with SqliteConversationStore(tmp_path / ".dialoom/chat.sqlite", read_only=True) as store:
        (header,) = (await store.page()).headers
        entries = (await store.load(header.id)).entries
    said = [(entry.role, bool(entry.content)) for entry in entries if isinstance(entry, TextEntry)]
    asked = [entry.content for entry in entries if isinstance(entry, TextEntry) and entry.role == "user"]
    assert asked == ["Tell me a long story about rivers.", "And now in one word?"]
    assert said[0] == ("user", True)
    assert said[-1][0] in {"assistant", "tool"}
    assert header.settings["dialog"]["activeSkills"] == ["plain"]  # type: ignore[index] - plain values
