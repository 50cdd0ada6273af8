"""Keeps a provider within what its server allows: requests and tokens a minute, answers at a time."""

import asyncio
import sys
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial

import msgspec

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import UsageError
from dialoom.llm.around import AroundProvider
from dialoom.llm.assembly import Assembly
from dialoom.llm.closing import ClosedOnExit
from dialoom.llm.deadlines import Deadlines, seconds
from dialoom.llm.errors import ProviderError
from dialoom.llm.events import ResponseCompleted, Retrying, StreamEvent
from dialoom.llm.message_size import FILE_TOKENS
from dialoom.llm.messages import Message
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions
from dialoom.llm.provider import Provider, ResponseStream
from dialoom.llm.switch import StopSwitch
from dialoom.llm.usage import Usage

MINUTE = 60.0
_BYTES_PER_TOKEN = 4
_USUAL_ANSWER = 256


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of a `LimitedProvider`; None is no bound."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    """Prompt and answer together: guessed beforehand, counted as reported afterwards."""
    concurrency: int | None = None
    """Answers under way at a time."""
    waiting: int = 1000
    """Questions that may wait for their turn; one more is refused with kind `overloaded`."""


class LimitedProvider(AroundProvider, ClosedOnExit):
    """Asks `provider` within `limits`; questions wait in the order they came.

    In any 60 seconds no more is begun than a minute allows; a question larger than a whole minute's tokens
    waits for an empty minute. Waiting ends with the scope and with `timeouts.total` of the options. It is for
    one event loop, and it owns the provider: `aclose` closes it.
    """

    def __init__(self, provider: Provider, limits: Limits, *, clock: Clock = SYSTEM_CLOCK) -> None:
        """Raises `UsageError` on a limit below one."""
        bounds = (limits.requests_per_minute, limits.tokens_per_minute, limits.concurrency, limits.waiting)
        if any(bound is not None and bound < 1 for bound in bounds):
            raise UsageError(
                "a limit is below one, so nothing could ever be asked; leave it out for no bound"
            )
        super().__init__(provider)
        self._limits = limits
        self._clock = clock
        self._requests = Window(limits.requests_per_minute or sys.maxsize)
        self._tokens = Window(limits.tokens_per_minute or sys.maxsize)
        self._slots = asyncio.Semaphore(limits.concurrency or sys.maxsize)
        self._first_in_line = asyncio.Lock()
        self._waiting = 0

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ResponseStream]:
        """Ask for one answer; its turn is waited for when the first event is asked for."""
        assembly = Assembly()
        async with aclosing(self._events(messages, options, assembly)) as events:
            yield ResponseStream(events, assembly)

    async def _events(
        self, messages: Sequence[Message], options: ChatOptions, assembly: Assembly
    ) -> AsyncGenerator[StreamEvent, None]:
        expected = expected_tokens(messages, options)
        spent = await self._turn(expected, options)
        try:
            async with self._provider.stream(messages, options) as stream:
                async for event in stream:
                    if isinstance(event, Retrying):  # the server counts it, so it is too late to wait
                        self._requests.spend(1, self._clock.monotonic())
                        spent = self._tokens.spend(expected, self._clock.monotonic())
                    elif isinstance(event, ResponseCompleted):
                        self._tokens.correct(spent, _reported(event.response.usage, expected))
                    assembly.add(event)
                    yield event
        finally:
            self._slots.release()

    async def _turn(self, expected: int, options: ChatOptions) -> "Spent":
        """Wait until the question may be asked, and take a slot for it."""
        if self._waiting >= self._limits.waiting:
            raise ProviderError(
                "overloaded", f"{self._waiting} questions already wait for {self.id}; ask again later"
            )
        patience = options.timeouts.total

        def late(_: str) -> ProviderError:
            said = f"no turn at {self.id} came within {seconds(patience)}; ask again, or allow more time"
            return ProviderError("timeout", said)

        self._waiting += 1
        try:
            with StopSwitch(options.cancel) as switch:
                bound = msgspec.structs.replace(options.timeouts, first_event=patience)
                async with Deadlines(bound, switch, clock=self._clock, late=late) as deadlines:
                    return await deadlines.wait(partial(self._next_turn, expected))
        finally:
            self._waiting -= 1

    async def _next_turn(self, expected: int) -> "Spent":
        async with self._first_in_line:
            await self._slots.acquire()
            try:
                while (wait := self._seconds_left(expected)) > 0:
                    await self._clock.sleep(max(wait, 0.001))  # what is left may be a rounding error
            except BaseException:
                self._slots.release()
                raise
            now = self._clock.monotonic()
            self._requests.spend(1, now)
            return self._tokens.spend(expected, now)

    def _seconds_left(self, expected: int) -> float:
        now = self._clock.monotonic()
        return max(self._requests.wait(1, now), self._tokens.wait(expected, now))


class Spent:
    """An amount, and when it was taken."""

    def __init__(self, amount: int, at: float) -> None:
        self.amount = amount
        self.at = at


class Window:
    """What was spent within the last minute, of at most `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._spent: deque[Spent] = deque()
        self._sum = 0

    def wait(self, amount: int, now: float) -> float:
        """Return the seconds until `amount` fits, which more than the whole does once the window is empty."""
        while self._spent and self._spent[0].at + MINUTE <= now:
            self._sum -= self._spent.popleft().amount
        left = self._sum
        ready_at = now
        for spent in self._spent:
            if left + amount <= self._most:
                break
            left -= spent.amount
            ready_at = spent.at + MINUTE
        return ready_at - now

    def spend(self, amount: int, now: float) -> Spent:
        """Take `amount`."""
        spent = Spent(amount, now)
        self._spent.append(spent)
        self._sum += amount
        return spent

    def correct(self, spent: Spent, amount: int) -> None:
        """Put the true amount in place of a guess, unless that has left the window already."""
        if spent in self._spent:
            self._sum += amount - spent.amount
            spent.amount = amount


def expected_tokens(messages: Sequence[Message], options: ChatOptions) -> int:
    """Return a guess at the tokens of a question and its answer."""
    words = [text for message in messages for text in _texts(message)]
    asked = sum(len(text.encode("utf-8", "replace")) for text in words) // _BYTES_PER_TOKEN
    files = FILE_TOKENS * sum(len(message.files) for message in messages)
    return asked + files + (options.max_tokens or _USUAL_ANSWER)


def _texts(message: Message) -> list[str]:
    results = [result.content for result in message.tool_results]
    calls = [call.raw for call in message.tool_calls]
    return [message.text, *(source.text for source in message.sources), *results, *calls]


def _reported(usage: Usage, expected: int) -> int:
    if usage.input_tokens is None and usage.output_tokens is None:
        return expected
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)
