"""A question that fails is asked again, when and as often as its policy and the server allow."""

import asyncio
from email.utils import formatdate
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.cancel import Cancelled, CancelScope
from dialoom.llm import (
    Assembly,
    ChatOptions,
    ChatResponse,
    OpenAIProvider,
    Provider,
    ProviderError,
    Reply,
    ResponseCompleted,
    ResponseStarted,
    Retrying,
    RetryPolicy,
    StreamEvent,
    TextDelta,
    Timeouts,
    WireProfile,
    chat,
)
from dialoom.llm.failures import may_retry
from dialoom.llm.retry import Attempt, wait_before_retry
from dialoom.testing import ManualClock
from dialoom.testing.clock import settle
from dialoom.testing.wire import Hold, WireReply, WireServer
from tests.llm.served import HELLO, SAID, SOON, chunk, served, sse, streamed

EVEN = RetryPolicy(chance=lambda: 0.0)
RESTART = RetryPolicy(chance=lambda: 0.0, on_interrupt="restart")
BUSY = WireReply(status=503, body=(b'{"error":"busy"}',))
CUT = streamed(*SAID[:2], framing="close")
STARTED = ResponseStarted(model="demo", response_id="cc-1")


def limited(**headers: str) -> WireReply:
    body = b'{"error":{"message":"slow down","type":"rate_limit_error"}}'
    return WireReply(
        status=429, headers={name.replace("_", "-"): value for name, value in headers.items()}, body=(body,)
    )


class Played(msgspec.Struct, frozen=True):
    """What came of a question: its events, and the error they ended with."""

    events: list[StreamEvent]
    error: Any

    @property
    def waits(self) -> list[float]:
        return [event.wait for event in self.events if isinstance(event, Retrying)]


async def play(provider: Provider, clock: ManualClock, options: ChatOptions) -> Played:
    """Read an answer, moving time on by as much as is waited for."""
    events: list[StreamEvent] = []
    async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
        try:
            async with provider.stream(HELLO, options) as stream:
                async for event in stream:
                    events.append(event)
                    if isinstance(event, Retrying):
                        group.create_task(clock.advance(event.wait))
        except ProviderError as error:
            return Played(events, error)
    return Played(events, None)


async def ask(*replies: WireReply, **asked: Any) -> Played:
    """Return what comes of a question that is answered with `replies`."""
    clock, options = ManualClock(), ChatOptions(**({"retry": EVEN} | asked))
    async with served(*replies, clock=clock) as (_, provider):
        return await play(provider, clock, options)


async def hurried(asking: "asyncio.Task[ChatResponse]", clock: ManualClock) -> ChatResponse:
    """Return what a task is waiting for, with time in a hurry."""
    async with asyncio.timeout(SOON):
        while not asking.done():
            await clock.advance(0.1)
    return await asking


@pytest.mark.promise("llm-027")
async def test_a_busy_server_is_asked_again_after_a_growing_wait() -> None:
    clock = ManualClock()
    async with served(BUSY, BUSY, streamed(*SAID), clock=clock) as (server, provider):
        events = (await play(provider, clock, ChatOptions(retry=EVEN))).events
    said = f"openai at {server.url}/v1 answered 503: busy; ask again, or look into the server's log"
    assert events[:-1] == [
        Retrying(attempt=2, wait=0.5, kind="server_error", message=said),
        Retrying(attempt=3, wait=1.0, kind="server_error", message=said),
        STARTED,
        TextDelta("Hel"),
        TextDelta("lo"),
    ]
    assert isinstance(events[-1], ResponseCompleted)
    assert (events[-1].response.text, events[-1].response.attempts) == ("Hello", 3)


async def test_after_its_last_attempt_the_last_error_is_raised() -> None:
    played = await ask(BUSY, BUSY, limited())
    assert (played.error.kind, played.waits) == ("rate_limit", [0.5, 1.0])


