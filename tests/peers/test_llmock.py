"""A foreign judge breaks answers in every way it knows and finds no fault with how ours are asked for."""

import importlib.util
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
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
    RetryPolicy,
    Timeouts,
    ToolSpec,
    chat,
    user,
)
from dialoom.net import Httpx2Transport
from tests.peers.judge import Judge, command, running

START = command()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        START is None, reason="NOTICE: no foreign judge: llmock is not installed (llmock==0.2.2)"
    ),
]

IN_PROCESS = pytest.mark.skipif(
    importlib.util.find_spec("llmock") is None,
    reason="NOTICE: the judge is no package of this Python, so only its verdict over HTTP is asked",
)
HELLO = [user("Say hello to the judge in some words.")]
STRICT = RetryPolicy(first_wait=0.15, longest_wait=1.0, on_interrupt="restart")
PATIENT = ChatOptions(
    model="judged",
    max_tokens=50,
    retry=STRICT,
    timeouts=Timeouts(first_event=1.0, idle=1.0, total=30.0),
)
# a busy machine may itself be silent for a second, and again
STUBBORN = msgspec.structs.replace(PATIENT, retry=msgspec.structs.replace(STRICT, attempts=6))
BROKEN = ("disconnect", "truncate", "malformed")
WIRES = ("openai", "anthropic")


def fails(status: int, times: int | None = 1, **more: Any) -> dict[str, Any]:
    return {"type": "fail", "status": status, "times": times, **more}


def breaks(kind: str, after: int, **more: Any) -> dict[str, Any]:
    return {"type": "stream_fault", "kind": kind, "after_chunks": after, **more}


OVERCOME: dict[str, list[dict[str, Any]]] = {
    "nothing": [],
    "a rate limit": [fails(429, retry_after=0.3)],
    "two rate limits": [fails(429, 2, retry_after=0.4)],
    "an overload with a wish": [fails(529, retry_after=0.3)],
    **{f"status {status}": [fails(status)] for status in (408, 409, 429, 500, 502, 503, 504, 529)},
    "status 500 twice": [fails(500, 2)],
    "status 503 and a cut": [fails(503), breaks("truncate", 2)],
    **{f"{kind} after {at}": [breaks(kind, at)] for kind in BROKEN for at in (1, 3, 5)},
    "two cuts": [breaks("truncate", 2, times=2)],
    "a stall": [breaks("stall", 3, stall_seconds=5)],
    "a slow first token": [{"type": "slow_first_token", "seconds": 2.5}],
    "a slow answer": [{"type": "delay", "seconds": 2.5}],
}  # fmt: skip
SURFACED: dict[str, tuple[list[dict[str, Any]], str]] = {
    **{
        f"status {status}": ([fails(status)], kind)
        for status, kind in {
            400: "bad_request",
            401: "auth",
            403: "auth",
            404: "bad_request",
            422: "bad_request",
        }.items()
    },
    "too long a prompt": (
        [
            fails(
                400,
                code="context_length_exceeded",
                message="This model's maximum context length was exceeded.",
            )
        ],
        "context_window",
    ),
    "an outage": ([fails(500, None)], "server_error"),
    "a rate limit without end": ([fails(429, None, retry_after=0.1)], "rate_limit"),
    "cuts without end": ([breaks("truncate", 3, times=None)], "incomplete_stream"),
}


@pytest.fixture(scope="module")
def address() -> Generator[str]:
    assert START is not None
    # a pause between chunks lets the judge see who stopped reading; without one all is sent before that
    with running(START, "--stream-chunk-delay-ms", "20") as root:
        yield root


@asynccontextmanager
async def judged(address: str, wire: str, *faults: dict[str, Any]) -> AsyncGenerator[tuple[Judge, Provider]]:
    async with Httpx2Transport() as transport:
        judge = Judge(address, transport)
        await judge.begin(*faults)
        if wire == "openai":
            yield judge, OpenAIProvider(f"{address}/v1", "k", transport=transport)
        else:
            yield judge, AnthropicProvider(f"{address}/anthropic", "k", transport=transport)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", OVERCOME)
async def test_a_fault_that_passes_is_overcome_and_the_judge_finds_nothing(
    name: str, wire: str, address: str
) -> None:
    async with judged(address, wire, *OVERCOME[name]) as (judge, provider):
        answer = await chat(provider, HELLO, STUBBORN)
        found = await judge.verdict()
    assert answer.text == "Hello! LLMock handled this request for judged."
    assert answer.finish_reason == "stop"
    assert found["findings"] == []
    assert found["attempts"] == answer.attempts


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", SURFACED)
async def test_a_fault_that_stays_is_raised_by_its_kind_after_no_more_tries_than_make_sense(
    name: str, wire: str, address: str
) -> None:
    faults, kind = SURFACED[name]
    async with judged(address, wire, *faults) as (judge, provider):
        with pytest.raises(ProviderError) as caught:
            await chat(provider, HELLO, PATIENT)
        found = await judge.verdict()
    assert caught.value.kind == kind
    # the judge blames whoever is left with a cut stream, also one that raises: see the next test
    codes = ["truncated_stream_accepted"] if kind == "incomplete_stream" else []
    assert [finding["code"] for finding in found["findings"]] == codes
    assert found["attempts"] == (3 if caught.value.retryable else 1)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("attempts", "code"), [(1, []), (10, []), (11, ["retry_storm"])])
