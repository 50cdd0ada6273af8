"""Looks at what goes into an agent, comes out of it, and passes between it and its tools.

A guard is a function, plain or async, that is given the value and returns a verdict: `Allow()`,
`Replace(value)` or `Block(reason)`. Guards of one place are asked in turn, each about what those before it
left. One that raises, takes too long or returns anything else blocks: nothing passes unseen.

Exports for `dialoom.agent`: `Allow`, `Block`, `Blocked`, `Guards`, `Replace`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from typing import Generic, TypeAlias, TypeVar, cast

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.llm.messages import ToolCall

_T = TypeVar("_T")
_ARGUMENTS: type[dict[str, object]] = dict
_log = logging.getLogger("dialoom.agent")


class Allow(msgspec.Struct, frozen=True):
    """Let it pass as it is."""


class Replace(msgspec.Struct, Generic[_T], frozen=True):
    """Let `value` pass instead: other words, or other arguments of a call."""

    value: _T


class Block(msgspec.Struct, frozen=True):
    """Let nothing pass. `reason` is a line that the user, or the model that called a tool, may read."""

    reason: str


Verdict: TypeAlias = Allow | Replace[_T] | Block
Judged: TypeAlias = Verdict[_T] | Awaitable[Verdict[_T]]

TextGuard: TypeAlias = Callable[[str], Judged[str]]
CallGuard: TypeAlias = Callable[[ToolCall], Judged[dict[str, object]]]
ResultGuard: TypeAlias = Callable[[str, ToolCall], Judged[str]]


class Passed(msgspec.Struct, Generic[_T], frozen=True):
    """What may go on."""

    value: _T


class Blocked(msgspec.Struct, frozen=True):
    """Nothing may go on; `guard` is the name of the one that says so."""

    guard: str
    reason: str

    def __str__(self) -> str:
        return f"blocked by {self.guard}: {self.reason}"


class Guards(msgspec.Struct, frozen=True, kw_only=True):
    """The guards of an agent.

    - `input`: see the user's words before the model does.
    - `output`: see the whole answer before it becomes the agent's; its pieces have been streamed by then.
    - `before_tool`: see a call that is about to run; `Replace` gives it other arguments, checked like any.
    - `after_tool`: see a tool's text, and the call, before the model reads it.
    - `seconds`: how long one guard may take. A plain function holds up the loop meanwhile, so one that waits
      is async.
    """

    input: tuple[TextGuard, ...] = ()
    output: tuple[TextGuard, ...] = ()
    before_tool: tuple[CallGuard, ...] = ()
    after_tool: tuple[ResultGuard, ...] = ()
    seconds: float = 30.0

    def __post_init__(self) -> None:
        if self.seconds <= 0:
            raise UsageError(f"guards have {self.seconds:g} seconds; give more than 0")
        for place in ("input", "output", "before_tool", "after_tool"):
            _refuse_no_guards(getattr(self, place), place)

    async def check_input(self, text: str) -> Passed[str] | Blocked:
        """Return the words that the model may read."""
        return await self._words(self.input, text)

    async def check_output(self, text: str) -> Passed[str] | Blocked:
        """Return the words that may be answered."""
        return await self._words(self.output, text)

    async def check_result(self, text: str, call: ToolCall) -> Passed[str] | Blocked:
        """Return the words of a tool that the model may read."""
        return await self._words(self.after_tool, text, call)

    async def check_call(self, call: ToolCall) -> Passed[ToolCall] | Blocked:
        """Return the call to run. Nobody is asked about one without arguments to run it with."""
        for guard in self.before_tool if call.arguments is not None else ():
            match await self._verdict(guard, _ARGUMENTS, call):
                case Block(reason=reason):
                    return Blocked(_name(guard), reason)
                case Replace(value=arguments):
                    rewritten = _rewritten(call, arguments)
                    if rewritten is None:
                        return Blocked(_name(guard), "it gave arguments that cannot be written as JSON")
                    call = rewritten
                case Allow():
                    pass
        return Passed(call)

    async def _words(
        self, guards: Sequence[Callable[..., Judged[str]]], text: str, *call: ToolCall
    ) -> Passed[str] | Blocked:
        for guard in guards:
            match await self._verdict(guard, str, text, *call):
                case Block(reason=reason):
                    return Blocked(_name(guard), reason)
                case Replace(value=words):
                    text = words
                case Allow():
                    pass
        return Passed(text)

    async def _verdict(self, guard: Callable[..., object], kind: type[_T], *given: object) -> Verdict[_T]:
        """Ask one guard. What it does wrong is a `Block` that says so."""
        limit = asyncio.timeout(self.seconds)
        try:
            async with limit:
                said = guard(*given)
                verdict: object = await said if isawaitable(said) else said
        except Exception as error:  # noqa: BLE001 - seam: foreign code judges here
            if limit.expired():
                return Block(f"it did not answer within {self.seconds:g} s")
            # its words may quote what was guarded
            _log.warning("guard failed", extra={"guard": _name(guard), "error": type(error).__name__})
            return Block(f"it failed: {type(error).__name__}: {one_line(str(error))}")
        match verdict:
            case Allow():
                return verdict
            case Block(reason=reason):
                return Block(one_line(reason))
            case Replace():
                value = cast("Replace[object]", verdict).value
                if isinstance(value, kind):
                    return Replace(value)
            case _:
                pass
        return Block(f"it gave no verdict on a {kind.__name__}; return Allow(), Replace(...) or Block(...)")


def _refuse_no_guards(given: object, place: str) -> None:
    guards = cast("Sequence[object]", given) if isinstance(given, tuple | list) else (None,)
    if not all(map(callable, guards)):
        raise UsageError(f"guards are functions in a tuple, as in Guards({place}=(check,)); make them that")


def _rewritten(call: ToolCall, arguments: dict[str, object]) -> ToolCall | None:
    try:
        raw = msgspec.json.encode(arguments).decode()
    except (TypeError, ValueError, RecursionError):
        return None
    return msgspec.structs.replace(call, arguments=arguments, raw=raw)


def _name(guard: object) -> str:
    return getattr(guard, "__name__", type(guard).__name__)
