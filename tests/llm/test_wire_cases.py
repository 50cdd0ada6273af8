"""Every wire case gives the same right outcome, however its bytes are cut."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from dialoom.llm import (
    ChatOptions,
    ChatResponse,
    OpenAIProvider,
    ProviderError,
    Retrying,
    RetryPolicy,
    ToolCall,
    ToolSpec,
    WireProfile,
)
from dialoom.llm.retry import ONCE
from dialoom.net import Httpx2Transport
from dialoom.testing import ManualClock
from dialoom.testing.wire import WireRequest, WireServer
from tests.llm.wire_cases import LEFT_FOR_LATER, WireCase, history_of, read_cases, ways_to_cut

CASES = read_cases()
RUN_NOW = [case for case in CASES if case.provider == "openai" and case.id not in LEFT_FOR_LATER]


class Outcome(msgspec.Struct, frozen=True):
    """What came of a case: an answer or an error, and what was sent for it."""

    answer: ChatResponse | None
    error: Any
    requests: list[WireRequest]
    waits: list[float]


async def play(case: WireCase, pieces: tuple[bytes, ...], transport: Httpx2Transport) -> Outcome:
    asked = case.request
    fields = {**asked.get("profile", {}), "streaming": asked["stream"]}
    profile = msgspec.convert(fields, WireProfile)
    tools = tuple(ToolSpec(name=name) for name in asked.get("tools", []))
    clock, waits = ManualClock(), list[float]()
    replies = case.replies(pieces, now=clock.now())
    async with WireServer(replies) as server, asyncio.TaskGroup() as group:
        provider = OpenAIProvider(
            f"{server.url}/v1", "sk-ab123456yz", transport=transport, profile=profile, clock=clock
        )
        retry = RetryPolicy() if case.then else ONCE
        options = ChatOptions(model="demo-model", tools=tools, retry=retry)
        try:
            async with provider.stream(history_of(case), options) as stream:
                async for event in stream:
                    if isinstance(event, Retrying):
                        waits.append(event.wait)
                        group.create_task(clock.advance(event.wait))
        except ProviderError as error:
            return Outcome(None, error, server.requests, waits)
        return Outcome(stream.response, None, server.requests, waits)


@pytest.mark.parametrize("case", RUN_NOW, ids=lambda case: case.id)
async def test_a_recorded_answer_is_understood_however_it_is_cut(case: WireCase) -> None:
    async with Httpx2Transport() as transport:
        for way, pieces in ways_to_cut(case).items():
            outcome = await play(case, pieces, transport)
            for check in (check_answer, check_error, check_sent):
                check(outcome, case.expect, f"{case.id} cut: {way}")


def test_each_case_runs_now_or_says_why_not() -> None:
    waiting = {case.id for case in CASES} - {case.id for case in RUN_NOW}
    assert waiting == {case.id for case in CASES if case.id in LEFT_FOR_LATER}


def check_answer(outcome: Outcome, expect: Mapping[str, Any], where: str) -> None:
    if expect["outcome"] != "ok":
        assert outcome.answer is None, where
        return
    answer = outcome.answer
    assert answer is not None, f"{where}: {outcome.error!r}"
    assert answer.attempts == len(outcome.requests) == expect.get("attempts", 1), where
    shortest, longest = expect.get("wait_s", (0, 10))
    assert all(shortest <= wait <= longest for wait in outcome.waits), where
    assert answer.finish_reason == expect.get("finish_reason", "stop"), where
    for call, wanted in zip(answer.tool_calls, expect["tool_calls"], strict=True):
        check_call(call, wanted)
    assert len({call.id for call in answer.tool_calls}) == len(answer.tool_calls), where
    if "text" in expect:
        assert answer.text == expect["text"], where
    assert len(answer.text) == expect.get("text_len", len(answer.text)), where
    assert answer.reasoning == expect.get("reasoning", ""), where
    assert answer.message.refusal == expect.get("refusal", ""), where
    if "usage" in expect:
        reported = {name: getattr(answer.usage, name) for name in expect["usage"]}
        assert reported == expect["usage"], where
    assert set(expect.get("warnings", [])) <= set(answer.warnings), where
    assert ("prompt_truncated_by_server" in answer.warnings) == bool(expect.get("warnings")), where


def check_call(call: ToolCall, wanted: Mapping[str, Any]) -> None:
    assert call.name == wanted["name"]
    assert call.id
    if wanted["id"].startswith("!"):
        assert call.id != wanted["id"][1:]
        assert call.provider_id == wanted["id"][1:]
    elif wanted["id"] != "*":
        assert call.id == wanted["id"]
    if wanted.get("arguments_invalid"):
        assert (call.arguments, call.problem) == (None, "truncated")
    else:
        assert (call.arguments, call.problem) == (wanted["arguments"], None)


def check_error(outcome: Outcome, expect: Mapping[str, Any], where: str) -> None:
    if expect["outcome"] == "ok":
        return
    error = outcome.error
    assert isinstance(error, ProviderError), where
    wanted = expect["error"]
    assert error.kind == wanted.get("type", error.kind), where
    assert error.retryable == wanted.get("retryable", error.retryable), where
    assert wanted.get("message_contains", "") in str(error), where
    assert (error.partial.text if error.partial else "") == expect.get("partial_text", ""), where
    assert len(outcome.requests) == expect.get("attempts", 1), where
    for shown in (str(error), repr(error)):
        assert "sk-ab" not in shown, where
        assert "\n" not in shown, where


def check_sent(outcome: Outcome, expect: Mapping[str, Any], where: str) -> None:
    if "sent" not in expect:
        return
    messages: Any = outcome.requests[0].json()["messages"]
    asked = [call["id"] for message in messages for call in message.get("tool_calls", [])]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert asked == answered, where
    assert "cancelled" in messages[-2]["content"], where
