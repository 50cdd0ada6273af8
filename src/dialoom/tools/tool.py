"""Something a model may call: a name, a schema of its parameters, and what it does."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from dialoom.base.errors import DialoomError, UsageError
from dialoom.base.text import one_line
from dialoom.llm.json_schema import Violation
from dialoom.tools.context import ToolContext


class ToolOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a tool wants to be run. None leaves a choice to the policy."""

    requires_approval: bool = False
    """A person is asked before each call. Asking is the agent's work; executing a call does not ask again."""
    timeout: float | None = None
    """Seconds for one try."""
    idempotent: bool = False
    """Running it twice with the same arguments does no harm, so it may be tried again."""
    max_result_chars: int | None = None
    """What of a longer answer a model gets to read."""

    def __post_init__(self) -> None:
        if self.timeout is not None and not self.timeout > 0:
            raise UsageError(
                f"a tool has timeout {self.timeout}; give seconds above 0, or None for the policy's"
            )
        if self.max_result_chars is not None and self.max_result_chars < 1:
            raise UsageError(f"a tool has max_result_chars {self.max_result_chars}; give at least 1")


DEFAULT_OPTIONS: Final = ToolOptions()
NO_PARAMETERS: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {},
    "additionalProperties": False,
}


class Tool(ABC):
    """Base of a tool that is a class; a function needs only `@tool`.

    `run` as a plain method runs in a worker thread, as a coroutine on the event loop. What it returns is
    made fit for the model, what it raises becomes an error the model reads.
    """

    name: str
    description: str = ""
    options: ToolOptions = DEFAULT_OPTIONS

    def parameters_schema(self) -> Mapping[str, object]:
        """Return the JSON Schema of the arguments; asked for once, when the tool is registered."""
        return NO_PARAMETERS

    @abstractmethod
    def run(self, args: dict[str, object], ctx: ToolContext) -> object:
        """Do the work. `args` match the schema."""

    def cancel(self) -> None:  # noqa: B027 - a hook: doing nothing is a good answer
        """Called from another thread when a call is given up, so that a blocked one can be freed."""


def check_tool(value: object) -> None:
    """Raise `UsageError` for what is no tool, such as a function without its decorator or a class unnamed."""
    if not isinstance(value, Tool):
        told = repr(value) if type(value).__repr__ is not object.__repr__ else type(value).__name__
        name = getattr(value, "__name__", told)
        raise UsageError(f"{one_line(name, 80)} is no tool; decorate a function with @tool, or subclass Tool")
    for field, kind, example in _DECLARED:
        held: object = getattr(value, field, None)
        if not isinstance(held, kind):
            raise UsageError(
                f"the tool class {type(value).__name__} has {field} {one_line(repr(held), 80)};"
                f" give it a {kind.__name__}, as in {example}"
            )


_DECLARED: Final[tuple[tuple[str, type, str], ...]] = (
    ("name", str, 'name = "search"'),
    ("description", str, 'description = "Search the archive."'),
    ("options", ToolOptions, "options = ToolOptions(timeout=10)"),
)


class StoppableTool(Tool):
    """A tool that ends early when it is told to, so that its thread does not run on for nothing."""

    def run(self, args: dict[str, object], ctx: ToolContext) -> object:
        return self.run_with_cancel(args, lambda: ctx.stop_requested)

    @abstractmethod
    def run_with_cancel(self, args: dict[str, object], should_stop: Callable[[], bool]) -> object:
        """Do the work and return as soon as `should_stop()` is true."""


class ArgumentsError(DialoomError):
    """Arguments that a tool cannot take; the model is told where and why."""

    code = "invalid_arguments"

    def __init__(self, violations: tuple[Violation, ...]) -> None:
        super().__init__("; ".join(f"{each.path}: {each.message}" for each in violations))
        self.violations = violations
