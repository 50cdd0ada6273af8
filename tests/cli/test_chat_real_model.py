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


async def test_a_chat_with_a_real_model_calls_a_tool_is_killed_and_completes_the_cut_answer(
    terminal: Terminal, local_model: LocalModel, tmp_path: Path
) -> None:
    center = Center().add_prompt(Prompt("story", "Tell me a long story about {{who}}."))
    center.add_skill(Skill(name="plain", description="Plain words.", instructions="Use plain words."))
    center.save_settings(tmp_path / "home/config/dialoom/center.json")
    # the model calls a tool that it is asked to call as long as it does not have to be inventive
    Path("dialoom.toml").write_text("[model]\ntemperature = 0\n", encoding="utf-8")
    async with asyncio.timeout(SOON):
        child = await begin_chat(local_model, "--tool", "calculator", "--max-tokens", "400")
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"Please call calculator for 7*8.\n")
        assert await lines_until(child.stderr, '→ calculator {"expression": "7*8"}')
        assert await lines_until(child.stderr, "← 56")
        child.stdin.write(b"/skill plain\n/prompt story who=rivers\n")
        assert await lines_until(child.stdout, "plain is on")
        assert await child.stdout.read(20)
        os.kill(child.pid, signal.SIGKILL)
        await child.communicate()
        before = await kept(tmp_path)

        child = await begin_chat(local_model, "--tool", "calculator", "--max-tokens", "24", "--resume")
        out, err = await child.communicate(b"And now in one word?\n")
    assert child.returncode == 0, err.decode()
    assert "(going on where it stopped)" in err.decode()
    call, result, answer, asked = before[1:5]
    assert [(each.name, each.arguments) for each in call.tool_calls] == [
        ("calculator", {"expression": "7*8"})
    ]
    assert (result.role, result.content) == ("tool", "56")
    assert (answer.role, answer.status, asked.content) == (
        "assistant",
        None,
        "Tell me a long story about rivers.",
    )
    assert len(before) == 5, "what was being said when it was killed is not taken for an answer"

    entries = await kept(tmp_path)
    assert entries[:5] == before
    story, again, word = entries[5:]
    assert [each.role for each in (story, again, word)] == ["assistant", "user", "assistant"]
    assert again.content == "And now in one word?"
    shown = out.decode()
    assert shown.startswith("you: Please call calculator for 7*8.\n")
    for each in (story, word):  # whole, of this run alone, and what was shown
        assert (each.status, each.tool_calls) == (None, ())
        assert each.content.strip()
        assert each.content.strip() in shown
    with SqliteConversationStore(tmp_path / ".dialoom/chat.sqlite", read_only=True) as store:
        (header,) = (await store.page()).headers
    assert header.settings["dialog"]["activeSkills"] == ["plain"]  # type: ignore[index] - plain values


async def kept(folder: Path) -> list[TextEntry]:
    """What the one conversation holds."""
    with SqliteConversationStore(folder / ".dialoom/chat.sqlite", read_only=True) as store:
        (header,) = (await store.page()).headers
        entries = (await store.load(header.id)).entries
    return [entry for entry in entries if isinstance(entry, TextEntry)]
