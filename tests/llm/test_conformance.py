"""The conformance runner finds every case read right by our providers, and what is wrong with others."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dialoom.base.errors import UsageError
from dialoom.llm import (
    Assembly,
    ChatOptions,
    ChatResponse,
    Message,
    MockProvider,
    Model,
    OpenAIProvider,
    ProviderError,
    RefusalDelta,
    ResponseStream,
    StreamEvent,
    ToolCall,
    Usage,
    assistant,
    user,
)
from dialoom.testing.wire import WireRequest
from dialoom.testing.wire_case import AskedFor, WireCase, read_cases
from dialoom.testing.wire_cases import CaseTarget, run_case, run_cases
from dialoom.testing.wire_checks import Outcome, problems_of

CASES_FILE = Path(__file__).with_name("wire_cases.jsonl")


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_our_providers_read_every_case_right_however_it_is_cut() -> None:
    results = await run_cases([CASES_FILE], most_cuts=0)  # cut in two anywhere by test_wire_cases
    assert [(result.id, result.problems) for result in results if not result.ok] == []
    assert len(results) == len(CASES_FILE.read_text(encoding="utf-8").splitlines())
    assert all(result.runs >= 3 for result in results)


def case(case_id: str) -> WireCase:
    return next(each for each in read_cases(CASES_FILE) if each.id == case_id)


async def test_a_provider_that_reads_a_case_wrong_is_told_what_and_where() -> None:
    def without_tags(target: CaseTarget) -> OpenAIProvider:
        profile = msgspec.structs.replace(target.profile, think_tags=None)
        return OpenAIProvider(target.base_url, target.api_key, profile=profile)

    result = await run_case(case("oai-s-think-split"), without_tags, most_cuts=1)
    assert (result.ok, result.runs, result.wrong) == (False, 4, 4)
    assert result.problems[0].startswith("as recorded: text '<think>plan it</think>")


class Foreign:
    """A provider of somebody else's, whose errors are not ours."""

    id = "foreign"

    async def models(self) -> tuple[Model, ...]:
        return ()

    async def aclose(self) -> None:
        pass

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions | None = None
    ) -> AsyncGenerator[ResponseStream]:
        async def broken() -> AsyncGenerator[StreamEvent, None]:
            raise ValueError("odd\nerror")
            yield  # makes this a generator

        async with aclosing(broken()) as events:
            yield ResponseStream(events, Assembly())


async def test_any_error_of_any_provider_is_scored() -> None:
    wanted_answer = await run_case(case("oai-s-bom"), lambda target: Foreign(), most_cuts=0)
    assert wanted_answer.problems[0] == "as recorded: no answer but ValueError('odd\\nerror')"
    wanted_error = await run_case(case("oai-s-cut-clean"), lambda target: Foreign(), most_cuts=0)
    assert [problem.partition(": ")[2] for problem in wanted_error.problems[:2]] == [
        "an error that shows the key or has several lines",
        "ValueError instead of a typed error",
    ]


async def test_every_place_is_cut_once_when_nobody_sets_a_limit() -> None:
    body = case("oai-s-error-string")
    size = len(b"".join(body.pieces))
    ways = dict(body.cuts())
    assert len(ways) == 3 + size - 1
    assert all(b"".join(pieces) == b"".join(body.pieces) for pieces in ways.values())
    assert [way for way, _ in body.cuts(2)][3:] == ["in two at 1", f"in two at {1 + (size - 1) // 2}"]


def answered(answer: ChatResponse, **expect: Any) -> list[str]:
    outcome = Outcome(answer=answer, sent=[request({})], secret="sk-1")
    return list(problems_of(outcome, {"outcome": "ok", **expect}))


def request(body: Any) -> WireRequest:
    return WireRequest("POST", "/", {}, msgspec.json.encode(body))


def response(message: Message, **fields: Any) -> ChatResponse:
    return ChatResponse(message=message, **{"finish_reason": "stop", **fields})


CALL = ToolCall(id="a", name="look", arguments={"x": 1}, raw='{"x":1}')


@pytest.mark.parametrize(
    ("answer", "expect", "problem"),
    [
        (response(assistant("a")), {"text": "b"}, "text 'a', not 'b'"),
        (response(assistant("a")), {"text_len": 2}, "text_len 1, not 2"),
        (response(assistant("a")), {"finish_reason": "length"}, "finish_reason 'stop', not 'length'"),
        (
            response(assistant("a"), usage=Usage(input_tokens=1)),
            {"usage": {"input_tokens": 2}},
            "input_tokens 1, not 2",
        ),
        (response(assistant("a")), {"warnings": ["w"]}, "no warning {'w'}"),
        (
            response(assistant("a"), warnings=("prompt_truncated_by_server",)),
            {},
            "warns of a cut prompt without reason",
        ),
        (response(assistant("")), {"tool_calls": [{}]}, "0 tool calls, not 1"),
        (
            response(assistant("", calls=(CALL, CALL))),
            {"tool_calls": [{"id": "a", "name": "look", "arguments": {"x": 1}}] * 2},
            "tool calls without an id of their own",
        ),
        (
            response(assistant("", calls=(CALL,))),
            {"tool_calls": [{"id": "*", "name": "n", "arguments": {"x": 1}}]},
            "tool 'look', not 'n'",
        ),
        (
            response(assistant("", calls=(CALL,))),
            {"tool_calls": [{"id": "!a", "name": "look", "arguments": {"x": 1}}]},
            "call id 'a', which the conversation knows already",
        ),
        (
            response(assistant("", calls=(CALL,))),
            {"tool_calls": [{"id": "b", "name": "look", "arguments": {"x": 1}}]},
            "call id 'a', not 'b'",
        ),
        (
            response(assistant("", calls=(CALL,))),
            {"tool_calls": [{"id": "a", "name": "look", "arguments": {}}]},
            "arguments {'x': 1}",
        ),
        (
            response(assistant("", calls=(CALL,))),
            {"tool_calls": [{"id": "a", "name": "look", "arguments_invalid": True}]},
            "arguments that were cut and could be run",
        ),
        (response(assistant("a")), {"structured": {"a": 1}}, "the value None"),
        (response(assistant("a")), {"attempts": 2}, "1 requests, not 2"),
        (response(assistant("a")), {"wait_s": [0.5, 1]}, "waited 0.00 s, not 0.5 to 1"),
        (
            response(assistant("a")),
            {"replay": {"assistant_blocks": ["text"]}},
            "sent back as []",
        ),
    ],
)
def test_each_thing_an_answer_can_get_wrong_is_named(
    answer: ChatResponse, expect: dict[str, Any], problem: str
) -> None:
    assert answered(answer, **expect) == [problem]


