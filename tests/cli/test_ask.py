"""One question: the answer on stdout, the rest on stderr, as it comes."""

import io
import json
import re
from pathlib import Path

import msgspec
import pytest

from dialoom.cli.waiting import waiting_for
from dialoom.stores import SqliteVectorStore
from dialoom.testing.clock import ManualClock, settle
from dialoom.testing.wire import Hold, WireReply, WireRequest, WireServer
from tests.cli.terminal import Terminal


def event(**fields: object) -> bytes:
    return b"data: " + msgspec.json.encode({"choices": [{"index": 0, **fields}]}) + b"\n\n"


def said(*pieces: str) -> WireReply:
    """A streamed answer in `pieces`."""
    deltas = [event(delta={"content": piece}) for piece in pieces]
    return WireReply(
        headers={"content-type": "text/event-stream"},
        body=(*deltas, event(delta={}, finish_reason="stop"), b"data: [DONE]\n\n"),
    )


def broken_off(*pieces: str) -> WireReply:
    body = tuple(event(delta={"content": piece}) for piece in pieces)
    return WireReply(headers={"content-type": "text/event-stream"}, body=body, end="cut")


async def test_a_model_answers_with_citations_and_is_named_before_it_is_asked(
    terminal: Terminal, docs: Path
) -> None:
    async with WireServer([said("Three days ", "[1", "], surely [7].")]) as server:
        words = (
            "ask",
            "How long?",
            "--docs",
            str(docs),
            "--base-url",
            f"{server.url}/v1",
            "--model",
            "openai:m",
        )
        shown = await terminal.run_beside(*words, "--max-tokens", "50")
        sent = server.requests[0].json()
    assert shown.code == 0
    assert shown.out == "Three days [1], surely [7].\n\n[1] refunds.md, Refunds\n"
    assert shown.err.splitlines()[-1] == f"openai:m at {server.url}/v1"
    assert (sent["model"], sent["max_tokens"]) == ("m", 50)
    assert "Refunds take three working days." in json.dumps(sent["messages"])


async def test_json_of_a_model_says_which_and_cites_within_its_sources(
    terminal: Terminal, docs: Path
) -> None:
    async with WireServer([said("Three days [1] [9].")]) as server:
        words = (
            "ask",
            "How long?",
            "--docs",
            str(docs),
            "--base-url",
            f"{server.url}/v1",
            "--model",
            "openai:m",
        )
        shown = await terminal.run_beside(*words, "--json")
    answer = json.loads(shown.out)
    expected = {"answer": "Three days [1] [9].", "cited_indexes": [1], "mode": "model", "model": "openai:m"}
    assert {key: answer[key] for key in expected} == expected


async def test_an_answer_that_breaks_off_is_shown_as_far_as_it_came(terminal: Terminal, docs: Path) -> None:
    await terminal.run_beside("ingest", str(docs))
    async with WireServer([broken_off("Three "), broken_off("Three ")]) as server:
        words = ("ask", "How long?", "--base-url", f"{server.url}/v1", "--model", "openai:m")
        plain = await terminal.run_beside(*words)
        as_json = await terminal.run_beside(*words, "--json")
    assert (plain.code, plain.out) == (6, "Three \n")
    assert plain.err.count("\n") == 2
    answer = json.loads(as_json.out)
    assert (as_json.code, answer["answer"], answer["stop_reason"]) == (6, "Three ", "error")
    assert answer["error"] in as_json.err


async def test_a_server_is_asked_for_its_models_when_none_is_named(terminal: Terminal, docs: Path) -> None:
    def reply(request: WireRequest) -> WireReply:
        if request.method == "GET":
            return WireReply(body=(b'{"data": [{"id": "nomic-embed-text"}, {"id": "qwen3"}]}',))
        return said("ok [1]")

    async with WireServer(reply) as server:
        words = ("ask", "How long?", "--docs", str(docs), "--base-url", f"{server.url}/v1", "--explain-model")
        shown = await terminal.run_beside(*words)
    assert f"openai:qwen3 at {server.url}/v1" in shown.err.splitlines()
    assert any("the first chat model it lists, qwen3" in line for line in shown.err.splitlines())


