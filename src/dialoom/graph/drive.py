"""Running a coroutine that never waits, without an event loop."""

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return what `coroutine` returns. Raises RuntimeError when it waits: there is no loop to wake it."""
    try:
        coroutine.send(None)
    except StopIteration as finished:
        return finished.value
    coroutine.close()
    raise RuntimeError("this code waits for an event loop; declare it with async def, and the run gets one")
