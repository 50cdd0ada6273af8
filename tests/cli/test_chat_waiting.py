"""Questions of a run that was left: a chat asks them again, and what is typed is the answer."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from dialoom.cli.chat_center import open_stores
from dialoom.llm import MockProvider
from dialoom.testing.wire import WireServer
from dialoom.tools import ToolContext, tool
from tests.cli.terminal import Terminal
from tests.cli.test_ask import said
from tests.cli.test_chat import SOON, home, typing
from tests.cli.test_chat_kept import chat
from tests.dialog.talk import center_of, refund

__all__ = ["home"]


@tool(idempotent=True)
async def fill_in(ctx: ToolContext, fields: list[dict[str, object]]) -> str:
    """Ask a person."""
    return f"{len(ctx.ask({'fields': fields}))} answers"


async def paused(folder: Path, name: str = "refund", **arguments: object) -> str:
    """Store a conversation whose run waits for a person; return its id."""
    mock = MockProvider().queue_tool_call("c1", name, arguments or {"order": 9})
    with open_stores(folder) as stores:
        dialog = center_of(mock, refund, fill_in, stores=stores).new_dialog()
        assert (await dialog.send(f"{name}, please")).waiting
        return dialog.id


async def test_a_question_that_waits_is_asked_again_and_answered(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dialog_id = await paused(tmp_path / ".dialoom")
    async with WireServer([said("Refunded.")]) as server:
        typing(monkeypatch)
        left = await chat(terminal, server, "--resume")
        typing(monkeypatch, "n")
        shown = await chat(terminal, server, dialog_id)
    question = 'refund wants to run with {"order":9}. Allow it? [y/N] '
    assert left.out.endswith(f"[shown approval: refund (refund)]\n{question}")
    assert left.err.endswith("it waits; dialoom chat --resume asks again\n")
    assert f"going on with {dialog_id}\n" in shown.err
    assert shown.out.endswith(f"{question}Refunded.\n\n")
    assert "  ← " in shown.err


async def test_answers_that_do_not_go_together_leave_the_form_waiting(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    power = {"id": "power", "visibleIf": {"method": "idw"}, "required": True}
    await paused(tmp_path / ".dialoom", "fill_in", fields=[power, {"id": "method"}])
    async with WireServer([]) as server:
        typing(monkeypatch, "idw")
        shown = await chat(terminal, server, "--resume")
    assert shown.err.splitlines()[-2:] == [
        "dialoom: /power: an answer is needed; correct and submit again",
        "it waits; dialoom chat --resume asks again",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
async def test_a_secret_is_neither_shown_nor_kept_with_the_lines_that_were_typed(
    terminal: Terminal, tmp_path: Path
) -> None:
    folder = tmp_path / ".dialoom"
    await paused(folder, "fill_in", fields=[{"id": "pin", "label": "PIN", "type": "secret"}])
    keyboard, tty = os.openpty()
    screen = ""

    async def until(words: str) -> None:
        nonlocal screen
        async with asyncio.timeout(SOON):
            while words not in screen:
                screen += (await asyncio.to_thread(os.read, keyboard, 1000)).decode()

    async with WireServer([said("All done.")]) as server:
        words = ("chat", "--resume", "--base-url", f"{server.url}/v1", "--model", "openai:m")
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "dialoom", *words, stdin=tty, stdout=tty, stderr=tty, start_new_session=True
        )
        os.close(tty)
        await until("PIN (not shown): ")
        os.write(keyboard, b"hunter22\n")
        await until("All done.")
        os.write(keyboard, b"/quit\n")
        assert await asyncio.wait_for(child.wait(), SOON) == 0
    os.close(keyboard)
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "/quit" in kept["chat_history"].decode()
    assert ("hunter22" in screen, [name for name in kept if b"hunter22" in kept[name]]) == (False, [])
