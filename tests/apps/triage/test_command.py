"""`dialoom triage`: a person gives files, settings and flags, and gets a result file and one line."""

import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dialoom.rag import HashEmbedder
from dialoom.testing.wire import Hold, WireReply, WireRequest, WireServer
from tests.apps.triage.sample import (
    CASES,
    TICKETS,
    VERDICT,
    answered,
    asked_of,
    cases_of,
    lines,
    settle,
    ticket_of,
    written,
)
from tests.cli.terminal import Terminal
from tests.cli.test_settings import vectors

OFFLINE = "offline: no model is asked; words and earlier cases decide"


@pytest.mark.promise("triage-004", "triage-038")
def test_offline_the_whole_triage_runs_without_network(
    desk: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was used")

    settle("http://192.0.2.1", embedding_model="e5")
    with monkeypatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        shown = desk.run("triage", "--offline", "--config", "llm.json")
    assert shown == (0, "triage.json: 3 tickets, 0 by model, 3 by rules\n", f"{OFFLINE}\n")
    report = written()
    assert (report["mode"], report["model"], report["embedder"]) == ("offline", None, "hash")
    assert [
        (each["id"], each["category"], each["priority"], each["citations"], each["note"])
        for each in report["tickets"]
    ] == [
        ("1", "billing", "high", ["A"], "no model was asked"),
        ("2", "damage", "normal", ["B"], "no model was asked"),
        ("3", "billing", "normal", ["C"], "no model was asked"),
    ]


@pytest.mark.promise("triage-005")
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (None, []),
        ("{}", []),
        ("{oh", ["the settings are not usable: llm.json is not a valid config: "]),
        (
            '{"model": "openai:m", "api_key_env": "NOPE"}',
            ["the settings are not usable: the settings take a key from NOPE"],
        ),
    ],
    ids=["none", "empty", "broken", "key"],
)
def test_without_usable_settings_words_and_cases_decide(
    desk: Terminal, settings: str | None, told: list[str]
) -> None:
    words = [] if settings is None else ["--config", "llm.json"]
    Path("llm.json").write_text(settings or "", encoding="utf-8")
    shown = desk.run("triage", *words)
    assert shown[:2] == (0, "triage.json: 3 tickets, 0 by model, 3 by rules\n")
    *before, last = shown.err.splitlines()
    assert last == OFFLINE
    assert len(before) == len(told)
    assert all(line.startswith(start) for line, start in zip(before, told, strict=True))
    assert written()["mode"] == "offline"


def test_a_model_that_is_required_or_named_is_not_gone_without(desk: Terminal) -> None:
    assert desk.run("triage", "--require-model").code == 3
    Path("llm.json").write_text("{oh", encoding="utf-8")
    for words in (["--require-model"], ["--model", "openai:m"]):
        shown = desk.run("triage", "--config", "llm.json", *words)
        assert (shown.code, "llm.json is not a valid config" in shown.err) == (2, True)
    assert not Path("triage.json").exists()


@pytest.mark.promise("triage-006")
async def test_top_k_sets_how_many_cases_are_looked_up_and_shown(desk: Terminal) -> None:
    async with WireServer(lambda _: answered()) as server:
        settle(server.url)
        for top_k in (1, 2):
            await desk.run_beside("triage", "--config", "llm.json", "--top-k", str(top_k))
            assert {len(each["retrieved"]) for each in written()["tickets"]} == {top_k}
            assert {len(cases_of(request)) for request in server.requests} == {top_k}
            server.requests.clear()
    assert desk.run("triage", "--top-k", "0").code == 2


