"""Bringing news to an event loop from a thread elsewhere."""

import asyncio
from collections.abc import Callable


def post(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """Have `loop` call `call` soon; from any thread, and to no effect when the loop is closed."""
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        # closed: whoever waited there is gone too
        return


def resolve(waiter: "asyncio.Future[None]") -> None:
    """Let who awaits `waiter` go on; on the loop it lives on, any number of times."""
    if not waiter.done():
        waiter.set_result(None)
