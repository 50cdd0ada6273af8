"""One answer out of as many requests as its policy allows."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import count
from typing import TypeVar

import msgspec

from dialoom.base.clock import Clock
from dialoom.llm.assembly import Assembly
from dialoom.llm.errors import ProviderError
from dialoom.llm.events import (
    FellBack,
    ResponseCompleted,
    ResponseStarted,
    Retrying,
    StreamEvent,
    UsageUpdate,
    Warned,
)
from dialoom.llm.options import ChatOptions, Timeouts
from dialoom.llm.retry import Attempt, RetryPolicy, wait_before_retry
from dialoom.llm.switch import StopSwitch

_T = TypeVar("_T")

Ask = Callable[[Timeouts], AbstractAsyncContextManager[AsyncGenerator[StreamEvent, None]]]
"""Makes one request, ended by the timeouts it is given."""

SAYS_NOTHING = (ResponseStarted, UsageUpdate, Warned, Retrying, FellBack)
"""Events that show a reader no part of an answer, so that another answer may still follow them."""


async def answer_events(
    ask: Ask, options: ChatOptions, *, assembly: Assembly, clock: Clock
) -> AsyncGenerator[StreamEvent, None]:
    """Give the events of the first request that is answered, with a `Retrying` before each later one.

    `timeouts.total` of the options bounds all requests and waits together. Raises the `ProviderError` of
    the last request; `Cancelled` at once when the scope is cancelled during a wait.
    """
    ends_at = clock.monotonic() + options.timeouts.total
    for number in count(1):
        began = spoke = False
        left = max(0.0, ends_at - clock.monotonic())
        try:
            async with ask(msgspec.structs.replace(options.timeouts, total=left)) as events:
                async for event in events:
                    began = True
                    if not spoke:
                        spoke = not isinstance(event, SAYS_NOTHING)
                    yield _numbered(event, number) if isinstance(event, ResponseCompleted) else event
            return
        except ProviderError as error:
            attempt = Attempt(number=number, left=ends_at - clock.monotonic(), began=began, spoke=spoke)
            wait = wait_before_retry(options.retry, error, attempt)
            if wait is None:
                raise
            retrying = Retrying(
                attempt=number + 1, wait=wait, kind=error.kind, message=str(error), restarts=spoke
            )
        assembly.add(retrying)
        yield retrying
        with StopSwitch(options.cancel) as switch:
            await switch.wait(partial(clock.sleep, wait))


async def repeated(
    ask: Callable[[], Awaitable[_T]],
    policy: RetryPolicy,
    *,
    switch: StopSwitch,
    clock: Clock,
    ends_at: float,
) -> _T:
    """Return what `ask` does, asked as often as its policy allows until the time `ends_at` of `clock`.

    For answers that come whole. Raises the `ProviderError` of the last request, or `Cancelled` by the switch.
    """
    number = 0
    while True:
        number += 1
        try:
            return await switch.wait(ask)
        except ProviderError as error:
            wait = wait_before_retry(policy, error, Attempt(number=number, left=ends_at - clock.monotonic()))
            if wait is None:
                raise
        await switch.wait(partial(clock.sleep, wait))


def _numbered(event: ResponseCompleted, attempts: int) -> ResponseCompleted:
    return ResponseCompleted(msgspec.structs.replace(event.response, attempts=attempts))
