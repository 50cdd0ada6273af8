"""A client in any language is scored by the same cases as our providers: a program on two pipes."""

import json
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from bench.wire import WireChoice, rows

from dialoom.base.errors import UsageError
from dialoom.llm import (
    ChatOptions,
    ToolCall,
    ToolSpec,
    WireProfile,
    assistant,
    chat,
    system,
    tool_result,
    user,
)
from dialoom.testing.wire_case import WireCase, read_cases
from dialoom.testing.wire_cases import CaseResult, CaseTarget, run_case
from dialoom.testing.wire_client import ClientProgram

HERE = Path(__file__).parent
CASES_FILE = HERE / "wire_cases.jsonl"
FOREIGN = (sys.executable, str(HERE / "foreign_client.py"))


def case(case_id: str) -> WireCase:
    return next(each for each in read_cases(CASES_FILE) if each.id == case_id)


async def scored(argv: tuple[str, ...], *case_ids: str, most_cuts: int = 2) -> list[CaseResult]:
    async with ClientProgram(argv) as program:
        return [await run_case(case(each), program.provider, most_cuts=most_cuts) for each in case_ids]


async def test_a_program_of_the_standard_library_is_told_what_it_reads_right_and_what_wrong() -> None:
    results = await scored(
        FOREIGN, "oai-s-long-line", "oai-s-cut-clean", "oai-s-bom", "oai-h-401", "oai-j-schema-repair"
    )
    assert [(result.id, result.runs, result.wrong) for result in results] == [
        ("oai-s-long-line", 5, 0),
        ("oai-s-cut-clean", 5, 5),
        ("oai-s-bom", 5, 5),
        ("oai-h-401", 5, 0),
        ("oai-j-schema-repair", 5, 0),
    ]
    assert [result.problems[0] for result in results if not result.ok] == [
        "as recorded: an answer where an error was due",
        "as recorded: text '', not 'ok'",
    ]


def program(body: str) -> tuple[str, ...]:
    """A client whose answer to each line, `question`, is what `body` prints."""
    head = "import json, sys\nfor line in sys.stdin:\n    question = json.loads(line)\n"
    indented = "".join(f"    {line}\n" for line in dedent(body).strip().splitlines())
    return (sys.executable, "-c", head + indented)


async def test_what_a_program_is_asked_holds_the_case_the_server_the_talk_and_the_tools() -> None:
    target = CaseTarget(
        case="mine", root="http://127.0.0.1:9", wire="openai", api_key="k", profile=WireProfile()
    )
    call = ToolCall(id="c1", name="look", arguments={"x": 1})
    talk = [system("S"), user("q"), assistant("so", calls=(call,)), tool_result("c1", "seen")]
    options = ChatOptions(model="m", tools=(ToolSpec(name="look"),), response_schema={"type": "object"})
    async with ClientProgram(program("print(json.dumps({'text': line}), flush=True)")) as echo:
        answer = await chat(echo.provider(target), talk, options)
    plain = {"content": "", "raw": None, "reasoning": "", "tool_call_id": "", "tool_calls": []}
    calls = [{"id": "c1", "name": "look", "arguments": {"x": 1}, "problem": None}]
    assert json.loads(answer.text) == {
        "case": "mine",
        "wire": "openai",
        "root": "http://127.0.0.1:9",
        "base_url": "http://127.0.0.1:9/v1",
        "api_key": "k",
        "model": "m",
        "stream": True,
        "messages": [
            {**plain, "role": "system", "content": "S"},
            {**plain, "role": "user", "content": "q"},
            {**plain, "role": "assistant", "content": "so", "tool_calls": calls},
            {**plain, "role": "tool", "content": "seen", "tool_call_id": "c1"},
        ],
        "tools": [{"name": "look", "description": "", "parameters": dict(ToolSpec(name="look").parameters)}],
        "response_schema": {"type": "object"},
    }


async def test_a_program_gets_its_own_words_back_when_the_talk_goes_on() -> None:
    sends = program("""
        import http.client
        from urllib.parse import urlsplit
        place = urlsplit(question["root"])
        blocks = [{"type": "thinking", "signature": "c2lnLTE="}, {"type": "tool_use", "id": "t"}]
        own = [{"role": "assistant", "content": message["raw"]} for message in question["messages"]
               if message["raw"]]
        server = http.client.HTTPConnection(place.hostname, place.port)
        server.request("POST", "/v1/messages", json.dumps({"messages": own}))
        server.getresponse().read()
        call = {"id": "toolu_1", "name": "lookup", "arguments": {"city": "Rome"}}
        print(json.dumps({"reasoning": "need weather", "tool_calls": [call], "raw": blocks}), flush=True)
    """)
    (result,) = await scored(sends, "ant-s-thinking-sig", most_cuts=0)
    assert not [problem for problem in result.problems if "sent back" in problem]


