"""The tool calls of one model answer, run together."""

import asyncio
from collections.abc import Sequence

import msgspec

from dialoom.base.cancel import CancelScope
from dialoom.llm.messages import ToolCall
from dialoom.tools.call import stopped
from dialoom.tools.context import ToolRun
from dialoom.tools.policy import DEFAULT_POLICY, ToolExecutionPolicy
from dialoom.tools.registry import ToolRegistry
from dialoom.tools.result import ToolResult


async def execute_calls(
    registry: ToolRegistry,
    calls: Sequence[ToolCall],
    *,
    policy: ToolExecutionPolicy = DEFAULT_POLICY,
    run: ToolRun | None = None,
) -> tuple[ToolResult, ...]:
    """Run `calls` and return their results in the order of the calls.

    They begin in that order, `policy.max_concurrency` at a time, or one after another when the policy is
    not parallel. Cancelling the run returns at once: what had not ended is told to be cancelled. What a
    tool raises as a `BaseException` stops the other calls and comes through; of several, the first call's.
    """
    run = run or ToolRun()
    scope = CancelScope(run.cancel)
    inner = msgspec.structs.replace(run, cancel=scope)
    gate = asyncio.Semaphore(policy.max_concurrency if policy.parallel else 1)

    async def answer(call: ToolCall) -> ToolResult | BaseException:
        async with gate:
            if scope.cancelled:
                return stopped(call.name)
            try:
                return await registry.execute(call, inner, policy=policy)
            except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001 - raised below, as itself and not in a group
                scope.cancel()
                return error

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(answer(call)) for call in calls]
    finally:
        scope.close()
    return tuple(_result_of(task.result()) for task in tasks)


def _result_of(outcome: ToolResult | BaseException) -> ToolResult:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