async def test_the_judge_blames_every_client_whose_stream_is_always_cut_so_that_says_nothing_of_ours(
    attempts: int, code: list[str], wire: str, address: str
) -> None:
    # raised after one attempt or after the ten it allows: called accepted; asked once more: called a storm
    retry = RetryPolicy(attempts=attempts, first_wait=0.15, longest_wait=0.3, on_interrupt="restart")
    options = msgspec.structs.replace(PATIENT, retry=retry)
    async with judged(address, wire, breaks("truncate", 3, times=None)) as (judge, provider):
        with pytest.raises(ProviderError) as caught:
            await chat(provider, HELLO, options)
        found = await judge.verdict()
    assert (caught.value.kind, found["attempts"]) == ("incomplete_stream", attempts)
    codes = {finding["code"] for finding in found["findings"]}
    assert codes >= {"truncated_stream_accepted", *code}


FAULTS: dict[str, Callable[[Any], object]] = {
    "nothing": lambda judge: None,
    "a rate limit": lambda judge: judge.rate_limit(retry_after=0.3),
    "an overload": lambda judge: judge.fail(529),
    "a server error": lambda judge: judge.fail(500),
    "a disconnect": lambda judge: judge.disconnect(after_chunks=3),
    "a cut": lambda judge: judge.truncate(after_chunks=3),
    "two cuts": lambda judge: judge.truncate(after_chunks=2, times=2),
    "a broken chunk": lambda judge: judge.corrupt(after_chunks=3),
    "a stall": lambda judge: judge.stall(after_chunks=3, seconds=5),
    "a slow first token": lambda judge: judge.slow_first_token(2.5),
}


@IN_PROCESS
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", FAULTS)
async def test_the_judge_s_own_strict_assertion_passes(
    name: str, wire: str, request: pytest.FixtureRequest
) -> None:
    judge = request.getfixturevalue("llmock")
    judge.pace(20)
    FAULTS[name](judge)
    made = OpenAIProvider if wire == "openai" else AnthropicProvider
    async with made(judge.base_url(wire), "k") as provider:
        answer = await chat(provider, HELLO, STUBBORN)
    assert answer.finish_reason == "stop"
    judge.assert_resilient(strict=True)
    assert judge.verdict().attempts == answer.attempts


@IN_PROCESS
@pytest.mark.parametrize("wire", WIRES)
async def test_the_judge_s_own_strict_assertion_passes_for_an_error_that_is_no_use_to_repeat(
    wire: str, request: pytest.FixtureRequest
) -> None:
    judge = request.getfixturevalue("llmock")
    judge.context_overflow()
    made = OpenAIProvider if wire == "openai" else AnthropicProvider
    async with made(judge.base_url(wire), "k") as provider:
        with pytest.raises(ProviderError) as caught:
            await chat(provider, HELLO, PATIENT)
    assert caught.value.kind == "context_window"
    judge.assert_resilient(strict=True)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kind", BROKEN)
async def test_without_leave_to_restart_a_broken_answer_is_raised_with_what_was_said(
    kind: str, wire: str, address: str
) -> None:
    careful = ChatOptions(model="judged", max_tokens=50, retry=RetryPolicy(first_wait=0.1))
    async with judged(address, wire, breaks(kind, 5)) as (judge, provider):
        with pytest.raises(ProviderError) as caught:
            await chat(provider, HELLO, careful)
        found = await judge.verdict()
    assert caught.value.kind == ("invalid_response" if kind == "malformed" else "incomplete_stream")
    assert caught.value.partial is not None
    assert caught.value.partial.text
    assert found["attempts"] == 1


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("faults", "names", "problems"),
    [
        ([], ["weather", "clock"], [None, None]),
        (
            [{"type": "tool_fault", "kind": "malformed_arguments"}],
            ["weather", "clock"],
            ["truncated", None],
        ),
        ([breaks("truncate", 6)], ["weather", "clock"], [None, None]),
    ],
    ids=["whole", "malformed", "cut"],
)
async def test_tool_calls_are_whole_or_say_what_is_wrong_with_them(
    faults: list[dict[str, Any]], names: list[str], problems: list[str | None], wire: str, address: str
) -> None:
    calls = [{"name": "weather", "arguments": {"city": "Rome"}}, {"name": "clock", "arguments": {}}]
    reply = {"type": "reply", "tool_calls": calls, "times": 2}
    options = ChatOptions(
        model="judged", retry=STRICT, tools=(ToolSpec(name="weather"), ToolSpec(name="clock"))
    )
    async with judged(address, wire, reply, *faults) as (judge, provider):
        answer: ChatResponse = await chat(provider, HELLO, options)
        found = await judge.verdict()
    assert [call.name for call in answer.tool_calls] == names
    assert [call.problem for call in answer.tool_calls] == problems
    assert found["findings"] == []


@pytest.mark.parametrize("wire", WIRES)
async def test_a_real_quota_is_waited_for(wire: str) -> None:
    assert START is not None
    with running(START, "--rpm", "60") as root:
        async with judged(root, wire) as (judge, provider):
            answers = [await chat(provider, HELLO, PATIENT) for _ in range(3)]
            found = await judge.verdict()
    assert all(answer.text for answer in answers)
    assert found["findings"] == []