@pytest.mark.parametrize(
    ("reading", "case_id", "problem"),
    [
        ({"error": {"message": "no"}}, "oai-h-401", "ClientFailedError instead of a typed error"),
        ({"error": {"kind": "auth", "message": "no"}}, "oai-h-401", "0 requests, not 1"),
        ({"error": {"kind": "quota", "message": "no"}}, "oai-h-401", "error kind quota, not auth"),
        (
            {"error": {"kind": "incomplete_stream", "message": "no", "partial_text": "Half an"}},
            "oai-s-cut-clean",
            "partial text 'Half an'",
        ),
        ({"text": "hm", "reasoning": "so", "refusal": "No"}, "oai-s-bom", "text 'hm', not 'ok'"),
        ({"text": "ok", "finish_reason": "end"}, "oai-s-bom", "no answer but ClientFailedError('it wrote"),
        ([], "oai-s-bom", "no answer but ClientFailedError('it wrote what is no reading: []: "),
        (
            {"tool_calls": [{"id": "c", "name": "save_note", "problem": "truncated"}]},
            "oai-s-length-tool",
            "finish_reason 'stop', not 'length'",
        ),
    ],
)
async def test_a_reading_is_held_against_the_case(reading: Any, case_id: str, problem: str) -> None:
    (result,) = await scored(program(f"print(json.dumps({reading!r}), flush=True)"), case_id, most_cuts=0)
    assert [each for each in result.problems if each.startswith(f"whole: {problem}")], result.problems


async def test_a_program_that_ends_is_started_again_a_few_times_and_each_loss_counts() -> None:
    (result,) = await scored((sys.executable, "-c", "input(); raise SystemExit('lost')"), "oai-s-bom")
    assert (result.runs, result.wrong) == (5, 5)
    assert "ClientFailedError('it ended without an answer: lost')" in result.problems[0]
    async with ClientProgram((sys.executable, "-c", "")) as gone:
        ended = [await run_case(case("oai-s-bom"), gone.provider, most_cuts=each) for each in (0, 2)]
    assert ended[1].problems[-1].endswith("it ended 5 times and is not started again')")


async def test_a_program_that_says_nothing_is_ended_when_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dialoom.testing.wire_cases.RUN_SECONDS", 0.2)
    (result,) = await scored(program("import time; time.sleep(3600)"), "oai-s-bom", most_cuts=0)
    assert result.problems == tuple(
        f"{way}: no answer but TimeoutError()" for way in ("as recorded", "whole", "byte by byte")
    )


async def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialoom.testing.wire_client.MAX_LINE_BYTES", 1000)
    (result,) = await scored(program("print('x' * 100_000, flush=True)"), "oai-s-bom", most_cuts=0)
    assert result.problems[0].endswith("ClientFailedError('it wrote a line of more than 1000 bytes')")


async def test_a_command_that_cannot_be_started_is_refused_at_once() -> None:
    with pytest.raises(
        UsageError, match=r"cannot start no-such-program: .*; check the command of the client"
    ):
        await scored(("no-such-program",))
    with pytest.raises(UsageError, match="there is no program to start; give its command"):
        await scored(())


def test_the_bench_scores_a_program_by_its_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = CASES_FILE.read_text(encoding="utf-8").splitlines()
    (tmp_path / "two.jsonl").write_text(
        "\n".join(line for line in lines if '"oai-s-bom"' in line or '"oai-s-long-line"' in line)
    )
    choice = WireChoice(
        cases=(tmp_path / "two.jsonl",), client=f"'{sys.executable}' foreign_client.py", at=HERE, most_cuts=1
    )
    assert [(row.row, row.ours, row.theirs, row.ok) for row in rows(choice)] == [
        ("oai-s-bom", 4, 4, False),
        ("oai-s-long-line", 0, 4, True),
    ]
    assert capsys.readouterr().err == (
        "oai-s-bom: as recorded: text '', not 'ok'\n1 of 2 cases are read right in every way they were cut\n"
    )
    with pytest.raises(UsageError, match=r"the command of the client cannot be read: .*; correct its quotes"):
        rows(WireChoice(client="'python"))
