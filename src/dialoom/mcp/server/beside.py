"""Work that goes on beside something else, and no longer than that."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager


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
        first, *others = failures.exceptions
        raise (failures if others else first) from None