@pytest.mark.promise("docs-002")
async def test_what_the_config_file_says_reaches_the_provider(
    terminal: Terminal, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-of-mine")
    async with WireServer([said("Three days [1].")]) as server:
        Path("dialoom.toml").write_text(
            f'[model]\nname = "openai:mine"\nbase_url = "{server.url}/v1"\napi_key_env = "MY_KEY"\n',
            encoding="utf-8",
        )
        shown = await terminal.run_beside("ask", "How long?", "--docs", str(docs))
        request = server.requests[0]
    assert shown.code == 0
    assert request.json()["model"] == "mine"
    assert request.headers["authorization"] == "Bearer sk-of-mine"
    assert "sk-of-mine" not in shown.out + shown.err


def test_a_question_that_no_document_answers_is_told_so(terminal: Terminal, docs: Path) -> None:
    shown = terminal.run("ask", "Quantum zebra?", "--docs", str(docs), "--offline")
    assert (shown.code, shown.out) == (0, "Your documents hold nothing on this question.\n")


def test_each_step_to_a_model_is_explained(terminal: Terminal, docs: Path) -> None:
    shown = terminal.run("ask", "How long?", "--docs", str(docs), "--explain-model")
    sources = [line.split("  ")[0] for line in shown.err.splitlines()]
    assert sources[:9] == [
        "--model, --base-url",
        "config file",
        "DIALOOM_MODEL, DIALOOM_BASE_URL",
        "OPENAI_BASE_URL",
        "ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN",
        "OPENAI_API_KEY",
        "OLLAMA_HOST",
        "local servers",
        "offline",
    ]


def test_json_is_utf_8_in_any_locale(terminal: Terminal, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (docs / "zh.md").write_text("退款需要三个工作日。", encoding="utf-8")
    shown = terminal.run("ask", "退款要多久？", "--docs", str(docs), "--offline", "--json")
    assert "退款需要三个工作日" in json.loads(shown.out)["answer"]


async def test_a_refusal_is_shown_like_an_answer(terminal: Terminal, docs: Path) -> None:
    body = (
        event(delta={"refusal": "I will not do that."}),
        event(delta={}, finish_reason="stop"),
        b"data: [DONE]\n\n",
    )
    refused = WireReply(headers={"content-type": "text/event-stream"}, body=body)
    async with WireServer([refused]) as server:
        words = ("--docs", str(docs), "--base-url", f"{server.url}/v1", "--model", "openai:m")
        shown = await terminal.run_beside("ask", "How long?", *words)
    assert (shown.code, shown.out) == (0, "I will not do that.\n")


def test_a_document_cannot_steer_the_terminal(terminal: Terminal, docs: Path) -> None:
    text = "The quokka \x1b]0;PWNED\x07\x1b[2J weighs 3 kilos." + " It lives on islands and eats leaves." * 20
    (docs / "evil\x1b[31m\nname.md").write_text(text, encoding="utf-8")
    shown = terminal.run("ask", "How much does the quokka weigh?", "--docs", str(docs), "--offline")
    assert "weighs 3 kilos" in shown.out
    assert not {"\x1b", "\x07"} & {*shown.out, *shown.err}


def test_an_index_without_a_passage_is_said_to_be_empty(terminal: Terminal) -> None:
    SqliteVectorStore("empty.sqlite").close()
    shown = terminal.run("ask", "Anything?", "--index", "empty.sqlite", "--offline")
    assert (shown.code, shown.out) == (2, "")
    assert "the index empty.sqlite is empty; run dialoom ingest FOLDER first" in shown.err


async def test_a_server_that_says_nothing_is_given_up_in_time(terminal: Terminal, docs: Path) -> None:
    silence = WireReply(headers={"content-type": "text/event-stream"}, body=(Hold(),))
    async with WireServer([silence] * 9) as server:
        words = (
            "ask",
            "How long?",
            "--docs",
            str(docs),
            "--base-url",
            f"{server.url}/v1",
            "--model",
            "openai:m",
        )
        shown = await terminal.run_beside(*words, "--timeout", "0.2")
    assert (shown.code, shown.out) == (6, "")
    assert re.search(r"did not finish within 0\.\d s", shown.err.splitlines()[-1])


async def test_sources_are_numbered_and_listed_as_the_answer_cites_them(
    terminal: Terminal, docs: Path
) -> None:
    (docs / "shipping.md").write_text("# Shipping\n\nRefunds of shipping take longer.", encoding="utf-8")
    async with WireServer([said("Longer [2], three days [1].")]) as server:
        words = ("--docs", str(docs), "--base-url", f"{server.url}/v1", "--model", "openai:m")
        shown = await terminal.run_beside("ask", "How long do refunds take?", *words)
    answered, _, *listed = shown.out.splitlines()
    assert answered == "Longer [1], three days [2]."
    assert listed == ["[1] shipping.md, Shipping", "[2] refunds.md, Refunds"]


class Screen(io.StringIO):
    """A terminal, as far as a stream can tell."""

    def isatty(self) -> bool:
        return True


async def test_who_is_waited_for_is_shown_after_two_seconds_and_gone_with_the_first_word() -> None:
    clock, screen = ManualClock(), Screen()
    async with waiting_for("openai:m", screen, clock=clock) as stop:
        await settle()
        await clock.advance(1.9)
        assert screen.getvalue() == ""
        await clock.advance(0.2)
        assert screen.getvalue() == "waiting for openai:m ..."
        stop()
    assert screen.getvalue() == "waiting for openai:m ...\r\x1b[K"


async def test_an_answer_that_comes_at_once_is_not_waited_for() -> None:
    clock, screen = ManualClock(), Screen()
    async with waiting_for("openai:m", screen, clock=clock) as stop:
        await settle()
        stop()
        await clock.advance(9)
    assert screen.getvalue() == ""


async def test_nobody_is_told_who_is_waited_for_where_there_is_no_terminal() -> None:
    clock, log = ManualClock(), io.StringIO()
    async with waiting_for("openai:m", log, clock=clock) as stop:
        await clock.advance(9)
        stop()
    assert log.getvalue() == ""