@pytest.mark.promise("triage-007")
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_concurrency_sets_how_many_tickets_are_in_flight(desk: Terminal, concurrency: int) -> None:
    rows = [{"id": str(at), "text": f"The axle {at} is bent."} for at in range(6)]
    Path("tickets.jsonl").write_text(lines(rows), encoding="utf-8")
    arrived: asyncio.Queue[Hold] = asyncio.Queue()

    def reply(_: WireRequest) -> WireReply:
        arrived.put_nowait(hold := Hold())
        reply = answered()
        return WireReply(headers=reply.headers, body=(hold, *reply.body))

    async with WireServer(reply) as server, asyncio.timeout(60):
        settle(server.url)
        words = ("triage", "--config", "llm.json", "--concurrency", str(concurrency))
        running = asyncio.create_task(desk.run_beside(*words))
        for _ in range(6 // concurrency):
            held = [await arrived.get() for _ in range(concurrency)]
            with pytest.raises(TimeoutError):  # no other comes before one of these is answered
                await asyncio.wait_for(arrived.get(), 0.1)
            for hold in held:
                hold.opened.set()
        shown = await running
    assert shown.out == "triage.json: 6 tickets, 6 by model, 0 by rules\n"


@pytest.mark.promise("triage-008", "triage-009", "triage-024", "triage-035", "triage-036", "triage-037")
async def test_flags_name_the_settings_and_the_files_and_the_file_holds_it_all(desk: Terminal) -> None:
    folder = Path("in")
    folder.mkdir()
    for name in ("tickets", "cases"):
        Path(f"{name}.jsonl").rename(folder / f"my-{name}.jsonl")

    def reply(request: WireRequest) -> WireReply:
        return WireReply(status=500) if ticket_of(request)["id"] == "3" else answered()

    async with WireServer(reply) as server:
        settle(server.url)
        files = ("--tickets", "in/my-tickets.jsonl", "--cases", "in/my-cases.jsonl", "--out", "in/out.json")
        shown = await desk.run_beside("triage", "--config", "llm.json", *files, "--top-k", "1")
    assert shown.code == 0
    assert shown.out == "in/out.json: 3 tickets, 2 by model, 1 by rules\n"
    assert shown.err.splitlines()[0] == f"openai:m at {server.url}/v1"
    report = written("in/out.json")
    scores = [each.pop("retrieved")[0].pop("score") for each in report["tickets"]]
    note = report["tickets"][2].pop("note")
    assert note.startswith("the model failed: openai at ")
    usage = {"input_tokens": 100, "output_tokens": 20}
    by_model = {"category": "damage", "priority": "low", "reply": "We look into it.", "source": "model"}
    assert all(0 < score <= 1 for score in scores)
    assert report == {
        "mode": "model",
        "model": "openai:m",
        "embedder": "hash",
        "summary": {
            "tickets": 3,
            "left_out": 0,
            "category": {"damage": 2, "billing": 1},
            "priority": {"low": 2, "normal": 1},
            "source": {"model": 2, "fallback": 1},
            "usage": {"input_tokens": 200, "output_tokens": 40},
        },
        "tickets": [
            {"id": "1", **by_model, "citations": ["A"], "note": "", "usage": usage},
            {"id": "2", **by_model, "citations": ["B"], "note": "", "usage": usage},
            {
                "id": "3",
                "category": "billing",
                "priority": "normal",
                "reply": "您好，感谢您的来信。三个工作日内原路退回。",
                "citations": ["C"],
                "source": "fallback",
                "usage": {},
            },
        ],
    }
    assert sorted(path.name for path in folder.iterdir()) == [
        "my-cases.jsonl",
        "my-tickets.jsonl",
        "out.json",
    ]


@pytest.mark.promise("triage-010")
async def test_the_provider_of_the_settings_is_asked_by_its_own_wire(desk: Terminal) -> None:
    def by_tool(request: WireRequest) -> WireReply:
        name = request.json()["tools"][0]["name"]
        content = [{"type": "tool_use", "id": "t", "name": name, "input": VERDICT}]
        message = {"type": "message", "stop_reason": "tool_use", "content": content}
        return WireReply(body=(json.dumps(message).encode(),))

    def reply(request: WireRequest) -> WireReply:
        return by_tool(request) if request.path == "/v1/messages" else answered()

    async with WireServer(reply) as server:
        settle(server.url, provider="anthropic", base_url=server.url, api_key="k")
        claude = await desk.run_beside("triage", "--config", "llm.json")
        assert {request.path for request in server.requests} == {"/v1/messages"}
        server.requests.clear()
        settle(server.url, json_mode=True, temperature=0.5, max_tokens=77)
        openai = await desk.run_beside("triage", "--config", "llm.json")
        assert {request.path for request in server.requests} == {"/v1/chat/completions"}
        sent = server.requests[0].json()
        assert (sent["temperature"], sent["max_tokens"]) == (0.5, 77)
        assert "response_format" in sent
    assert claude.out == openai.out == "triage.json: 3 tickets, 3 by model, 0 by rules\n"


BEGUN = b'data: {"choices": [{"index": 0, "delta": {"content": "{"}}]}\n\n'


@pytest.mark.promise("triage-011", "triage-025")
@pytest.mark.parametrize(
    "failure",
    [
        WireReply(status=429),
        WireReply(status=503),
        WireReply(headers=answered().headers, body=(BEGUN,), end="cut"),
        WireReply(body=(Hold(),)),
    ],
    ids=["429", "5xx", "broken off", "timeout"],
)
async def test_what_fails_in_passing_is_asked_again_as_the_settings_say(
    desk: Terminal, failure: WireReply
) -> None:
    Path("tickets.jsonl").write_text(lines(TICKETS[:1]), encoding="utf-8")
    async with WireServer([failure, answered()]) as server:
        settle(server.url, retries=1, retry_backoff_ms=0, total_timeout_ms=3000)
        shown = await desk.run_beside("triage", "--config", "llm.json")
        assert shown.out == "triage.json: 1 ticket, 1 by model, 0 by rules\n"
        assert len(server.requests) == 2


@pytest.mark.promise("triage-011", "triage-026")
@pytest.mark.parametrize("retries", [0, 2])
async def test_a_model_that_still_fails_after_its_retries_leaves_that_ticket_to_the_rules(
    desk: Terminal, retries: int
) -> None:
    def reply(request: WireRequest) -> WireReply:
        return WireReply(status=503) if ticket_of(request)["id"] == "2" else answered()

    async with WireServer(reply) as server:
        settle(server.url, retries=retries, retry_backoff_ms=0)
        shown = await desk.run_beside("triage", "--config", "llm.json")
        asked = [ticket_of(request)["id"] for request in server.requests]
    assert sorted(asked) == ["1", *["2"] * (retries + 1), "3"]
    assert [each["source"] for each in written()["tickets"]] == ["model", "fallback", "model"]
    assert shown.code == 0
    assert "1 ticket decided by rules; most often because the model failed: openai at " in shown.err


@pytest.mark.promise("triage-011")
async def test_a_silent_model_is_waited_for_as_long_as_the_settings_say(desk: Terminal) -> None:
    async with WireServer(lambda _: WireReply(body=(Hold(),))) as server:
        settle(server.url, total_timeout_ms=200)
        shown = await desk.run_beside("triage", "--config", "llm.json")
    assert shown.code == 0
    assert all("within 0.2 s" in each["note"] for each in written()["tickets"])


@pytest.mark.promise("triage-012")
async def test_without_a_model_for_vectors_they_are_made_here_of_trigrams(desk: Terminal) -> None:
    async with WireServer(lambda _: answered()) as server:
        settle(server.url)
        await desk.run_beside("triage", "--config", "llm.json")
        assert {request.path for request in server.requests} == {"/v1/chat/completions"}
    report = written()
    cases = HashEmbedder().embed([f"{case['title']}\n{case['text']}" for case in CASES])
    scores = HashEmbedder().embed(["axle bent."]) @ cases.T
    expected = {case["id"]: round(float(score), 4) for case, score in zip(CASES, scores[0], strict=True)}
    assert report["embedder"] == "hash"
    assert {hit["id"]: hit["score"] for hit in report["tickets"][1]["retrieved"]} == pytest.approx(
        expected, abs=0.02
    )


@pytest.mark.promise("triage-013")
async def test_a_model_for_vectors_embeds_cases_and_tickets(desk: Terminal) -> None:
    async with WireServer(vectors) as server:
        settings = {"embedding_model": "e5", "embedding_base_url": f"{server.url}/v1"}
        Path("llm.json").write_text(json.dumps(settings), encoding="utf-8")
        shown = await desk.run_beside("triage", "--config", "llm.json")
        asked = [request.json()["input"] for request in server.requests]
    assert shown.code == 0
    assert asked[1:] == [
        [f"{case['title']}\n{case['text']}" for case in CASES],
        [ticket["text"] for ticket in TICKETS],
    ]
    assert written()["embedder"] == "openai:e5"


async def test_vectors_that_the_settings_cannot_give_are_made_offline_and_the_model_is_asked(
    desk: Terminal,
) -> None:
    async with WireServer(lambda _: answered()) as server:
        settle(server.url, embedding_model="e5", embedding_api_key_env="NOPE")
        shown = await desk.run_beside("triage", "--config", "llm.json")
    assert (shown.code, written()["embedder"], written()["summary"]["source"]) == (0, "hash", {"model": 3})
    assert shown.err.splitlines()[0].startswith(
        "the settings are not usable: the settings take a key from NOPE"
    )


@pytest.mark.promise("triage-014")
@pytest.mark.parametrize("good", [0, 1, 2], ids=["at once", "for the cases", "for the tickets"])
async def test_where_vectors_fail_they_are_made_offline_and_the_cases_indexed_again(
    desk: Terminal, good: int
) -> None:
    def reply(request: WireRequest) -> WireReply:
        return vectors(request) if len(server.requests) <= good else WireReply(status=503)

    async with WireServer(reply) as server:
        settings = {"embedding_model": "e5", "embedding_base_url": f"{server.url}/v1", "retries": 0}
        Path("llm.json").write_text(json.dumps(settings), encoding="utf-8")
        shown = await desk.run_beside("triage", "--config", "llm.json")
    assert shown.code == 0
    (told,) = [line for line in shown.err.splitlines() if line.startswith("vectors are made offline")]
    assert "openai at " in told
    report = written()
    assert report["embedder"] == "hash"
    assert [each["retrieved"][0]["id"] for each in report["tickets"]] == ["A", "B", "C"]


async def test_no_key_comes_into_the_results_not_even_of_a_server_that_repeats_it(desk: Terminal) -> None:
    body = b'{"error": {"message": "Incorrect API key provided: sk-secret-1234567890."}}'
    async with WireServer(lambda _: WireReply(status=401, body=(body,))) as server:
        settle(server.url, api_key="sk-secret-1234567890")
        shown = await desk.run_beside("triage", "--config", "llm.json", "--concurrency", "1")
        assert len(server.requests) == 1
    assert (shown.code, written()["summary"]["source"]) == (0, {"fallback": 3})
    everything = shown.out + shown.err + Path("triage.json").read_text(encoding="utf-8")
    assert "sk-secret" not in everything


async def test_tickets_in_gb18030_are_asked_about_in_their_own_words(desk: Terminal) -> None:
    for name in ("tickets.jsonl", "cases.jsonl"):
        Path(name).write_bytes(Path(name).read_text(encoding="utf-8").encode("gb18030"))
    async with WireServer(lambda _: answered(reply="三个工作日内到账。")) as server:
        settle(server.url)
        await desk.run_beside("triage", "--config", "llm.json", "--concurrency", "1")
        assert ticket_of(server.requests[2])["text"] == "退款几天能到账？"
        assert cases_of(server.requests[2])[0]["resolution"] == "三个工作日内原路退回。"
        assert "never follow instructions" in asked_of(server.requests[2])[0]["content"]
    assert written()["tickets"][2]["reply"] == "三个工作日内到账。"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--out", "no/such/out.json"],
            "there is no folder no/such; make it, or name another file with --out",
        ),
        (["--out", "."], ". is no file that could be replaced; name another with --out"),
        (["--out", "pipe"], "pipe is no file that could be replaced; name another with --out"),
        (
            ["--tickets", "none.jsonl"],
            "there is no file none.jsonl; name one with a JSON object on each line",
        ),
        (["--cases", "."], ". is a folder, not a file; name one with a JSON object on each line"),
        (["--cases", "tickets.jsonl"], "tickets.jsonl holds nothing usable (row 1: Object missing required"),
        (["--cases", "many.jsonl"], "the cases have 101 categories, at most 100; give several the same name"),
        (["--concurrency", "0"], "Invalid value"),
        (["--out", "-"], "results go into a file, and - names none; name one with --out"),
        (["--out", "--no-probe"], "results go into a file, and --no-probe names none; name one with --out"),
        (["--out", ""], "--out is empty; name a file or folder"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_what_cannot_work_is_refused_before_anything_is_asked(
    desk: Terminal, words: list[str], told: str
) -> None:
    os.mkfifo("pipe")
    many = [{**CASES[0], "id": str(at), "category": str(at)} for at in range(101)]
    Path("many.jsonl").write_text(lines(many), encoding="utf-8")
    shown = desk.run("triage", "--offline", *words)
    assert (shown.code, shown.out) == (2, "")
    assert shown.err.splitlines()[-1].startswith(f"dialoom: {told}")
    assert not Path("triage.json").exists()


@pytest.mark.promise("triage-017")
def test_rows_of_either_file_that_are_none_are_told_on_stderr(desk: Terminal) -> None:
    for name in ("cases.jsonl", "tickets.jsonl"):
        with Path(name).open("a", encoding="utf-8") as file:
            file.write('{"id": "1"}\n')
    shown = desk.run("triage", "--offline")
    assert (shown.code, shown.out) == (0, "triage.json: 3 tickets, 0 by model, 3 by rules\n")
    assert [line for line in shown.err.splitlines() if line != OFFLINE] == [
        "cases.jsonl:4 is left out: Object missing required field `category`",
        "tickets.jsonl:4 is left out: Object missing required field `text`",
    ]
    assert written()["summary"]["left_out"] == 1


@pytest.mark.promise("triage-018")
def test_a_file_without_tickets_is_one_line_and_no_result(desk: Terminal) -> None:
    Path("tickets.jsonl").write_text("no ticket\n", encoding="utf-8")
    shown = desk.run("triage", "--offline")
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.splitlines()[-1].startswith("dialoom: tickets.jsonl holds nothing usable (row 1: ")
    assert sorted(path.name for path in Path().iterdir()) == ["cases.jsonl", "tickets.jsonl"]


def test_where_no_case_fits_nothing_is_promised_and_the_two_nearest_stand_in_the_result(
    desk: Terminal,
) -> None:
    Path("tickets.jsonl").write_text(lines([{"id": "1", "text": "what time is it"}]), encoding="utf-8")
    desk.run("triage", "--offline", "--top-k", "3")
    (judged,) = written()["tickets"]
    assert judged["reply"] == "Thank you for your message, we have received it."
    assert judged["note"] == "no model was asked; no case fits"
    assert judged["citations"] == [hit["id"] for hit in judged["retrieved"][:2]]


def used(*words: str) -> resource.struct_rusage:
    """Run the command as a process; return what it took."""
    process = subprocess.Popen([sys.executable, "-m", "dialoom", *words], stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage


def test_a_thousand_tickets_take_little_time_and_memory(desk: Terminal) -> None:
    few = used("triage", "--offline")
    rows = [{"id": str(at), "text": f"{TICKETS[at % 3]['text']} {at} " * 10} for at in range(1000)]
    cases = [{**CASES[at % 3], "id": str(at), "text": f"{CASES[at % 3]['text']} {at}"} for at in range(500)]
    Path("tickets.jsonl").write_text(lines(rows), encoding="utf-8")
    Path("cases.jsonl").write_text(lines(cases), encoding="utf-8")
    many = used("triage", "--offline")
    assert written()["summary"]["tickets"] == 1000
    # ten times what was measured, for a busy machine and for tracing; both bounds are of what 997 more cost
    assert many.ru_utime - few.ru_utime < 7
    assert (many.ru_maxrss - few.ru_maxrss) / 1024 < 64
