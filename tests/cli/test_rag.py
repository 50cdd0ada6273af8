"""Knowledge as a process: lines of JSON in and out, over real pipes."""

import asyncio
import json
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from dialoom.cli.flags import ServiceFlags
from dialoom.stores import SqliteVectorStore
from dialoom.testing.wire import WireReply, WireServer
from tests.cli.terminal import SOON, Terminal, piped


@pytest.mark.promise("service-001", "service-003", "docs-031")
def test_questions_are_answered_over_pipes_and_stdout_holds_nothing_else(
    terminal: Terminal, docs: Path
) -> None:
    requests: list[dict[str, object]] = [
        {"id": 1, "op": "health"},
        {"id": 2, "op": "query", "query": "How long do refunds take?"},
        {"id": 3, "op": "shutdown"},
    ]
    done = piped("--docs", str(docs), "--offline", lines=requests)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    final = next(answer for answer in answers if answer.get("event") == "final")
    assert done.returncode == 0, done.stderr
    assert (answers[0]["id"], answers[0]["ok"]) == (1, True)
    assert (final["cited_indexes"], final["stop_reason"]) == ([1], "finished")
    assert "three working days" in final["answer"]
    assert answers[-1] == {"id": 3, "ok": True}
    assert "requests are read from stdin" in done.stderr


@pytest.mark.promise("service-015", "docs-031")
def test_a_read_only_replica_with_a_token_leaves_the_index_as_it_is(terminal: Terminal, docs: Path) -> None:
    terminal.run("ingest", str(docs))
    index = Path(".dialoom/knowledge.sqlite")
    before = index.read_bytes()
    requests: list[dict[str, object]] = [
        {"id": 1, "op": "health"},
        {"id": 2, "op": "ingest", "paths": [str(docs)], "auth": "secret"},
        {"id": 3, "op": "query", "query": "How long do refunds take?", "auth": "secret"},
    ]
    done = piped("--offline", "--read-only", lines=requests, DIALOOM_RAG_TOKEN="secret")
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert (answers[1]["ok"], answers[1]["error"]) == (False, "unauthorized")
    assert answers[2]["ok"] is False
    assert answers[3]["ok"] is True
    assert index.read_bytes() == before
    assert "secret" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--read-only"], 2, "a read-only service needs an index"),
        (["--docs", "nowhere"], 4, "nowhere is not a readable file or folder"),
        (["--timeout-ms", "0"], 2, "Must be >= 1"),
    ],
)
def test_a_service_that_cannot_start_says_why(
    terminal: Terminal, words: list[str], code: int, told: str
) -> None:
    shown = terminal.run("rag", "--offline", *words)
    assert (shown.code, shown.out) == (code, "")
    assert told in shown.err


CHAT = (
    b'data: {"choices": [{"index": 0, "delta": {"content": "Three days [1]."}}]}\n\n'
    b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
)
MESSAGES = (
    b'event: message_start\ndata: {"type": "message_start", "message": {"id": "m", "usage": {}}}\n\n'
    b'event: content_block_start\ndata: {"type": "content_block_start", "index": 0, '
    b'"content_block": {"type": "text", "text": ""}}\n\n'
    b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, '
    b'"delta": {"type": "text_delta", "text": "Three days [1]."}}\n\n'
    b'event: content_block_stop\ndata: {"type": "content_block_stop", "index": 0}\n\n'
    b'event: message_delta\ndata: {"type": "message_delta", "usage": {}, '
    b'"delta": {"stop_reason": "end_turn"}}\n\n'
    b'event: message_stop\ndata: {"type": "message_stop"}\n\n'
)


@pytest.mark.promise("service-004", "service-005")
@pytest.mark.parametrize(
    ("model", "path", "stream"),
    [
        ("openai:m", "/v1/chat/completions", CHAT),
        ("anthropic:m", "/v1/messages", MESSAGES),
    ],
)
async def test_the_settings_choose_who_answers_and_vectors_are_offline_unless_they_name_a_server(
    terminal: Terminal, docs: Path, model: str, path: str, stream: bytes
) -> None:
    reply = WireReply(headers={"content-type": "text/event-stream"}, body=(stream,))
    async with WireServer([reply]) as server:
        Path("other.toml").write_text(
            f'[model]\nname = "{model}"\nbase_url = "{server.url}/v1"\napi_key_env = "MY_KEY"\n'
        )
        asked: list[dict[str, object]] = [{"id": 1, "op": "query", "query": "How long do refunds take?"}]
        words = ("--docs", str(docs), "--config", "other.toml")
        done = await asyncio.to_thread(partial(piped, *words, lines=asked, MY_KEY="k"))
        assert [request.path for request in server.requests] == [path]
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["event"] for answer in answers] == ["delta"] * (len(answers) - 1) + ["final"]
    assert (answers[-1]["answer"], answers[-1]["cited_indexes"]) == ("Three days [1].", [1])
    assert "vectors: HashEmbedder, offline; name a server under [embedding]" in done.stderr
    assert "HashEmbedder" not in done.stdout


def test_ctrl_c_ends_the_service_in_one_line(terminal: Terminal, docs: Path) -> None:
    command = [sys.executable, "-m", "dialoom", "rag", "--docs", str(docs), "--offline"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with child:
        assert child.stderr is not None
        while "requests are read" not in child.stderr.readline():
            pass
        child.send_signal(signal.SIGINT)
        code = child.wait(SOON)  # with its input still open, whose end would be an end of its own
        rest = child.stderr.read()
    assert (code, rest) == (130, "dialoom: interrupted; what was finished before is kept\n")


def test_a_copy_of_the_index_is_written_on_request(terminal: Terminal, docs: Path) -> None:
    done = piped("--docs", str(docs), "--offline", lines=[{"id": 1, "op": "snapshot", "path": "copy.sqlite"}])
    assert json.loads(done.stdout) == {"id": 1, "ok": True, "path": "copy.sqlite"}
    with SqliteVectorStore("copy.sqlite", read_only=True) as copy:
        assert len(copy) == 1


def test_how_good_answers_are_is_measured_on_questions_of_ones_own(terminal: Terminal, docs: Path) -> None:
    asked = {"question": "How long do refunds take?", "doc": "refunds.md", "answer": "three working days"}
    Path("asked.jsonl").write_text((json.dumps(asked) + "\n") * 2, encoding="utf-8")
    shown = terminal.run("rag", "eval", "asked.jsonl", "--docs", str(docs), "--tune")
    assert shown.code == 0, shown.err
    assert shown.out.startswith("2 questions, 1 documents, 1 chunks")
    assert "citations: precision" in shown.out
    assert "tuned on one half" in shown.out
    smaller = terminal.run(
        "rag", "eval", "asked.jsonl", "--docs", str(docs), "--chunk-size", "30", "--overlap", "0"
    )
    assert smaller.out.startswith("2 questions, 1 documents, 3 chunks (sliding-v1/30/0/chars, ")
    refused = terminal.run("rag", "eval", "asked.jsonl", "--docs", str(docs), "--chunk-size", "2")
    assert (refused.code, refused.err) == (
        2,
        "dialoom: chunk_size must be 4 or more, not 2; give a whole number\n",
    )


def test_a_timeout_is_given_in_milliseconds() -> None:
    assert (ServiceFlags(timeout_ms=1500).timeout, ServiceFlags().timeout) == (1.5, None)