@pytest.mark.parametrize(
    ("error", "expect", "problem"),
    [
        (None, {}, "an answer where an error was due"),
        (ProviderError("quota", "sk-1"), {}, "an error that shows the key or has several lines"),
        (ProviderError("quota", "x"), {"error": {"type": "auth"}}, "error kind quota, not auth"),
        (ProviderError("quota", "x"), {"error": {"retryable": True}}, "retryable False"),
        (ProviderError("quota", "x"), {"partial_text": "so far"}, "partial text ''"),
    ],
)
def test_each_thing_an_error_can_get_wrong_is_named(error: Any, expect: dict[str, Any], problem: str) -> None:
    outcome = Outcome(error=error, secret="sk-1")
    assert list(problems_of(outcome, {"outcome": "error", **expect})) == [problem]


def test_an_error_without_the_words_it_should_have_is_told_about() -> None:
    expect = {"outcome": "error", "error": {"message_contains": "died"}}
    (problem,) = problems_of(Outcome(error=ProviderError("quota", "x"), secret="sk-1"), expect)
    assert problem.startswith("error")
    assert problem.endswith("without 'died'")


OPENAI_TALK = [
    {"role": "user", "content": "q"},
    {"role": "assistant", "tool_calls": [{"id": "a"}]},
    {"role": "tool", "tool_call_id": "b", "content": "done"},
]
ANTHROPIC_TALK = [
    {"role": "user", "content": [{"type": "text", "text": "q"}, {"type": "tool_result", "tool_use_id": "z"}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
    {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "tool_use", "id": "a"}],
    },
]


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        (OPENAI_TALK, {"every_call_answered": True}),
        (OPENAI_TALK, {"no_orphan_tool_results": True}),
        (OPENAI_TALK, {"synthesised_result_says": "cancelled"}),
        (OPENAI_TALK, {"last_user_kept": True}),
        (OPENAI_TALK, {"system_kept": True}),
        (OPENAI_TALK, {"first_message_role": "assistant"}),
        (ANTHROPIC_TALK, {"roles_alternate": True}),
        (ANTHROPIC_TALK, {"tool_results_in_one_user_message": True}),
        (ANTHROPIC_TALK, {"tool_results_before_text": True}),
        (ANTHROPIC_TALK, {"no_unsigned_thinking_blocks": True}),
    ],
)
def test_each_rule_of_what_is_sent_is_held(messages: Any, rule: dict[str, Any]) -> None:
    outcome = Outcome(answer=response(assistant("a")), sent=[request({"messages": messages})])
    (name,) = rule
    assert list(problems_of(outcome, {"outcome": "ok", "sent": rule})) == [f"sent against the rule {name}"]
    assert list(problems_of(outcome, {"outcome": "ok", "sent": {"a rule of tomorrow": True}})) == []


async def test_a_refusal_counts_as_part_of_the_answer() -> None:
    def refusing(target: CaseTarget) -> MockProvider:
        llm = MockProvider()
        for _ in range(3):
            llm.queue_events(RefusalDelta("No."))
        return llm

    plain = msgspec.structs.replace(case("oai-s-bom"), expect={"outcome": "ok"})
    result = await run_case(plain, refusing, most_cuts=0)
    assert result.problems[0] == "as recorded: refusal 'No.', not ''"


def test_a_file_that_holds_no_cases_is_refused_by_its_line(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text('\n{"id": "x"}\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"cases\.jsonl line 2 is no wire case: .*provider"):
        read_cases(file)
    with pytest.raises(UsageError, match=r"cannot read none\.jsonl"):
        read_cases(tmp_path / "none.jsonl")
    wrong = WireCase(
        id="x", provider="openai", request=msgspec.convert({"profile": {"think_tags": 3}}, AskedFor)
    )
    with pytest.raises(UsageError, match=r"case x: .*correct its profile"):
        wrong.check()
    file.write_text('{"id":"x","provider":"openai","body_encoding":"base64","body_chunks":["!"]}')
    with pytest.raises(UsageError, match=r"line 1 is no wire case"):
        read_cases(file)


def test_a_line_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialoom.testing.wire_case.MAX_CASE_BYTES", 10)
    file = tmp_path / "cases.jsonl"
    file.write_text('{"id": "longer than ten"}', encoding="utf-8")
    with pytest.raises(UsageError, match="line 1 is longer than 10 bytes"):
        read_cases(file)


def test_a_history_is_read_with_all_it_holds() -> None:
    limited = case("oai-r-orphan").history()
    assert [message.role for message in limited] == ["system", "assistant", "user"]
    assert case("oai-s-bom").history() == [user("hello")]
    cut = case("oai-s-silent-truncation").history()
    assert max(len(message.text) for message in cut) > 1000
