"""One call of a model: allowed by a person where that is asked for, run, answered."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from dialoom.agent.events import ApprovalRequested, ToolFinished, ToolProgress, ToolStarted
from dialoom.agent.guards import Blocked
from dialoom.agent.pending import Approval, Approve, Decision, Deny, Edit, Question, decision_of
from dialoom.agent.spec import AgentSpec, Handoff
from dialoom.agent.task_tool import TaskTool
from dialoom.base.cancel import Cancelled
from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.graph.context import NodeContext
from dialoom.graph.frozen import freeze
from dialoom.llm.messages import Message, ToolCall, tool_result
from dialoom.llm.usage_limits import Spent
from dialoom.tools.context import Progress, ToolRun
from dialoom.tools.observe import to_bounded_plain, without_surrogates
from dialoom.tools.result import ToolResult, failed
from dialoom.tools.tool import Tool

T = TypeVar("T")

IN_DOUBT = "the program stopped while this call was under way, so it may have taken effect or not; look first"
DENIED = "a person did not allow this call, so it was not run"
MAX_REASON = 500
MAX_SHOWN_BYTES = 256 * 1024
_log = logging.getLogger("dialoom.agent")


class CallEnd(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a call came to: the message for the model, the card for people as JSON values, who goes on."""

    message: Message
    card: object = None
    agent: str = ""
    spent: Spent = Spent()


class CallWork:
    """The work of one call, in the task `ctx` of the engine. `said` is what the model said with it."""

    def __init__(self, spec: AgentSpec, ctx: NodeContext, call: ToolCall, *, said: str) -> None:
        self.call = call
        self._spec = spec
        self._ctx = ctx
        self._nest = ctx.nest()
        self._said = said
        self._agent = ""
        self._spent = Spent()

    async def end(self) -> CallEnd:
        """Carry the call out. Raises `Interrupted` while a person is waited for, `Cancelled` when stopped."""
        allowed = await self._allowed()
        shown = self.call if isinstance(allowed, ToolResult) else allowed
        await self._spec.tell(self._ctx, ToolStarted(call=shown))
        if isinstance(allowed, ToolResult):
            return await self._ended(allowed)
        result = await self._judged(await self._run(allowed), allowed)
        if allowed.arguments != self.call.arguments:
            note = f"\n[the arguments were changed to {allowed.raw}]"
            result = msgspec.structs.replace(result, content=result.content + note)
        return await self._ended(result)

    async def _allowed(self) -> ToolCall | ToolResult:
        """Return the call to run, or what the model reads because none is run."""
        call = await self._passed(self.call)
        tool = self._spec.tools.get(self.call.name)
        if isinstance(call, ToolResult) or tool is None:
            return call
        if tool.options.requires_approval:
            match await self._decision(tool, call):
                case Deny(reason=reason):
                    words = one_line(reason, MAX_REASON) or DENIED
                    return failed("denied", tool=call.name, more={"message": words})
                case Edit(arguments=arguments):
                    call = await self._passed(_edited(call, arguments))
                case Approve():
                    pass
            if isinstance(call, ToolResult):
                return call
        if not tool.options.idempotent and not isinstance(tool, TaskTool) and not await self._is_first_try():
            return failed("in_doubt", tool=call.name, more={"message": IN_DOUBT})
        return call

    async def _passed(self, call: ToolCall) -> ToolCall | ToolResult:
        """Return the call as tool and guards let it pass, or what the model reads because they do not."""
        tools, settings = self._spec.tools, self._spec.settings
        refusal = tools.refusal(call, policy=settings.policy)
        if refusal is not None:
            return refusal
        passed = await settings.guards.check_call(call)
        if isinstance(passed, Blocked):
            return _blocked(passed, call.name)
        return passed.value if passed.value is call else tools.refusal(passed.value) or passed.value

    async def _decision(self, tool: Tool, call: ToolCall) -> Decision:
        """Return what a person decided; asks when nobody has yet."""
        approval = Approval(
            id=call.id,
            tool=call.name,
            arguments=call.arguments or {},
            reason=one_line(self._said, MAX_REASON),
            schema=dict(tool.parameters_schema()),
        )
        if not self._nest.memo.answers:
            await self._spec.tell(self._ctx, ApprovalRequested(approval=approval))
        return self._ctx.interrupt(approval, key="approval", schema=self._fitting)

    def _fitting(self, answer: object) -> Decision:
        """Return the decision. Raises `UsageError` for one that decides nothing or cannot be run."""
        decision = decision_of(answer)
        if isinstance(decision, Edit):
            violations = self._spec.tools.validate(self.call.name, decision.arguments)
            if violations:
                raise UsageError("; ".join(f"{each.path}: {each.message}" for each in violations))
        return decision

    async def _is_first_try(self) -> bool:
        """Note durably that the call begins; return False when a run that died had noted it already.

        A call that paused to ask something has not died: it begins anew with each answer.
        """
        fresh = False

        async def begin() -> bool:
            nonlocal fresh
            fresh = True
            return True

        await self._ctx.aonce(f"begun/{len(self._nest.memo.answers)}", begin)
        return fresh

    async def _run(self, call: ToolCall) -> ToolResult:
        ctx, nest, tools = self._ctx, self._nest, self._spec.tools
        tool = tools.get(call.name)
        if isinstance(tool, TaskTool):
            result, self._spent = await tool.run_in(dict(call.arguments or {}), ctx)
            return result
        run = ToolRun(
            run_id=ctx.run_id,
            cancel=nest.scope,
            deps=ctx.deps,
            on_progress=self._show,
            clock=nest.clock,
            journal=_CallJournal(ctx, call),
        )
        result = await tools.execute_checked(call, run, policy=self._spec.settings.policy)
        if result.cancelled and ctx.stop_requested:
            raise Cancelled  # the run is stopped: the call stays open, and a resumed run takes it up
        if isinstance(tool, Handoff) and not result.is_error:
            self._agent = tool.target.name
        return result

    async def _judged(self, result: ToolResult, call: ToolCall) -> ToolResult:
        """Return what the guards let the model read of a result."""
        guards = self._spec.settings.guards
        if not guards.after_tool:
            return result
        passed = await guards.check_result(result.content, call)
        if isinstance(passed, Blocked):
            return _blocked(passed, call.name)
        return msgspec.structs.replace(result, content=passed.value)

    def _show(self, progress: Progress) -> None:
        notice = ToolProgress(call_id=progress.call_id, tool=progress.tool, value=progress.value)
        self._spec.tell_now(self._ctx, notice)

    async def _ended(self, result: ToolResult) -> CallEnd:
        call = self.call
        content, is_error, files = result.content, result.is_error, result.files
        finished = ToolFinished(
            call_id=call.id, tool=call.name, content=content, is_error=is_error, files=files
        )
        await self._spec.tell(self._ctx, finished)
        message = tool_result(call.id, content, name=call.name, is_error=is_error, files=files)
        return CallEnd(
            message=message, card=_card_of(result, call.name), agent=self._agent, spent=self._spent
        )


