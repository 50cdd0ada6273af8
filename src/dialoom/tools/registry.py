"""Tools by name, and the one way to run one: whatever a model asks for, it gets an answer it can read."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Self, cast

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.llm.json_schema import JsonSchema, Violation
from dialoom.llm.messages import ToolCall
from dialoom.llm.options import ToolSpec
from dialoom.tools.attempt import LateResults
from dialoom.tools.call import CallRunner, refused
from dialoom.tools.context import ToolRun
from dialoom.tools.policy import DEFAULT_POLICY, ToolExecutionPolicy
from dialoom.tools.result import ToolResult, failed
from dialoom.tools.tool import Tool, check_tool

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_NAMES_SHOWN: Final = 50
_PROBLEMS: Final = {
    "truncated": (
        "truncated_arguments",
        "the arguments were cut off, so the tool was not run; call it again with shorter arguments",
    ),
    "invalid_json": (
        "invalid_json",
        "the arguments are not valid JSON, so the tool was not run; send one JSON object",
    ),
    "not_object": (
        "not_object",
        "the arguments are not a JSON object, so the tool was not run; send one JSON object",
    ),
}


class _Entry:
    """A registered tool. Its schema is compiled when the first call is checked."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self.spec = ToolSpec(name=tool.name, description=tool.description, parameters=dict(_schema_of(tool)))
        self._compiled: JsonSchema | None = None

    def check(self, arguments: Mapping[str, object]) -> tuple[Violation, ...]:
        if self._compiled is None:
            self._compiled = JsonSchema(self.spec.parameters)
        return self._compiled.check(arguments)


class ToolRegistry:
    """The tools a model may call.

    Names are unique, in the form that every provider takes: 1 to 64 of A-Z, a-z, 0-9, `_` and `-`.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._entries: dict[str, _Entry] = {}
        self._validates = True
        self._late = LateResults()
        for tool in _listed(tools):
            self.add(tool)

    def add(self, tool: Tool) -> Self:
        """Register `tool`. Raises `UsageError` for what is no tool, or whose name is taken or not in form."""
        check_tool(tool)
        if not _NAME.fullmatch(tool.name):
            raise UsageError(
                f"{one_line(tool.name, 80)!r} is no name for a tool; use 1 to 64 of A-Z, a-z, 0-9, _ and -"
            )
        if tool.name in self._entries:
            raise UsageError(
                f"there is already a tool {tool.name!r}; remove it first, or choose another name"
            )
        self._entries[tool.name] = _Entry(tool)
        return self

    def remove(self, name: str) -> Tool:
        """Take out the tool `name` and return it. Raises `UsageError` when there is none."""
        tool = self._known(name).tool
        del self._entries[name]
        return tool

    def get(self, name: str) -> Tool | None:
        """Return the tool `name`, or None."""
        entry = self._entries.get(name)
        return entry.tool if entry else None

    def names(self) -> tuple[str, ...]:
        """Return the names of all tools, in the order they were added."""
        return tuple(self._entries)

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools as a model sees them, in the order they were added."""
        return tuple(entry.spec for entry in self._entries.values())

    @property
    def late_results(self) -> int:
        """How many calls that were given up ended after all; what they returned was dropped."""
        return self._late.dropped

    def set_validate_arguments(self, validate: bool) -> None:  # noqa: FBT001 - the requirement's own form
        """Choose whether `execute` checks arguments; turned off only for arguments known to be good."""
        self._validates = validate

    def validate(self, name: str, arguments: Mapping[str, object]) -> tuple[Violation, ...]:
        """Return what is wrong with `arguments`; empty when the tool `name` can take them.

        Raises `UsageError` when there is no such tool or its schema is invalid.
        """
        return self._known(name).check(arguments)

    async def execute(
        self, call: ToolCall, run: ToolRun | None = None, *, policy: ToolExecutionPolicy = DEFAULT_POLICY
    ) -> ToolResult:
        """Run `call` and return what the model is told.

        Unknown tools, arguments that do not fit, exceptions, timeouts and cancelling are observations.
        A tool that `requires_approval` runs as well: who calls this has asked. Raises only what a tool
        raises as a `BaseException`, and `UsageError` for an unknown tool when the policy says so.
        """
        return self.refusal(call, policy=policy) or await self.execute_checked(call, run, policy=policy)

    async def execute_checked(
        self, call: ToolCall, run: ToolRun | None = None, *, policy: ToolExecutionPolicy = DEFAULT_POLICY
    ) -> ToolResult:
        """`execute`, for a call that `refusal` found nothing against and so is not checked again.

        Raises `UsageError` when there is no such tool.
        """
        runner = CallRunner(run=run or ToolRun(), policy=policy, late=self._late)
        return await runner.answer(self._known(call.name).tool, call, _arguments_of(call) or {})

    def refusal(self, call: ToolCall, *, policy: ToolExecutionPolicy = DEFAULT_POLICY) -> ToolResult | None:
        """Return what the model is told because `call` cannot be run; None when it can.

        Raises `UsageError` for an unknown tool when the policy says so.
        """
        entry = self._entries.get(call.name)
        if entry is None:
            return self._unknown(call.name, policy)
        arguments = _arguments_of(call)
        if arguments is None:
            error, message = _PROBLEMS[call.problem or "not_object"]
            return failed(error, tool=call.name, more={"message": message})
        return self._check(entry, arguments)

    def _check(self, entry: _Entry, arguments: dict[str, object]) -> ToolResult | None:
        if not self._validates:
            return None
        try:
            violations = entry.check(arguments)
        except UsageError as error:
            return failed("invalid_schema", tool=entry.tool.name, more={"message": one_line(str(error), 500)})
        return refused(entry.tool.name, violations) if violations else None

    def _known(self, name: str) -> _Entry:
        entry = self._entries.get(name)
        if entry is None:
            raise UsageError(self._no_such(name))
        return entry

    def _unknown(self, name: str, policy: ToolExecutionPolicy) -> ToolResult:
        if policy.on_unknown == "raise":
            raise UsageError(self._no_such(name))
        return failed("unknown_tool", tool=name, more={"tools": list(self._entries)[:_MAX_NAMES_SHOWN]})

    def _no_such(self, name: str) -> str:
        names = ", ".join(list(self._entries)[:_MAX_NAMES_SHOWN]) or "none"
        return f"there is no tool {one_line(name, 80)!r}; registered are: {names}"


def _listed(tools: object) -> Iterable[Tool]:
    if isinstance(tools, Tool | str) or not isinstance(tools, Iterable):
        kind = type(tools).__name__
        raise UsageError(f"tools are given as a list, such as [search]; this is a value of type {kind}")
    return cast("Iterable[Tool]", tools)


def _schema_of(tool: Tool) -> Mapping[str, object]:
    schema = cast("object", tool.parameters_schema())  # a tool is foreign code
    if not isinstance(schema, Mapping):
        kind = type(schema).__name__
        raise UsageError(
            f"the parameters of tool {tool.name!r} are of type {kind}; give a JSON Schema, a dict"
        )
    return cast("Mapping[str, object]", schema)


def _arguments_of(call: ToolCall) -> dict[str, object] | None:
    """Return what a call is to be run with, None when it must not; saying nothing at all is saying `{}`."""
    if call.problem is not None:
        return None
    return {} if call.arguments is None and not call.raw.strip() else call.arguments
