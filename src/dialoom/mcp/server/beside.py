"""Work that goes on beside something else, and no longer than that."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import cast


@asynccontextmanager
async def beside(*work: Coroutine[object, object, None]) -> AsyncGenerator[None]:
    """Do `work` while inside, and end it then.

    Work that fails ends what is inside too. A failure of either is raised as it is and not as a group of one:
    people are told of it.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
            yield
            for task in tasks:
                task.cancel()
    except BaseExceptionGroup as failures:
        raise alone(failures) from None


def alone(error: BaseException) -> BaseException:
    """Return what a group of one holds, also where that is another such group; other errors as they are."""
    if isinstance(error, BaseExceptionGroup):
        first, *others = cast("BaseExceptionGroup[BaseException]", error).exceptions
        if not others:
            return alone(first)
    return cast("BaseException", error)
