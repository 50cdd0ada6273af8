"""A chat is a conversation on disk: gone on with, branched, exported, with tools, skills and prompts."""

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from dialoom.cli.chat_center import open_stores
from dialoom.cli.chat_list import MOST_LISTED
from dialoom.conversation import Conversation, Header
from dialoom.conversation.header import from_rfc3339
from dialoom.dialog import Center, Prompt, Skill
from dialoom.mcp import MCPServerConfig
from dialoom.stores import SqliteConversationStore
from dialoom.testing import ManualClock
from dialoom.testing.wire import Hold, WireReply, WireServer
from tests.cli.terminal import Shown, Terminal
from tests.cli.test_ask import broken_off, event, said
from tests.cli.test_chat import end_chat, home, start_chat, typing

__all__ = ["home"]


def calling(name: str, arguments: dict[str, object]) -> WireReply:
    """Return a streamed answer that calls one tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": "call_1", "type": "function", "function": function}
    return WireReply(
        headers={"content-type": "text/event-stream"},
        body=(
            event(delta={"tool_calls": [call]}),
            event(delta={}, finish_reason="tool_calls"),
            b"data: [DONE]\n\n",
        ),
    )


async def chat(terminal: Terminal, server: WireServer, *words: str) -> Shown:
    return await terminal.run_beside(
        "chat", *words, "--base-url", f"{server.url}/v1", "--model", "openai:m", "--no-probe"
    )


def sent(server: WireServer) -> list[list[str]]:
    """Return the texts of each request."""
    return [
        [str(message["content"]) for message in request.json()["messages"]] for request in server.requests
    ]


async def test_a_conversation_is_gone_on_with_in_another_process(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with WireServer([said("Hello Ada."), said("Ada."), said("Yes.")]) as server:
        typing(monkeypatch, "My name is Ada.")
        await chat(terminal, server)
        typing(monkeypatch, "What is my name?")
        shown = await chat(terminal, server, "--resume")
        typing(monkeypatch, "/new", "Another?")
        await chat(terminal, server)
    assert shown.out == "you: My name is Ada.\ndialoom: Hello Ada.\nAda.\n\n"
    assert sent(server)[1:] == [["My name is Ada.", "Hello Ada.", "What is my name?"], ["Another?"]]


def test_without_a_conversation_there_is_nothing_to_go_on_with(terminal: Terminal) -> None:
    shown = terminal.run("chat", "--resume", "--offline")
    assert (shown.code, shown.err.splitlines()[-1]) == (
        2,
        "dialoom: there is no conversation to go on with; begin one with dialoom chat",
    )
    unknown = terminal.run("chat", "--resume", "nobody", "--offline")
    assert (unknown.code, unknown.err.splitlines()[-1]) == (
        2,
        "dialoom: there is no conversation 'nobody'; dialoom chat --list shows those there are",
    )


def test_a_chat_that_is_left_without_a_word_leaves_no_conversation(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing(monkeypatch, "/model m", "/history", "/branch", "/export talk.md", "/regenerate", "/new", "/model")
    shown = terminal.run("chat", "--offline")
    assert shown.err.splitlines()[-4:] == [
        "dialoom: no model is asked here; begin with dialoom chat --model provider:name",
        *["dialoom: nothing was said yet; say something first"] * 2,
        "dialoom: nothing was asked yet; say something first",
    ]
    assert not Path("talk.md").exists()
    assert terminal.run("chat", "--list").code == 2


async def test_the_conversations_there_are_can_be_listed_newest_first(
    terminal: Terminal, tmp_path: Path
) -> None:
    none = await terminal.run_beside("chat", "--list")
    assert (none.code, none.err) == (
        2,
        "dialoom: there are no conversations in .dialoom; begin one with dialoom chat\n",
    )
    assert not (tmp_path / ".dialoom").exists()
    clock = ManualClock()
    with SqliteConversationStore(tmp_path / ".dialoom/chat.sqlite", clock=clock) as store:
        for title in ("first", "second"):
            await clock.advance(60)
            await store.create(
                Conversation(Header(id=title, title=title, created=clock.now(), updated=clock.now()))
            )
    lines = (await terminal.run_beside("chat", "--list")).out.splitlines()
    assert [(line.split()[0], line.split()[-1]) for line in lines] == [
        ("second", "second"),
        ("first", "first"),
    ]
    assert all(re.fullmatch(r"\w+  \d{4}-\d\d-\d\d \d\d:\d\d  \w+", line) for line in lines)


@pytest.mark.parametrize(
    ("zone", "first"),
    [("EAST-8", "0001-01-01 08:00"), ("WEST+8", "0001-01-01 00:00"), ("UTC", "0001-01-01 00:00")],
)
async def test_conversations_at_the_ends_of_the_calendar_are_listed_in_every_zone(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str, first: str
) -> None:
    with SqliteConversationStore(tmp_path / ".dialoom/chat.sqlite") as store:
        for name, at in (("first", from_rfc3339("0001-01-01")), ("last", from_rfc3339("9999-12-31"))):
            await store.create(Conversation(Header(id=name, title=name, created=at, updated=at)))
    with monkeypatch.context() as there:
        there.setenv("TZ", zone)
        time.tzset()
        shown = await terminal.run_beside("chat", "--list")
    time.tzset()
    newest, oldest = shown.out.splitlines()
    assert re.fullmatch(r"last  9999-12-3\d \d\d:00  last", newest)
    assert oldest == f"first  {first}  first"


async def test_a_long_list_of_conversations_says_that_there_are_more(
    terminal: Terminal, tmp_path: Path
) -> None:
    with SqliteConversationStore(tmp_path / ".dialoom/chat.sqlite") as store:
        for number in range(MOST_LISTED + 1):
            await store.create(Conversation(Header(id=f"c{number}", created=0, updated=0)))
    shown = await terminal.run_beside("chat", "--list")
    assert (len(shown.out.splitlines()), shown.err) == (
        MOST_LISTED,
        f"(the newest {MOST_LISTED}; there are more)\n",
    )


async def test_a_conversation_that_another_chat_has_open_is_not_answered_twice(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = Hold()
    half = WireReply(
        headers={"content-type": "text/event-stream"},
        body=(
            event(delta={"content": "Slowly"}),
            hold,
            event(delta={}, finish_reason="stop"),
            b"data: [DONE]\n\n",
        ),
    )
    async with WireServer([half, said("Hello."), said("Anew.")]) as server:
        child = await start_chat(server)
        child.stdin.write(b"Tell me.\n/new\n")  # type: ignore[union-attr] - a pipe
        await hold.reached.wait()
        typing(monkeypatch)
        refused = await chat(terminal, server, "--resume")
        typing(monkeypatch, "hi")
        beside = await chat(terminal, server)
        hold.opened.set()
        await end_chat(child, b"/quit\n")
        asked = len(server.requests)
        listed = (await terminal.run_beside("chat", "--list")).out.splitlines()
        (left,) = (line.split()[0] for line in listed if line.endswith("Tell me."))
        typing(monkeypatch)
        later = await chat(terminal, server, left)
    assert refused.code == 1
    assert refused.err.splitlines()[-1] == (
        "dialoom: this conversation is being answered by another dialoom; "
        "wait until it is left there, or start a new one with dialoom chat"
    )
    assert (beside.out, asked) == ("Hello.\n\n", 2)
    assert later.out == "you: Tell me.\ndialoom: Slowly\n"


async def test_an_answer_is_made_anew_and_a_question_put_in_other_words(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing(
        monkeypatch,
        "one",
        "/regenerate",
        "two",
        "/edit two, I mean",
        "/edit 1 uno",
        "/branch",
        "/history",
        "/edit",
        "/edit 99 hey",
        "/edit 0 hey",
    )
    replies = [said(words) for words in ("a", "b", "c", "d", "e")]
    async with WireServer(replies) as server:
        shown = await chat(terminal, server)
    assert sent(server) == [
        ["one"],
        ["one"],
        ["one", "b", "two"],
        ["one", "b", "two, I mean"],
        ["uno"],
    ]
    branched = re.findall("a branch; the other one is kept: dialoom chat --resume (.*)\n", shown.out)
    listed = (await terminal.run_beside("chat", "--list")).out.splitlines()
    assert [line.split("  ", 2)[2] for line in listed] == [
        f"uno  (branch of {branched[3]})",
        f"uno  (branch of {branched[2]})",
        f"two, I mean  (branch of {branched[1]})",
        f"one  (branch of {branched[0]})",
        "one",
    ]
    assert shown.out.endswith("you: uno\ndialoom: e\n")
    assert shown.err.splitlines()[-3:] == [
        "dialoom: say what to change: /edit TEXT for your last words, /edit N TEXT for the Nth",
        "dialoom: you asked 1 question, so there is no question 99; /history shows them",
        "dialoom: you asked 1 question, so there is no question 0; /history shows them",
    ]


async def test_a_tool_is_called_and_its_trace_can_be_read(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing(monkeypatch, "2 + 3?", "/tools", "/history")
    async with WireServer([calling("calculator", {"expression": "2 + 3"}), said("It is 5.")]) as server:
        shown = await chat(terminal, server, "--tool", "calculator", "--tool", "clock")
    assert '  → calculator {"expression": "2 + 3"}\n  ← ' in shown.err
    assert "calculator\ncurrent_time (--tool clock)\n" in shown.out
    assert shown.out.endswith("dialoom: It is 5.\n")


async def test_where_there_is_an_index_a_tool_has_the_model_answer(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, docs: Path
) -> None:
    await terminal.run_beside("ingest", str(docs))
    typing(monkeypatch, "2 + 3?")
    async with WireServer([calling("calculator", {"expression": "2 + 3"}), said("It is 5.")]) as server:
        shown = await chat(terminal, server, "--tool", "calculator")
    assert shown.out == "It is 5.\n\n"
    index = Path(".dialoom/knowledge.sqlite")
    assert f"with tools the model answers, and not the documents of {index}\n" in shown.err
    assert '  → calculator {"expression": "2 + 3"}\n  ← ' in shown.err
    typing(monkeypatch, "/tools")
    without = await terminal.run_beside("chat", "--offline")
    assert (
        without.out == "no tools: the documents answer; dialoom chat --tool calculator has the model answer\n"
    )
    refused = await terminal.run_beside("chat", "--offline", "--docs", str(docs), "--tool", "clock")
    told = "dialoom: documents answer without tools; leave --docs out, or --tool and --server\n"
    assert (refused.code, refused.err) == (2, told)


async def test_skills_are_trusted_and_switched_on_and_prompts_are_said(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / ".agents/skills/rhyme"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: rhyme\ndescription: Rhymes.\n---\nRhyme.\n", encoding="utf-8"
    )
    center = (
        Center()
        .add_prompt(Prompt("greet", "Greet {{name}}."))
        .add_skill(Skill(name="brief", description="d"))
    )
    center.save_settings(tmp_path / "home/config/dialoom/center.json")
    lines = ["/skills", "/skill rhyme", "/skill trust rhyme", "/skill rhyme", "/skill brief", "/skill rime"]
    typing(
        monkeypatch,
        *lines,
        "/skills",
        "/prompt greet name=Ada",
        "/prompt greet",
        "/prompt no",
        "/skill",
        "/skill trust x",
    )
    async with WireServer([said("Hi.")]) as server:
        shown = await chat(terminal, server)
    assert shown.out == (
        f"rhyme (not trusted, in {folder}): Rhymes.\n"
        "rhyme is trusted as it is now; /skill rhyme switches it on\n"
        "rhyme is on\nbrief is on\nrhyme (on): Rhymes.\nHi.\n\n"
    )
    assert [line.removeprefix("dialoom: ") for line in shown.err.splitlines()[2:]] == [
        "skill rhyme came with this project; look at it, then /skill trust rhyme",
        "there is no skill 'rime' here; there are: brief, rhyme",
        "prompt greet needs name: /prompt greet NAME=VALUE ...",
        "there is no prompt 'no'; there are: greet",
        "name a skill: /skill NAME, or /skill trust NAME; /skills lists them",
        "no skill 'x' waits to be trusted; /skills lists them",
    ]
    assert sent(server)[0][1:] == ["Greet Ada."]
    assert '<skill name="rhyme">\nRhyme.\n</skill>' in sent(server)[0][0]


async def test_the_name_of_a_projects_skill_cannot_write_on_the_screen(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / ".agents/skills/odd"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text('---\nname: "odd\\e[2J"\ndescription: Odd.\n---\nBe odd.\n')
    typing(monkeypatch, "/skills", "/model m\x1b[2J")
    async with WireServer([]) as server:
        shown = await chat(terminal, server)
    assert shown.out == f"odd [2J (not trusted, in {folder}): Odd.\nm [2J answers\n"


def test_without_skills_the_place_for_them_is_named(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing(monkeypatch, "/skills", "/tools")
    shown = terminal.run("chat", "--offline")
    assert shown.out == (
        "no skills; put folders with a SKILL.md into .agents/skills\n"
        "no tools; dialoom chat --tool calculator --tool clock\n"
    )


async def test_another_model_answers_and_the_conversation_is_written_to_a_file(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    typing(
        monkeypatch,
        "hi",
        "/model other",
        "again",
        "/model",
        "/export talk.md",
        "/export talk.md",
        "/export x",
    )
    async with WireServer([said("a"), said("b")]) as server:
        shown = await chat(terminal, server)
        models = [request.json()["model"] for request in server.requests]
    assert models == ["m", "other"]
    assert shown.out.endswith("other answers\nwritten to talk.md\n")
    assert "## assistant\n\nb\n" in (tmp_path / "talk.md").read_text(encoding="utf-8")
    assert shown.err.splitlines()[-2:] == [
        "dialoom: cannot write talk.md: File exists; name another file",
        "dialoom: name a file that ends in .md, .json, .yaml, .yml: /export talk.md",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot kill a process without a word")
async def test_a_chat_that_was_killed_in_the_middle_of_an_answer_goes_on(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = Hold()
    half = WireReply(
        headers={"content-type": "text/event-stream"}, body=(event(delta={"content": "As I was say"}), hold)
    )
    async with WireServer([half, said("As I was saying.")]) as server:
        child = await start_chat(server)
        child.stdin.write(b"Tell me.\n")  # type: ignore[union-attr] - a pipe
        await hold.reached.wait()
        os.kill(child.pid, signal.SIGKILL)
        await child.communicate()
        typing(monkeypatch)
        shown = await chat(terminal, server, "--resume")
    assert shown.out == "you: Tell me.\nAs I was saying.\n\n"
    assert "(going on where it stopped)" in shown.err


async def test_what_was_cut_short_and_what_is_asked_again_is_answered_from_the_documents(
    terminal: Terminal, docs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with open_stores(tmp_path / ".dialoom") as stores:
        await Center(stores).new_dialog().append_message("user", "How long do refunds take?").save()
    typing(monkeypatch, "/regenerate", "/edit How many days do refunds take?", "/history")
    shown = await terminal.run_beside("chat", "--docs", str(docs), "--offline", "--resume")
    assert shown.out.count("Refunds take three working days. [1]\n") == 4
    assert shown.out.splitlines()[-2].startswith("you: How many days do refunds take?")


def test_documents_answer_in_a_conversation_that_is_kept(
    terminal: Terminal, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing(monkeypatch, "How long do refunds take?")
    terminal.run("chat", "--docs", str(docs), "--offline")
    typing(monkeypatch, "/history")
    shown = terminal.run("chat", "--resume", "--offline")
    assert "you: How long do refunds take?\ndialoom: According to your documents:" in shown.out


async def test_an_answer_from_documents_that_broke_off_is_kept_as_far_as_it_came(
    terminal: Terminal, docs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    typing(monkeypatch, "How long do refunds take?", "/history", "/export talk.json")
    async with WireServer([broken_off("Refunds ")]) as server:
        shown = await chat(terminal, server, "--docs", str(docs))
    assert shown.out.endswith("\ndialoom: Refunds  (broken off)\nwritten to talk.json\n")
    assert '"status":"incomplete"' in (tmp_path / "talk.json").read_text(encoding="utf-8")


async def test_an_approved_tool_server_is_called(
    terminal: Terminal, docs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = [
        "-m",
        "dialoom",
        "mcp",
        "serve",
        "--docs",
        str(docs.absolute()),
        "--offline",
        "--index",
        "shop.sqlite",
    ]
    shop = {"command": sys.executable, "args": words, "env": {"DIALOOM_NO_PROBE": "1"}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"shop": shop}}), encoding="utf-8")
    async with WireServer([calling("shop__search", {"query": "refunds"}), said("Three days.")]) as server:
        refused = await chat(terminal, server, "--server", "shop")
        await terminal.run_beside("mcp", "trust", "shop", "--yes")
        typing(monkeypatch, "How long?", "/tools")
        shown = await chat(terminal, server, "--server", "shop")
    assert refused.code == 2
    assert "  → shop__search " in shown.err
    assert "refunds.md" in shown.err
    assert shown.out == "Three days.\n\nshop (server)\n"


async def test_a_tool_server_that_came_with_a_conversation_is_not_started(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with open_stores(tmp_path / ".dialoom") as stores:
        dialog = Center(stores).new_dialog().append_message("user", "hi")
        await dialog.add_mcp(MCPServerConfig("evil", command="touch", arguments=["started"])).save()
    async with WireServer([said("Hello.")]) as server:
        typing(monkeypatch)
        shown = await chat(terminal, server, "--resume")
    assert "it came with the conversation; name it with --server to have it started" in shown.err
    assert shown.out.endswith("Hello.\n\n")
    assert not (tmp_path / "started").exists()