@pytest.mark.promise("llm-026")
@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry_after": "3"}, 3.0),
        ({"retry_after": "0.75"}, 0.75),
        ({"retry_after_ms": "900", "retry_after": "7"}, 0.9),
        ({"retry_after": formatdate(1_700_000_012, usegmt=True)}, 12.0),
        ({"retry_after": formatdate(1_600_000_000, usegmt=True)}, 0.5),
        ({"retry_after": "-5"}, 0.5),
        ({"retry_after": "soon"}, 0.5),
        ({"retry_after": "nan"}, 0.5),
        ({}, 0.5),
    ],
)
async def test_a_server_is_not_asked_before_it_wants_to_be(headers: dict[str, str], wait: float) -> None:
    played = await ask(limited(**headers), streamed(*SAID))
    assert (played.error, played.waits) == (None, [wait])


async def test_a_wait_above_the_cap_fails_at_once_and_tells_how_long_it_is() -> None:
    played = await ask(limited(retry_after="86400"))
    assert (played.error.kind, played.error.retry_after, played.waits) == ("rate_limit", 86400.0, [])


async def test_the_time_for_the_whole_answer_beats_what_the_server_asks_for() -> None:
    slow = limited(retry_after="15")
    played = await ask(slow, slow, timeouts=Timeouts(total=20))
    assert (played.error.kind, played.waits) == ("rate_limit", [15.0])


async def test_an_empty_account_is_never_asked_again_unless_the_profile_says_its_code_means_less() -> None:
    body = b'{"error":{"message":"no credit","code":"insufficient_quota"}}'
    broke = WireReply(status=429, body=(body,))
    played = await ask(broke)
    assert (played.error.kind, played.error.retryable, played.waits) == ("quota", False, [])
    clock, lenient = ManualClock(), WireProfile(quota_codes=frozenset())
    async with served(broke, streamed(*SAID), clock=clock, profile=lenient) as (_, provider):
        played = await play(provider, clock, ChatOptions(retry=EVEN))
    assert (played.error, played.waits) == (None, [0.5])


@pytest.mark.parametrize(
    "reply",
    [
        WireReply(status=400, body=(b'{"error":"no"}',)),
        WireReply(status=401, body=(b'{"error":"no"}',)),
        WireReply(status=403, body=(b'{"error":"no"}',)),
        WireReply(status=404, body=(b'{"error":"no"}',)),
        WireReply(status=422, body=(b'{"error":"no"}',)),
        WireReply(status=501, body=(b'{"error":"no"}',)),
        WireReply(status=503, headers={"x-should-retry": "false"}, body=(b'{"error":"no"}',)),
        WireReply(body=(b"<html><title>Log in</title>",)),
    ],
    ids=lambda reply: str(reply.status),
)
async def test_what_cannot_help_is_not_repeated(reply: WireReply) -> None:
    played = await ask(reply)
    assert isinstance(played.error, ProviderError)
    assert played.waits == []


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_what_may_pass_is_repeated(status: int) -> None:
    played = await ask(WireReply(status=status), streamed(*SAID))
    assert (played.error, played.waits) == (None, [0.5])


@pytest.mark.promise("llm-028")
async def test_a_server_that_is_not_there_yet_is_asked_again() -> None:
    clock = ManualClock()
    async with WireServer([]) as gone:
        pass
    async with OpenAIProvider(gone.url, clock=clock) as provider:
        played = await play(provider, clock, ChatOptions(retry=EVEN))
    assert (played.error.kind, played.waits) == ("connection", [0.5, 1.0])


@pytest.mark.promise("llm-029")
async def test_after_the_first_words_nothing_is_replayed_behind_the_readers_back() -> None:
    played = await ask(CUT, streamed(*SAID))
    assert (played.error.kind, played.waits) == ("incomplete_stream", [])
    assert played.error.partial.text == "Hello"


async def test_who_chooses_so_sees_the_words_taken_back_and_the_answer_begin_anew() -> None:
    events = (await ask(CUT, streamed(*SAID), retry=RESTART)).events
    answer, folded = [STARTED, TextDelta("Hel"), TextDelta("lo")], Assembly()
    for event in events:
        folded.add(event)
    match events[3], events[-1]:
        case Retrying(attempt=2, kind="incomplete_stream", restarts=True), ResponseCompleted(response):
            assert folded.message().text == response.text == "Hello"
        case ending:
            raise AssertionError(ending)
    assert (events[:3], events[4:-1]) == (answer, answer)