class _CallJournal:
    """The memory of a task, for the tool that it runs."""

    def __init__(self, ctx: NodeContext, call: ToolCall) -> None:
        self._ctx = ctx
        self._call = call

    def once(self, key: str, effect: Callable[[], T]) -> T:
        return self._ctx.once(f"tool/{key}", effect)

    async def aonce(self, key: str, effect: Callable[[], Awaitable[T]]) -> T:
        return await self._ctx.aonce(f"tool/{key}", effect)

    def ask(self, payload: object, *, key: str, refused: str) -> Any:
        call, shown = self._call, _shown(payload)
        question = Question(id=call.id, tool=call.name, payload=shown, refused=refused)
        return self._ctx.interrupt(question, key=f"tool/{key}")


def _edited(call: ToolCall, arguments: Mapping[str, object]) -> ToolCall:
    plain = dict(arguments)
    raw = msgspec.json.encode(plain).decode()
    return msgspec.structs.replace(call, arguments=plain, raw=raw, problem=None)


def _blocked(blocked: Blocked, tool: str) -> ToolResult:
    return failed("blocked", tool=tool, more={"message": one_line(str(blocked), MAX_REASON)})


def _card_of(result: ToolResult, tool: str) -> object:
    if result.card is None:
        return None
    try:
        return _shown(result.card)
    except Exception:  # noqa: BLE001 - seam: a foreign card writes itself here
        _log.exception("card of a tool cannot be kept", extra={"tool": tool})
        return None


def _shown(value: object) -> object:
    """Return what a tool shows to people as JSON values that any store keeps. Raises what `value` raises."""
    plain = without_surrogates(to_bounded_plain(value))
    size = len(msgspec.json.encode(plain))
    if size > MAX_SHOWN_BYTES:
        raise UsageError(f"{size} bytes are to be shown, at most {MAX_SHOWN_BYTES} are; show less")
    return freeze(plain)
