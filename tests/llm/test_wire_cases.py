"""Our providers read every wire case exactly: cut in more ways, and held to more, than others are."""

import asyncio
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
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
    chat_structured,
    user,
)
from dialoom.llm.anthropic.request import message_body
from dialoom.llm.profile import ANTHROPIC_PROFILE
from dialoom.llm.retry import ONCE
from dialoom.testing import ManualClock
from dialoom.testing.wire import WireReply, split_bytes
from dialoom.testing.wire_case import WireCase, read_cases
from dialoom.testing.wire_checks import Outcome, problems_of
from tests.llm.scripted_transport import ScriptedTransport

FILES = ("wire_cases.jsonl", "more_wire_cases.jsonl")
CASES = [case for name in FILES for case in read_cases(Path(__file__).with_name(name))]
KEY = "sk-ab123456yz"

LEFT_FOR_LATER = {
    # what the agent makes of a call: there is no agent here to be asked
    "agent": {"oai-s-unknown-tool", "oai-s-length-tool", "ant-s-max-tokens-tool"},
    # the case trims its own history; the agent's limits have their own tests
    "history_limits": {"oai-r-orphan", "ant-r-orphan"},
}


def provider_of(case: WireCase, **made: Any) -> Provider:
    if case.provider == "anthropic":
        profile = msgspec.structs.replace(ANTHROPIC_PROFILE, streaming=case.profile.streaming)
        return AnthropicProvider("http://127.0.0.1:1", KEY, profile=profile, **made)
    return OpenAIProvider("http://127.0.0.1:1/v1", KEY, profile=case.profile, **made)


class Play:
    """One question to one provider, by a clock of its own; `waits` is what passed before each retry."""

    def __init__(self, case: WireCase, pieces: tuple[bytes, ...]) -> None:
        self.waits: list[float] = []
        self._case = case
        self._clock = ManualClock(start=0)
        self._transport = ScriptedTransport([*replies(case, pieces)])
        self._provider = provider_of(case, clock=self._clock, transport=self._transport)

    async def outcome(self) -> Outcome:
        answer, value, error = None, None, None
        async with asyncio.TaskGroup() as group:
            try:
                if self._case.request.response_schema is None:
                    answer = await self._answer(group)
                else:
                    value = await self._value(self._case.request.response_schema)
            except ProviderError as failure:
                error = failure
        return Outcome(
            answer=answer,
            error=error,
            value=value,
            sent=self._transport.requests,
            replayed=replayed(answer) if answer is not None and "replay" in self._case.expect else {},
            seconds=sum(self.waits),
            secret=KEY[:5],
        )

    @property
    def _options(self) -> ChatOptions:
        retry = RetryPolicy() if self._case.then else ONCE
        return ChatOptions(model="demo-model", tools=self._case.tools, retry=retry)

    async def _value(self, schema: dict[str, Any]) -> object:
        history = self._case.history()
        return (await chat_structured(self._provider, history, schema, options=self._options)).value

    async def _answer(self, group: asyncio.TaskGroup) -> ChatResponse:
        async with self._provider.stream(self._case.history(), self._options) as stream:
            async for event in stream:
                if isinstance(event, Retrying):
                    self.waits.append(event.wait)
                    group.create_task(self._clock.advance(event.wait))
            return stream.response


def replies(case: WireCase, pieces: tuple[bytes, ...]) -> Iterator[WireReply]:
    yield case.reply(pieces, now=0)
    for later in case.then:
        yield later.reply(later.pieces, now=0)


def replayed(answer: ChatResponse) -> dict[str, object]:
    history = [user("hello"), answer.message, user("and now?")]
    body = message_body(history, ChatOptions(), profile=ANTHROPIC_PROFILE, provider="anthropic")
    return msgspec.json.decode(body)


def cuts_by_chance(case: WireCase) -> Iterator[tuple[str, tuple[bytes, ...]]]:
    """Cut the body into several pieces in three ways that are the same each time."""
    chance, body = random.Random(case.id), b"".join(case.pieces)
    for number in range(3):
        cuts = [chance.randrange(1, len(body)) for _ in range(chance.randrange(1, 12))]
        yield f"by chance {number}", split_bytes(body, cuts)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_recorded_answer_is_understood_exactly_however_it_is_cut(case: WireCase) -> None:
    for way, pieces in (*case.cuts(most=2), *cuts_by_chance(case)):
        await check(Play(case, pieces), case, f"{case.id} cut {way}")


@pytest.mark.slow
@pytest.mark.timeout(600)  # one body has 70,000 places, and a busy machine is slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_recorded_answer_is_understood_exactly_cut_in_two_anywhere(case: WireCase) -> None:
    tried = 0
    for way, pieces in case.cuts():
        await check(Play(case, pieces), case, f"{case.id} cut {way}")
        tried += 1
    assert tried == 3 + len(b"".join(case.pieces)) - 1


def test_each_expectation_is_checked_or_says_why_not() -> None:
    agent = {case.id for case in CASES if "agent" in case.expect}
    limited = {case.id for case in CASES if case.request.history_limits}
    assert {"agent": agent, "history_limits": limited} == LEFT_FOR_LATER
    checked = {"outcome", "text", "text_len", "reasoning", "refusal", "finish_reason", "usage", "warnings"}
    checked |= {"tool_calls", "structured", "error", "partial_text", "attempts", "wait_s", "sent", "replay"}
    named = {name for case in CASES for name in case.expect}
    assert named - checked == {"agent", "note"}  # a note is for readers


async def check(play: Play, case: WireCase, where: str) -> None:
    outcome = await play.outcome()
    wanted = {"attempts": 1, "finish_reason": "stop", "partial_text": "", **case.expect}
    assert list(problems_of(outcome, wanted)) == [], where
    shortest, longest = wanted.get("wait_s", (0, 10))
    assert all(shortest <= wait <= longest for wait in play.waits), where
    if outcome.answer is not None:
        check_answer(outcome.answer, wanted, where)
    if isinstance(outcome.error, ProviderError):
        assert wanted["error"].get("message_contains", "") in str(outcome.error), where
    if "sent" in wanted and case.provider == "anthropic":
        check_sent_turns(outcome, where)
    elif "sent" in wanted:
        check_sent_messages(outcome, wanted["sent"], where)
    if wanted.get("replay", {}).get("byte_identical_thinking"):
        turns: Any = outcome.replayed["messages"]
        assert turns[1]["content"][0]["thinking"] == "need weather", where


def check_answer(answer: ChatResponse, wanted: Mapping[str, Any], where: str) -> None:
    assert answer.attempts == wanted["attempts"], where
    for call, each in zip(answer.tool_calls, wanted["tool_calls"], strict=True):
        assert call.problem == ("truncated" if each.get("arguments_invalid") else None), where
        if each["id"].startswith("!"):
            assert call.provider_id == each["id"][1:], where


def check_sent_messages(outcome: Outcome, wanted: Mapping[str, Any], where: str) -> None:
    messages: Any = outcome.sent[0].json()["messages"]
    asked = [call["id"] for message in messages for call in message.get("tool_calls", [])]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert asked == answered, where
    if "synthesised_result_says" in wanted:
        assert wanted["synthesised_result_says"] in messages[-2]["content"], where


def check_sent_turns(outcome: Outcome, where: str) -> None:
    turns: Any = outcome.sent[0].json()["messages"]
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
