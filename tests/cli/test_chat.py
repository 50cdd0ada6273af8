"""A conversation in the terminal: turns build on each other, and Ctrl-C stops one answer, not the talk."""

import asyncio
import io
import os
import signal
import sys
from pathlib import Path

import pytest

from dialoom.testing.wire import Hold, WireReply, WireServer
from tests.cli.terminal import Shown, Terminal
from tests.cli.test_ask import broken_off, event, said

SOON = 60.0


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of one's own, so that no skill of whoever runs the tests is found."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    return home


def typing(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def test_documents_answer_and_their_sources_can_be_read(
    terminal: Terminal, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing(monkeypatch, "/sources", "How long do refunds take?", "/sources", "/quit", "never read")
    shown = terminal.run("chat", "--docs", str(docs), "--offline")
    assert shown.code == 0
    assert shown.out == (
        "the last answer cites nothing\n"
        "According to your documents: Refunds take three working days. [1]\n"
        "  [1] refunds.md, Refunds\n\n"
        "[1] refunds.md, Refunds\n# Refunds\n\nRefunds take three working days.\n\n"
    )
    assert "answers come from 1 passage of 1 document" in shown.err


def test_an_index_that_is_there_is_used_without_asking(
    terminal: Terminal, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.run("ingest", str(docs))
    typing(monkeypatch, "How long do refunds take?")
    assert "three working days" in terminal.run("chat", "--offline").out


def test_commands_are_understood_and_unknown_ones_said(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing(monkeypatch, "", "/help", "/history", "/nonsense now", "/new", "/exit now", "/help")
    shown = terminal.run("chat")
    assert shown.out.startswith("/help             this list\n")
    assert shown.out.endswith(
        "nothing was said yet\n/nonsense is not known here; /help lists what is, and //nonsense says it\n"
        "a new conversation\n"
    )


async def test_a_text_that_begins_with_a_path_is_said_and_two_slashes_say_one(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing(monkeypatch, "/etc/hosts what is it", "//help me", "// is a comment")
    async with WireServer([said("A file."), said("Yes."), said("So it is.")]) as server:
        shown = await terminal.run_beside("chat", "--base-url", f"{server.url}/v1", "--model", "openai:m")
    assert shown.out == "A file.\n\nYes.\n\nSo it is.\n\n"
    assert [request.json()["messages"][-1]["content"] for request in server.requests] == [
        "/etc/hosts what is it",
        "/help me",
        "/ is a comment",
    ]


def test_an_export_goes_to_the_home_that_a_tilde_means(
    terminal: Terminal, docs: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    typing(monkeypatch, "How long do refunds take?", "/export ~/talk.md", "/export ~nobody-is-this/talk.md")
    shown = terminal.run("chat", "--docs", str(docs), "--offline")
    assert shown.out.endswith(f"written to {home / 'talk.md'}\n")
    assert "How long do refunds take?" in (home / "talk.md").read_text("utf-8")
    assert shown.err.endswith(
        "dialoom: there is no home '~nobody-is-this/talk.md' begins with; write the path out\n"
    )


def test_without_any_model_the_ways_to_get_one_are_shown(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing(monkeypatch, "Hello?")
    assert terminal.run("chat").out.startswith("No model is configured")


def test_where_no_model_is_asked_none_can_be_chosen(
    terminal: Terminal, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing(monkeypatch, "/model gpt-4", "/model")
    shown = terminal.run("chat", "--docs", str(docs), "--offline")
    assert "dialoom: no model is asked here; begin with dialoom chat --model provider:name" in shown.err
    assert "gpt-4" not in shown.out


async def test_the_model_that_was_chosen_answers_from_the_documents_too(
    terminal: Terminal, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing(monkeypatch, "Refunds?", "/model other", "Refunds?")
    async with WireServer([said("a [1]"), said("b [1]")]) as server:
        await terminal.run_beside(
            "chat", "--docs", str(docs), "--base-url", f"{server.url}/v1", "--model", "openai:m"
        )
        assert [request.json()["model"] for request in server.requests] == ["m", "other"]


async def test_a_turn_is_sent_with_those_before_it(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing(monkeypatch, "My name is Ada.", "What is my name?", "/history", "/new", "And now?")
    async with WireServer([said("Hello", " Ada."), said("Ada."), said("I forgot.")]) as server:
        shown = await terminal.run_beside("chat", "--base-url", f"{server.url}/v1", "--model", "openai:m")
        sent = [[message["content"] for message in request.json()["messages"]] for request in server.requests]
    assert sent == [
        ["My name is Ada."],
        ["My name is Ada.", "Hello Ada.", "What is my name?"],
        ["And now?"],
    ]
    assert "you: My name is Ada.\ndialoom: Hello Ada.\nyou: What is my name?\ndialoom: Ada.\n" in shown.out


async def test_a_model_that_fails_is_named_and_the_chat_goes_on(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing(monkeypatch, "one", "two", "three", "/history")
    refused = WireReply(status=401, body=(b"{}",))
    async with WireServer([refused, broken_off("Half "), said("whole")]) as server:
        shown = await terminal.run_beside("chat", "--base-url", f"{server.url}/v1", "--model", "openai:m")
    assert shown.code == 0
    assert shown.err.count("dialoom: ") == 2
    assert shown.out.endswith("you: one\nyou: two\ndialoom: Half  (broken off)\nyou: three\ndialoom: whole\n")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
async def test_ctrl_c_stops_the_answer_and_keeps_what_was_said(terminal: Terminal) -> None:
    hold = Hold()
    reply = WireReply(
        headers={"content-type": "text/event-stream"}, body=(event(delta={"content": "As I was say"}), hold)
    )
    async with asyncio.timeout(SOON), WireServer([reply]) as server:
        child = await start_chat(server)
        child.stdin.write(b"Tell me.\n")
        assert await child.stdout.readexactly(12) == b"As I was say"
        await hold.reached.wait()
        child.send_signal(signal.SIGINT)
        await server.client_left.wait()
        shown = await end_chat(child, b"/history\n")
    assert (shown.code, shown.out) == (0, "\n\nyou: Tell me.\ndialoom: As I was say (stopped)\n")
    assert shown.err.splitlines()[-1] == "(stopped)"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
async def test_ctrl_c_at_the_prompt_leaves_nothing_broken(terminal: Terminal) -> None:
    async with asyncio.timeout(SOON), WireServer([said("Still here.")]) as server:
        child = await start_chat(server)
        child.stdin.write(b"/history\n")
        await child.stdout.readline()
        told = asyncio.create_task(lines_until(child.stderr, "Ctrl-D or /quit leaves"))
        while not told.done():  # one that still meets the command before the prompt ends that and no more
            child.send_signal(signal.SIGINT)
            child.stdin.write(b"\n")  # a signal that comes just before a read is heard when the read returns
            await asyncio.wait({told}, timeout=3)
        assert told.result()
        shown = await end_chat(child, b"Hello?\n")
    assert (shown.code, shown.out) == (0, "Still here.\n\n")


async def test_a_server_that_is_not_there_is_tried_again_and_then_named(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with WireServer([]) as server:
        address = f"{server.url}/v1"  # nobody listens there any more
    typing(monkeypatch, "hello")
    shown = await terminal.run_beside("chat", "--base-url", address, "--model", "openai:fake")
    gone = f"cannot reach {address}/chat/completions: connection refused"
    assert shown.err.splitlines()[2:] == [
        f"(trying again: {gone})",
        f"(trying again: {gone})",
        f"dialoom: {gone}; start the server there, or check the base url",
    ]


async def start_chat(server: WireServer) -> asyncio.subprocess.Process:
    words = ("-m", "dialoom", "chat", "--base-url", f"{server.url}/v1", "--model", "openai:m")
    pipe = asyncio.subprocess.PIPE
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    child = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
    )
    assert await lines_until(child.stderr, "/help tells")
    return child


async def end_chat(child: asyncio.subprocess.Process, typed: bytes) -> Shown:
    out, err = await child.communicate(typed)
    return Shown(child.returncode or 0, out.decode(), err.decode())


async def lines_until(stream: asyncio.StreamReader | None, text: str) -> bool:
    assert stream is not None
    while line := await stream.readline():
        if text in line.decode():
            return True
    return False
