"""Every wire case gives the same right outcome, however its bytes are cut."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from dialoom.llm import (
    AnthropicProvider,
    ChatOptions,
    ChatResponse,
    OpenAIProvider,
    Provider,
    ProviderError,
    Retrying,
    RetryPolicy,
    ToolCall,
    ToolSpec,
    WireProfile,
    user,
)
from dialoom.llm.anthropic.request import message_body
from dialoom.llm.profile import ANTHROPIC_PROFILE
from dialoom.llm.retry import ONCE
from dialoom.net import Httpx2Transport
from dialoom.testing import ManualClock
from dialoom.testing.wire import WireRequest, WireServer
from tests.llm.scripted_transport import ScriptedTransport
from tests.llm.wire_cases import (
    LEFT_FOR_LATER,
    WireCase,
    history_of,
    read_cases,
    two_way_cuts,
    ways_to_cut,
)

CASES = read_cases()
RUN_NOW = [case for case in CASES if case.id not in LEFT_FOR_LATER]
SHORT = [case for case in RUN_NOW if len(case.body) < 10_000]
KEY = "sk-ab123456yz"


class Outcome(msgspec.Struct, frozen=True):
    """What came of a case: an answer or an error, and what was sent for it."""

    answer: ChatResponse | None
    error: Any
    requests: list[WireRequest]
    waits: list[float]


def provider_of(case: WireCase, url: str, **made: Any) -> Provider:
    streaming = case.request["stream"]
    if case.provider == "anthropic":
        profile = msgspec.structs.replace(ANTHROPIC_PROFILE, streaming=streaming)
        return AnthropicProvider(url, KEY, profile=profile, **made)
    profile = msgspec.convert({**case.request.get("profile", {}), "streaming": streaming}, WireProfile)
    return OpenAIProvider(f"{url}/v1", KEY, profile=profile, **made)


async def play(case: WireCase, url: str, requests: list[WireRequest], **made: Any) -> Outcome:
    clock, waits = ManualClock(start=0), list[float]()
    tools = tuple(ToolSpec(name=name) for name in case.request.get("tools", []))
    retry = RetryPolicy() if case.then else ONCE
    options = ChatOptions(model="demo-model", tools=tools, retry=retry)
    provider = provider_of(case, url, clock=clock, **made)
    async with asyncio.TaskGroup() as group:
        try:
            async with provider.stream(history_of(case), options) as stream:
                async for event in stream:
                    if isinstance(event, Retrying):
                        waits.append(event.wait)
                        group.create_task(clock.advance(event.wait))
        except ProviderError as error:
            return Outcome(None, error, requests, waits)
    return Outcome(stream.response, None, requests, waits)


@pytest.mark.parametrize("case", RUN_NOW, ids=lambda case: case.id)
async def test_a_recorded_answer_is_understood_however_it_is_cut(case: WireCase) -> None:
    async with Httpx2Transport() as transport:
        for way, pieces in ways_to_cut(case).items():
            async with WireServer(case.replies(pieces, now=0)) as server:
                outcome = await play(case, server.url, server.requests, transport=transport)
            check(outcome, case, f"{case.id} cut: {way}")


@pytest.mark.slow
@pytest.mark.parametrize("case", SHORT, ids=lambda case: case.id)
async def test_a_recorded_answer_is_understood_cut_in_two_anywhere(case: WireCase) -> None:
    for pieces in two_way_cuts(case):
        transport = ScriptedTransport(case.replies(pieces, now=0))
        outcome = await play(case, "http://127.0.0.1:1", transport.requests, transport=transport)
        check(outcome, case, f"{case.id} cut at {len(pieces[0])}")


def test_each_case_runs_now_or_says_why_not() -> None:
    waiting = {case.id for case in CASES} - {case.id for case in RUN_NOW}
    assert waiting == {case.id for case in CASES if case.id in LEFT_FOR_LATER}


def check(outcome: Outcome, case: WireCase, where: str) -> None:
    check_answer(outcome, case.expect, where)
    check_error(outcome, case.expect, where)
    if "sent" in case.expect:
        checks = check_sent_messages if case.provider == "anthropic" else check_sent
        checks(outcome, where)
    if "replay" in case.expect:
        check_replay(outcome, case.expect["replay"], where)


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


def check_sent(outcome: Outcome, where: str) -> None:
    messages: Any = outcome.requests[0].json()["messages"]
    asked = [call["id"] for message in messages for call in message.get("tool_calls", [])]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert asked == answered, where
    assert "cancelled" in messages[-2]["content"], where


def check_sent_messages(outcome: Outcome, where: str) -> None:
    turns: Any = outcome.requests[0].json()["messages"]
    assert [turn["role"] for turn in turns] == [("user", "assistant")[at % 2] for at in range(len(turns))], (
        where
    )
    calls: list[str] = []
    for turn in turns:
        kinds = [block["type"] for block in turn["content"]]
        assert "thinking" not in kinds, where
        assert kinds == sorted(kinds, key=lambda kind: kind != "tool_result"), where
        results = [block["tool_use_id"] for block in turn["content"] if block["type"] == "tool_result"]
        assert results == calls, where
        calls = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]


def check_replay(outcome: Outcome, wanted: Mapping[str, Any], where: str) -> None:
    assert outcome.answer is not None
    history = [user("hello"), outcome.answer.message, user("and now?")]
    turns: Any = msgspec.json.decode(
        message_body(history, ChatOptions(), profile=ANTHROPIC_PROFILE, provider="anthropic")
    )["messages"]
    described = [block["type"] for block in turns[1]["content"]]
    for at, block in enumerate(turns[1]["content"]):
        for name in {"signature", "data"} & block.keys():
            described[at] += f"({name}={block[name]})"
    assert described == wanted["assistant_blocks"], where
    assert not wanted.get("byte_identical_thinking") or turns[1]["content"][0]["thinking"] == "need weather"
