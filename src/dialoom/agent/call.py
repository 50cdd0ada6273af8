"""One call of a model: allowed by a person where that is asked for, run, answered."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from dialoom.agent.events import ApprovalRequested, ToolFinished, ToolProgress, ToolStarted
from dialoom.agent.pending import Approval, Decision, Deny, Edit, Question, decision_of
from dialoom.agent.spec import AgentSpec
from dialoom.base.cancel import Cancelled
from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.graph.context import NodeContext
from dialoom.llm.messages import Message, ToolCall, tool_result
from dialoom.tools.context import Progress, ToolRun
from dialoom.tools.observe import to_plain
from dialoom.tools.result import ToolResult, failed
from dialoom.tools.tool import Tool

T = TypeVar("T")

IN_DOUBT = "the program stopped while this call was under way, so it may have taken effect or not; look first"
DENIED = "a person did not allow this call, so it was not run"
MAX_REASON = 500
_log = logging.getLogger("dialoom.agent")


class CallEnd(msgspec.Struct, frozen=True):
    """What a call came to: the message for the model, and the card for people, as JSON values."""

    message: Message
    card: object = None


class CallWork:
    """The work of one call, in the task `ctx` of the engine. `said` is what the model said with it."""

    def __init__(self, spec: AgentSpec, ctx: NodeContext, call: ToolCall, *, said: str) -> None:
        self.call = call
        self._spec = spec
        self._ctx = ctx
        self._said = said

    async def end(self) -> CallEnd:
        """Carry the call out. Raises `Interrupted` while a person is waited for, `Cancelled` when stopped."""
        call, registry = self.call, self._spec.tools
        tool = registry.get(call.name)
        if tool is None or call.arguments is None or registry.validate(call.name, call.arguments):
            return await self._ended(await registry.execute(call, policy=self._spec.settings.policy))
        decision = await self._decision(tool) if tool.options.requires_approval else None
        if isinstance(decision, Deny):
            reason = one_line(decision.reason, MAX_REASON) or DENIED
            return await self._ended(failed("denied", tool=call.name, more={"message": reason}))
        if isinstance(decision, Edit):
            call = _edited(call, decision.arguments)
        if not tool.options.idempotent and not await self._is_first_try():
            return await self._ended(failed("in_doubt", tool=call.name, more={"message": IN_DOUBT}))
        result = await self._run(call)
        if isinstance(decision, Edit):
            note = f"\n[a person changed the arguments to {call.raw}]"
            result = msgspec.structs.replace(result, content=result.content + note)
        return await self._ended(result)

    async def _decision(self, tool: Tool) -> Decision:
        """Return what a person decided; asks when nobody has yet."""
        call, ctx = self.call, self._ctx
        schema = dict(tool.parameters_schema())
        approval = Approval(
            id=call.id,
            tool=call.name,
            arguments=call.arguments or {},
            reason=one_line(self._said, MAX_REASON),
            schema=schema,
        )
        if not ctx.has_resume:
            await ctx.aemit(ApprovalRequested(approval=approval))
        return ctx.interrupt(approval, key="approval", schema=self._fitting)

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

        A call that paused to ask something begins anew with each answer.
        """
        fresh = False

        async def begin() -> bool:
            nonlocal fresh
            fresh = True
            return True

        answers = len(self._ctx.nest().memo.answers)
        await self._ctx.aonce(f"begun/{answers}", begin)
        return fresh

    async def _run(self, call: ToolCall) -> ToolResult:
        ctx, nest = self._ctx, self._ctx.nest()
        run = ToolRun(
            run_id=ctx.run_id,
            cancel=nest.scope,
            deps=ctx.deps,
            on_progress=self._show,
            clock=nest.clock,
            journal=_CallJournal(ctx, call),
        )
        await ctx.aemit(ToolStarted(call=call))
        result = await self._spec.tools.execute(call, run, policy=self._spec.settings.policy)
        if result.cancelled and ctx.stop_requested:
            raise Cancelled  # the run is stopped: the call stays open, and a resumed run takes it up
        return result

    def _show(self, progress: Progress) -> None:
        notice = ToolProgress(call_id=progress.call_id, tool=progress.tool, value=progress.value)
        self._ctx.emit(notice)

    async def _ended(self, result: ToolResult) -> CallEnd:
        call = self.call
        finished = ToolFinished(
            call_id=call.id, tool=call.name, content=result.content, is_error=result.is_error
        )
        await self._ctx.aemit(finished)
        message = tool_result(call.id, result.content, name=call.name, is_error=result.is_error)
        return CallEnd(message, _card_of(result, call.name))


class _CallJournal:
    """The memory of a task, for the tool that it runs."""

    def __init__(self, ctx: NodeContext, call: ToolCall) -> None:
        self._ctx = ctx
        self._call = call

    def once(self, key: str, effect: Callable[[], T]) -> T:
        return self._ctx.once(f"tool/{key}", effect)

    async def aonce(self, key: str, effect: Callable[[], Awaitable[T]]) -> T:
        return await self._ctx.aonce(f"tool/{key}", effect)

    def ask(self, payload: object, *, key: str, schema: object | None) -> Any:
        question = Question(id=self._call.id, tool=self._call.name, payload=payload)
        return self._ctx.interrupt(question, key=f"tool/{key}", schema=schema)


def _edited(call: ToolCall, arguments: Mapping[str, object]) -> ToolCall:
    plain = dict(arguments)
    raw = msgspec.json.encode(plain).decode()
    return msgspec.structs.replace(call, arguments=plain, raw=raw, problem=None)


def _card_of(result: ToolResult, tool: str) -> object:
    if result.card is None:
        return None
    try:
        return to_plain(result.card)
    except Exception:  # noqa: BLE001 - seam: a foreign card writes itself here
        _log.exception("card of a tool cannot be kept", extra={"tool": tool})
        return None