async def test_a_restart_leaves_nothing_of_what_was_taken_back_in_the_partial() -> None:
    half = streamed(chunk({"content": "Old words"}), sse({"usage": {"prompt_tokens": 7}}), framing="close")
    error = (await ask(half, half, streamed(SAID[0], framing="close"), retry=RESTART)).error
    assert (error.partial.text, error.partial.usage) == ("Hel", None)


async def test_a_broken_line_in_an_answer_is_repeated_where_words_may_be_taken_back() -> None:
    broken = streamed(chunk({"content": "Hel"}), b'data: {"choices":[{"de\n\n')
    played = await ask(broken)
    assert (played.error.kind, played.error.retryable, played.waits) == ("invalid_response", False, [])
    played = await ask(broken, streamed(*SAID), retry=RESTART)
    assert (played.error, played.waits) == (None, [0.5])


async def test_a_late_server_is_asked_again_and_the_next_answer_is_not_late() -> None:
    clock, hold = ManualClock(), Hold()
    options = ChatOptions(timeouts=Timeouts(first_event=30, total=100), retry=EVEN)
    async with asyncio.timeout(SOON), served(streamed(hold), streamed(*SAID), clock=clock) as (_, provider):
        asking = asyncio.create_task(chat(provider, HELLO, options))
        await hold.reached.wait()
        await clock.advance(30)
        answer = await hurried(asking, clock)
    assert (answer.text, answer.attempts) == ("Hello", 2)


async def test_cancelling_during_a_wait_ends_it_at_once() -> None:
    clock, scope = ManualClock(), CancelScope()
    async with asyncio.timeout(SOON), served(BUSY, clock=clock) as (server, provider):
        async with provider.stream(HELLO, ChatOptions(retry=EVEN, cancel=scope)) as stream:
            assert isinstance(await anext(stream), Retrying)
            waiting = asyncio.create_task(anext(stream))
            while clock.sleeping < 1:
                await settle()
            scope.cancel()
            with pytest.raises(Cancelled):
                await waiting
        assert len(server.requests) == 1
    assert clock.sleeping == 0


policies = st.builds(
    RetryPolicy,
    attempts=st.integers(1, 50),
    first_wait=st.floats(0, 10),
    longest_wait=st.floats(0, 100),
    longest_retry_after=st.floats(0, 1000),
    on_interrupt=st.sampled_from(["raise", "restart"]),
    chance=st.floats(0, 1).map(lambda value: lambda: value),
)
attempts = st.builds(
    Attempt,
    number=st.integers(1, 2000),
    left=st.floats(-1, 2000),
    began=st.booleans(),
    spoke=st.booleans(),
)
errors = st.builds(
    lambda kind, after: ProviderError(kind, "x", reply=Reply(retry_after=after)),
    st.sampled_from(["rate_limit", "quota", "timeout", "bad_request", "invalid_response"]),
    st.none() | st.floats(0, 2000),
)


@given(policies, errors, attempts)
def test_a_wait_keeps_every_bound_it_has(policy: RetryPolicy, error: ProviderError, attempt: Attempt) -> None:
    wait = wait_before_retry(policy, error, attempt)
    if wait is None:
        return
    told = error.retry_after or 0.0
    assert told <= wait < attempt.left
    assert wait <= max(told, policy.longest_wait)
    assert told <= policy.longest_retry_after
    assert attempt.number < policy.attempts
    assert policy.on_interrupt == "restart" or not attempt.spoke
    assert error.kind not in {"quota", "bad_request"}


def test_waits_differ_by_chance_and_never_shrink_from_one_to_the_next() -> None:
    error = ProviderError("overloaded", "x")
    for chance in (0.0, 0.5, 1.0):
        policy = RetryPolicy(attempts=9, chance=lambda chance=chance: chance)
        waits = [wait_before_retry(policy, error, Attempt(number=at, left=100)) for at in range(1, 8)]
        assert waits == [min(0.5 * 2**at, 8.0) * (1 - chance / 4) for at in range(7)]


def test_a_reply_that_says_so_is_believed_about_asking_again() -> None:
    assert may_retry(400, {"x-should-retry": "true"}) is True
    assert may_retry(500, {"x-should-retry": "maybe"}) is None


def test_a_policy_is_a_value_that_a_program_can_compare_and_change() -> None:
    assert RetryPolicy() == RetryPolicy()
    assert msgspec.structs.replace(RetryPolicy(), attempts=5).attempts == 5
