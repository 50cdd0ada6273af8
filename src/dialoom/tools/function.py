"""A function that a model may call: its signature is the schema, its docstring the description."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, ParamSpec, TypeVar, cast, overload

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.tools.context import ToolContext
from dialoom.tools.signature import Signature
from dialoom.tools.tool import Tool, ToolOptions

P = ParamSpec("P")
R = TypeVar("R")


class FunctionTool(Tool, Generic[P, R]):
    """A function as a tool. Called like the function, it is the function."""

    def __init__(self, function: Callable[P, R], *, name: str, options: ToolOptions) -> None:
        functools.update_wrapper(self, function, updated=())
        self.name = name
        self.options = options
        self._function = function
        self._signature = Signature(function, name=name)
        self.description = self._signature.description

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def parameters_schema(self) -> Mapping[str, object]:
        return self._signature.schema

    def run(self, args: dict[str, object], ctx: ToolContext) -> object:
        """Call the function. Raises `ArgumentsError` when `args` do not fit its types."""
        return self._call(args, ctx)

    def _call(self, args: dict[str, object], ctx: ToolContext) -> object:
        decoded = self._signature.decode(args)
        if self._signature.context:
            decoded[self._signature.context] = ctx
        function = cast("Callable[..., object]", self._function)
        return function(**decoded)


class AsyncFunctionTool(FunctionTool[P, R]):
    """A coroutine function as a tool; it runs on the event loop."""

    async def run(self, args: dict[str, object], ctx: ToolContext) -> object:
        return await cast("Awaitable[object]", self._call(args, ctx))


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    requires_approval: bool = False,
    timeout: float | None = None,
    idempotent: bool = False,
    max_result_chars: int | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    requires_approval: bool = False,
    timeout: float | None = None,
    idempotent: bool = False,
    max_result_chars: int | None = None,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a function: `@tool`, or `@tool(timeout=10)` with the fields of `ToolOptions`.

    Every parameter needs a type hint; one of type `ToolContext` is filled in and hidden. A parameter is
    described by `Annotated[int, "words"]`, by a line `name: words` of the docstring, or in its `Args:`.
    Raises `UsageError` for what is no function, and when its signature cannot be written as JSON Schema.
    """
    options = ToolOptions(
        requires_approval=requires_approval,
        timeout=timeout,
        idempotent=idempotent,
        max_result_chars=max_result_chars,
    )

    def wrap(wrapped: Callable[P, R]) -> FunctionTool[P, R]:
        kind = AsyncFunctionTool[P, R] if _is_async(wrapped) else FunctionTool[P, R]
        return kind(wrapped, name=name or _name_of(wrapped), options=options)

    if function is None:
        return wrap
    if not callable(function):
        raise UsageError(f"@tool was given {one_line(repr(function), 80)}; write @tool, or @tool(name=...)")
    return wrap(function)


def _is_async(function: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _name_of(function: Callable[..., object]) -> str:
    if isinstance(function, functools.partial):
        return _name_of(cast("functools.partial[object]", function).func)
    name: object = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__
