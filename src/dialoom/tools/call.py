"""One tool call from arguments to observation: tried, tried again, made fit for the model."""

import logging
from copy import deepcopy
from functools import partial

import msgspec

from dialoom.base.cancel import CancelScope
from dialoom.base.text import one_line
from dialoom.llm.files import FilePart
from dialoom.llm.json_schema import Violation
from dialoom.llm.messages import ToolCall
from dialoom.tools.attempt import Bounds, Ending, Job, LateResults, Raised, Returned, Stopped, attempt
from dialoom.tools.context import ToolContext, ToolRun
from dialoom.tools.observe import observe
from dialoom.tools.policy import ToolExecutionPolicy
from dialoom.tools.result import ToolResult, failed
from dialoom.tools.tool import ArgumentsError, Tool

MAX_RESULT_FILES = 20
"""So many files of one answer are looked at."""
_log = logging.getLogger("dialoom.tools")


class CallRunner(msgspec.Struct, frozen=True, kw_only=True):
    """Runs calls whose arguments were checked, for one run under one policy."""

    run: ToolRun
    policy: ToolExecutionPolicy
    late: LateResults

    async def answer(self, tool: Tool, call: ToolCall, args: dict[str, object]) -> ToolResult:
        """Run `tool` and return the observation. Only a `BaseException` of the tool comes through."""
        timeout = self.policy.timeout if tool.options.timeout is None else tool.options.timeout
        ending = await self._tried(tool, call, args=args, bounds=self._bounds(timeout))
        if isinstance(ending, Stopped):
            if self.run.cancel.cancelled or timeout is None:
                return stopped(tool.name)
            return failed(f"the tool took longer than {timeout:g} s", tool=tool.name, flag="timeout")
        result = await self._with_fitting_files(_observed(ending, tool.name), call)
        return await self._fitted(result, tool, call)

    def _bounds(self, timeout: float | None) -> Bounds:
        return Bounds(timeout=timeout, grace=self.policy.grace, clock=self.run.clock)

    async def _tried(self, tool: Tool, call: ToolCall, *, args: dict[str, object], bounds: Bounds) -> Ending:
        retries = self.policy.retry_idempotent if tool.options.idempotent else 0
        ending = await self._once(tool, call, args=args, bounds=bounds)
        for retry in range(retries):
            if not isinstance(ending, Raised) or isinstance(ending.error, ArgumentsError):
                break
            pause = await self._pause(self.policy.retry_delay * 2**retry)
            if isinstance(pause, Stopped):
                return pause
            ending = await self._once(tool, call, args=args, bounds=bounds)
        return ending

    async def _once(self, tool: Tool, call: ToolCall, *, args: dict[str, object], bounds: Bounds) -> Ending:
        try:
            own = deepcopy(args)  # a tool may change its arguments; the call, and the next try, must not
        except Exception as error:  # noqa: BLE001 - seam: arguments that were not checked may hold anything
            return Raised(error)
        context = ToolContext(self.run, call_id=call.id, tool_name=tool.name)
        on_stop = None if type(tool).cancel is Tool.cancel else tool.cancel
        job = Job(name=tool.name, body=partial(tool.run, own, context), on_stop=on_stop)
        try:
            return await attempt(job, context.cancel, bounds=bounds, late=self.late)
        finally:
            context.close()

    async def _pause(self, seconds: float) -> Ending:
        sleep = Job(name="pause", body=partial(self.run.clock.sleep, seconds))
        return await self._attempt(sleep, seconds=None)

    async def _fitted(self, result: ToolResult, tool: Tool, call: ToolCall) -> ToolResult:
        """Return `result` cut to what a model gets to read, with a note of what became of the rest."""
        limit = tool.options.max_result_chars or self.policy.max_result_chars
        size = len(result.content)
        if size <= limit:
            return result
        place = await self._spilled(call, result.content)
        rest = f"all of it is kept as {place}" if place else "the rest was not kept"
        note = f"\n[cut: the first {limit} of {size} characters; {rest}]"
        return msgspec.structs.replace(result, content=result.content[:limit] + note)

    async def _with_fitting_files(self, result: ToolResult, call: ToolCall) -> ToolResult:
        """Return `result` with the files that a model gets to see, and a note of each that it does not."""
        shown: list[FilePart] = []
        notes: list[str] = []
        room = self.policy.max_result_file_bytes
        for file in result.files[:MAX_RESULT_FILES]:
            if len(file.data) <= room:
                room -= len(file.data)
                shown.append(file)
            else:
                notes.append(await self._left_out(file, call))
        if len(result.files) > MAX_RESULT_FILES:
            notes.append(f"[{len(result.files) - MAX_RESULT_FILES} more files were not kept]")
        if not notes:
            return result
        content = "\n".join([*notes, result.content])  # in front, where no bound on the text cuts them off
        return msgspec.structs.replace(result, content=content, files=tuple(shown))

    async def _left_out(self, file: FilePart, call: ToolCall) -> str:
        place = await self._spilled(call, file.data_url)
        rest = f"it is kept as {place}" if place else "it was not kept"
        return f"[too large to show: {file.told}; {rest}]"

    async def _spilled(self, call: ToolCall, text: str) -> str:
        if self.policy.spill is None:
            return ""
        keep = Job(name="spill", body=partial(self.policy.spill, call, text))
        ending = await self._attempt(keep, seconds=self.policy.timeout)
        if isinstance(ending, Returned) and isinstance(ending.value, str):
            return one_line(ending.value)
        error = ending.error if isinstance(ending, Raised) else None
        _log.warning("full result of a tool not kept", exc_info=error, extra={"tool": call.name})
        return ""

    async def _attempt(self, job: Job, *, seconds: float | None) -> Ending:
        scope = CancelScope(self.run.cancel)
        try:
            return await attempt(job, scope, bounds=self._bounds(seconds), late=self.late)
        finally:
            scope.close()


def refused(tool: str, violations: tuple[Violation, ...]) -> ToolResult:
    """Return the observation for arguments that the tool cannot take."""
    listed = [{"path": one_line(each.path), "message": one_line(each.message)} for each in violations]
    return failed("invalid_arguments", tool=tool, more={"violations": listed})


def stopped(tool: str) -> ToolResult:
    """Return the observation for a call that was cancelled."""
    return failed("the call was cancelled", tool=tool, flag="cancelled")


def _observed(ending: Returned | Raised, tool: str) -> ToolResult:
    match ending:
        case Returned(value=value):
            return observe(value, tool=tool)
        case Raised(error=ArgumentsError() as error):
            return refused(tool, error.violations)
        case Raised(error=error):
            _log.debug("tool failed", exc_info=error, extra={"tool": tool})  # its words may be private
            return failed(_words(error), tool=tool)


def _words(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        text = one_line(str(error), 400)
    except Exception:  # noqa: BLE001 - seam: a foreign error words itself here
        return kind
    return f"{kind}: {text}" if text else kind
