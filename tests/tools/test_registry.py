"""A registry answers every call a model makes, in words the model can use."""

import asyncio
import sys
import threading
from collections.abc import Mapping
from typing import Any, cast

import pytest

from dialoom.base.cancel import Cancelled
from dialoom.base.errors import UsageError
from dialoom.llm.json_schema import Violation
from dialoom.llm.messages import CallProblem, ToolCall
from dialoom.llm.options import ToolSpec
from dialoom.testing.clock import ManualClock
from dialoom.tools import (
    Tool,
    ToolContext,
    ToolExecutionPolicy,
    ToolOptions,
    ToolRegistry,
    ToolResult,
    ToolRun,
    tool,
)
from tests.tools.calls import call, facts


@tool
def double(n: int) -> int:
    """Twice the number."""
    return 2 * n


class Interrupt(BaseException):
    """Control flow of an engine, like dialoom's own `Interrupted`."""


class Lookup(Tool):
    """A tool that is a class, with a schema of its own."""

    name = "lookup"
    description = "Find a word."

    def __init__(self, schema: Mapping[str, object]) -> None:
        self.schema = schema

    def parameters_schema(self) -> Mapping[str, object]:
        return self.schema

    def run(self, args: dict[str, object], ctx: ToolContext) -> object:
        return {"args": args, "tool": ctx.tool_name}


WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}


def test_tools_are_added_found_and_removed_by_name() -> None:
    registry = ToolRegistry([double])
    lookup = Lookup(WORD)
    assert registry.add(lookup) is registry
    assert registry.names() == ("double", "lookup")
    assert registry.get("lookup") is lookup
    assert registry.remove("lookup") is lookup
    assert registry.get("lookup") is None
    assert registry.names() == ("double",)


def test_a_name_is_taken_once() -> None:
    registry = ToolRegistry([double])
    with pytest.raises(UsageError) as caught:
        registry.add(double)
    assert str(caught.value) == "there is already a tool 'double'; remove it first, or choose another name"


@pytest.mark.parametrize("name", ["", "a b", "größe", "a" * 65, "a\n", "../x"])
def test_a_name_no_provider_takes_is_refused(name: str) -> None:
    odd = Lookup(WORD)
    odd.name = name
    with pytest.raises(UsageError, match="is no name for a tool; use 1 to 64 of A-Z, a-z, 0-9, _ and -"):
        ToolRegistry([odd])


class Nameless(Tool):
    """A tool that is told apart by nothing."""

    def run(self, args: dict[str, object], ctx: ToolContext) -> object:
        return "ran"


class Described(Nameless):
    name = "search"
    description = cast("str", None)


class Optioned(Nameless):
    name = "search"
    options = cast("ToolOptions", {"timeout": 10})


class Unlisted:
    """Not of this kind at all."""


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        (Nameless(), 'the tool class Nameless has name None; give it a str, as in name = "search"'),
        (Described(), "the tool class Described has description None; give it a str, as in description ="),
        (Optioned(), "the tool class Optioned has options {'timeout': 10}; give it a ToolOptions, as in"),
        (Nameless, "Nameless is no tool; decorate a function with @tool, or subclass Tool"),
        (Unlisted(), "Unlisted is no tool; decorate a function with @tool, or subclass Tool"),
        (None, "None is no tool; decorate a function with @tool, or subclass Tool"),
        (Lookup(cast("dict[str, object]", None)), "the parameters of tool 'lookup' are of type NoneType"),
    ],
)
def test_what_is_declared_by_half_is_refused_when_it_is_registered(tool: object, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        ToolRegistry([cast("Tool", tool)])
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize("given", [double, "double", None, 5])
def test_tools_that_are_no_list_are_refused_with_what_to_write(given: object) -> None:
    with pytest.raises(UsageError, match="tools are given as a list, such as"):
        ToolRegistry(cast("list[Tool]", given))


def test_specs_are_the_tools_as_a_model_sees_them() -> None:
    assert ToolRegistry([Lookup(WORD)]).specs() == (
        ToolSpec(name="lookup", description="Find a word.", parameters=WORD),
    )


async def test_a_class_is_a_tool() -> None:
    result = await ToolRegistry([Lookup(WORD)]).execute(call("lookup", word="oak"))
    assert result == ToolResult(
        content='{"args":{"word":"oak"},"tool":"lookup"}',
        structured={"args": {"word": "oak"}, "tool": "lookup"},
    )


async def test_a_class_without_parameters_takes_none() -> None:
    class Ping(Tool):
        """Answers."""

        name = "ping"

        def run(self, args: dict[str, object], ctx: ToolContext) -> str:
            return "pong"

    registry = ToolRegistry([Ping()])
    assert (await registry.execute(call("ping"))).content == "pong"
    assert (await registry.execute(call("ping", x=1))).is_error


def test_validate_lists_what_is_wrong_with_arguments() -> None:
    registry = ToolRegistry([double])
    assert registry.validate("double", {"n": 1}) == ()
    assert registry.validate("double", {"n": "1", "m": 2}) == (
        Violation("$.n", "expected integer, got string"),
        Violation("$", "Additional properties are not allowed ('m' was unexpected)"),
    )


def test_asking_for_a_tool_that_is_not_there_names_those_that_are() -> None:
    registry = ToolRegistry([double])
    for ask in (lambda: registry.validate("triple", {}), lambda: registry.remove("triple")):
        with pytest.raises(UsageError) as caught:
            ask()
        assert str(caught.value) == "there is no tool 'triple'; registered are: double"
    with pytest.raises(UsageError, match="registered are: none"):
        ToolRegistry().validate("triple", {})


@pytest.mark.promise("agent-005", "agent-006", "agent-007")
async def test_bad_arguments_are_told_with_their_paths_and_the_tool_is_not_called() -> None:
    called: list[int] = []

    @tool
    def record(n: int) -> None:
        called.append(n)

    result = await ToolRegistry([record]).execute(call("record", n="three"))
    expected = {
        "error": "invalid_arguments",
        "tool": "record",
        "violations": [{"path": "$.n", "message": "expected integer, got string"}],
    }
    assert facts(result) == expected
    assert result == ToolResult(content=result.content, structured=expected, is_error=True)
    assert called == []


@pytest.mark.promise("agent-008")
async def test_the_check_is_left_out_only_when_that_is_said() -> None:
    registry = ToolRegistry([Lookup(WORD)])
    assert (await registry.execute(call("lookup", word=3))).is_error
    registry.set_validate_arguments(False)
    assert not (await registry.execute(call("lookup", word=3))).is_error
    registry.set_validate_arguments(True)
    assert (await registry.execute(call("lookup", word=3))).is_error


async def test_an_unknown_tool_is_told_with_the_tools_there_are() -> None:
    result = await ToolRegistry([double]).execute(call("tripple", n=1))
    assert facts(result) == {"error": "unknown_tool", "tool": "tripple", "tools": ["double"]}
    assert result.is_error


async def test_an_unknown_tool_is_raised_when_the_policy_says_so() -> None:
    policy = ToolExecutionPolicy(on_unknown="raise")
    with pytest.raises(UsageError, match="there is no tool 'tripple'; registered are: double"):
        await ToolRegistry([double]).execute(call("tripple", n=1), policy=policy)


@pytest.mark.parametrize(
    ("problem", "raw", "error", "message"),
    [
        (
            "truncated",
            '{"n": 1',
            "truncated_arguments",
            "the arguments were cut off, so the tool was not run; call it again with shorter arguments",
        ),
        (
            "invalid_json",
            "{n: 1}",
            "invalid_json",
            "the arguments are not valid JSON, so the tool was not run; send one JSON object",
        ),
        (
            "not_object",
            "[1]",
            "not_object",
            "the arguments are not a JSON object, so the tool was not run; send one JSON object",
        ),
    ],
)
async def test_arguments_that_are_no_object_are_told_and_never_run(
    problem: CallProblem, raw: str, error: str, message: str
) -> None:
    broken = ToolCall(id="c1", name="double", raw=raw, problem=problem)
    result = await ToolRegistry([double]).execute(broken)
    assert facts(result) == {"error": error, "tool": "double", "message": message}


async def test_a_call_that_was_cut_is_not_run_even_with_arguments() -> None:
    cut = ToolCall(id="c1", name="double", arguments={"n": 1}, problem="truncated")
    assert facts(await ToolRegistry([double]).execute(cut))["error"] == "truncated_arguments"


async def test_blank_arguments_are_none_and_other_missing_ones_are_told() -> None:
    @tool
    def ping() -> str:
        return "pong"

    registry = ToolRegistry([ping])
    assert (await registry.execute(ToolCall(id="c1", name="ping"))).content == "pong"
    unread = ToolCall(id="c1", name="ping", raw="[1]")
    assert facts(await registry.execute(unread))["error"] == "not_object"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "bogus"}, "the schema is invalid at $.type: "),
        ({"$ref": "http://127.0.0.1:9/x"}, "the schema refers to http://127.0.0.1:9/x, which is not at hand"),
    ],
)
async def test_a_tool_with_an_unusable_schema_is_told_and_not_run(
    schema: dict[str, object], message: str
) -> None:
    result = await ToolRegistry([Lookup(schema)]).execute(call("lookup"))
    assert facts(result)["error"] == "invalid_schema"
    assert str(facts(result)["message"]).startswith(message)


async def test_a_schema_that_refers_to_itself_is_checked() -> None:
    tree = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}}
    registry = ToolRegistry([Lookup(tree)])
    assert not (await registry.execute(call("lookup", kids=[{"kids": []}]))).is_error
    assert facts(await registry.execute(call("lookup", kids=[{"kids": 1}])))["violations"] == [
        {"path": "$.kids[0].kids", "message": "expected array, got integer"}
    ]


@pytest.mark.parametrize("flavour", ["sync", "async"])
async def test_an_exception_is_told_in_one_line(flavour: str) -> None:
    def fail(kind: str) -> None:
        if kind == "stop":
            raise StopIteration("enough")
        if kind == "silent":
            raise KeyError
        raise ValueError("first line\nsecond line")

    async def fail_later(kind: str) -> None:
        if kind == "stop":
            raise RuntimeError("enough")  # a coroutine cannot raise StopIteration
        fail(kind)

    registry = ToolRegistry([tool(name="fail")(fail if flavour == "sync" else fail_later)])
    told = [
        facts(await registry.execute(call("fail", kind=kind)))["error"] for kind in ("", "silent", "stop")
    ]
    stop = "StopIteration" if flavour == "sync" else "RuntimeError"
    assert told == ["ValueError: first line second line", "KeyError", f"{stop}: enough"]


async def test_the_traceback_of_a_tool_is_for_those_who_debug(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    async def fail() -> None:
        raise KeyError("swan")

    with caplog.at_level("INFO", logger="dialoom.tools"):
        await ToolRegistry([fail]).execute(call("fail"))
    assert caplog.records == []
    with caplog.at_level("DEBUG", logger="dialoom.tools"):
        await ToolRegistry([fail]).execute(call("fail"))
    (record,) = caplog.records
    assert (record.getMessage(), record.__dict__["tool"]) == ("tool failed", "fail")
    assert record.exc_info is not None
    assert "in fail" in caplog.text


@pytest.mark.parametrize("flavour", ["async", "sync"])
async def test_a_tool_that_exits_ends_its_call_and_not_the_program(flavour: str) -> None:
    async def leave() -> None:
        sys.exit("wrong arguments")

    def leave_plainly() -> None:
        sys.exit("wrong arguments")

    leaving = tool(name="leave")(leave) if flavour == "async" else tool(name="leave")(leave_plainly)
    result = await ToolRegistry([leaving]).execute(call("leave"))
    assert facts(result) == {"error": "SystemExit: wrong arguments", "tool": "leave"}


async def test_an_exception_that_cannot_even_word_itself_is_told_by_its_name() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    @tool
    async def fail() -> None:
        raise MuteError

    assert facts(await ToolRegistry([fail]).execute(call("fail"))) == {"error": "MuteError", "tool": "fail"}


@pytest.mark.parametrize("flavour", ["sync", "async"])
@pytest.mark.parametrize("error", [Interrupt(), Cancelled()])
async def test_control_flow_passes_through(flavour: str, error: BaseException) -> None:
    def leave() -> None:
        raise error

    async def leave_later() -> None:
        raise error

    registry = ToolRegistry([tool(name="leave")(leave if flavour == "sync" else leave_later)])
    with pytest.raises(type(error)) as caught:
        await registry.execute(call("leave"))
    assert caught.value is error


async def test_a_tool_that_cancels_itself_is_an_error_and_not_the_end_of_the_loop() -> None:
    @tool
    async def odd() -> None:
        raise asyncio.CancelledError

    @tool
    def odd_thread() -> None:
        raise asyncio.CancelledError

    registry = ToolRegistry([odd, odd_thread])
    for name in registry.names():
        result = await registry.execute(call(name))
        assert facts(result)["error"] == "RuntimeError: the work was cancelled from within"
    assert registry.late_results == 0


async def test_an_idempotent_tool_is_tried_again_after_an_exception() -> None:
    clock, tries = ManualClock(), []

    @tool(idempotent=True)
    async def flaky(fails: int) -> str:
        tries.append(clock.now())
        if len(tries) <= fails:
            raise OSError("line is busy")
        return f"try {len(tries)}"

    registry = ToolRegistry([flaky])
    policy = ToolExecutionPolicy(retry_idempotent=2, retry_delay=0.5)

    async def answer(fails: int) -> str:
        tries.clear()
        task = asyncio.create_task(
            registry.execute(call("flaky", fails=fails), ToolRun(clock=clock), policy=policy)
        )
        await clock.advance(0)
        for _ in range(4):
            await clock.advance(0.5)
        return (await task).content

    assert await answer(1) == "try 2"
    assert await answer(2) == "try 3"
    assert [moment - tries[0] for moment in tries] == [0, 0.5, 1.5]
    assert await answer(9) == '{"error":"OSError: line is busy","tool":"flaky"}'
    assert len(tries) == 3


async def test_other_tools_and_bad_arguments_are_not_tried_again() -> None:
    tries = []

    @tool
    async def once() -> None:
        tries.append("once")
        raise OSError

    @tool(idempotent=True)
    async def strict(n: int) -> None:
        tries.append("strict")

    registry = ToolRegistry([once, strict])
    registry.set_validate_arguments(False)
    policy = ToolExecutionPolicy(retry_idempotent=3)
    assert (await registry.execute(call("once"), policy=policy)).is_error
    assert (await registry.execute(call("strict", n="x"), policy=policy)).is_error
    assert tries == ["once"]


async def test_a_tool_cannot_change_the_call_it_answers() -> None:
    class Greedy(Lookup):
        """Eats its arguments, and fails the first time."""

        options = ToolOptions(idempotent=True)
        tries = 0

        def run(self, args: dict[str, object], ctx: ToolContext) -> object:
            words = cast("list[str]", args["words"])
            self.tries += 1
            if self.tries == 1:
                words.clear()
                raise OSError
            return [words.pop(), args.pop("words")]

    made = call("lookup", words=["a", "b"])
    policy = ToolExecutionPolicy(retry_idempotent=1, retry_delay=0)
    result = await ToolRegistry([Greedy({})]).execute(made, policy=policy)
    assert result.content == '["b",["a"]]'
    assert made == call("lookup", words=["a", "b"])


async def test_arguments_that_cannot_even_be_copied_are_told_when_they_were_not_checked() -> None:
    registry = ToolRegistry([Lookup({})])
    registry.set_validate_arguments(False)
    result = await registry.execute(call("lookup", lock=threading.Lock()))
    assert facts(result)["error"] == "TypeError: cannot pickle '_thread.lock' object"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"max_concurrency": 0}, "a tool policy has max_concurrency 0; give at least 1"),
        ({"max_result_chars": 0}, "a tool policy has max_result_chars 0; give at least 1"),
        ({"grace": -1}, "a tool policy has grace -1; give at least 0"),
        ({"retry_idempotent": -1}, "a tool policy has retry_idempotent -1; give at least 0"),
        ({"timeout": 0}, "a tool policy has timeout 0; give seconds above 0, or None for no bound"),
        (
            {"spill": "results"},
            "spill is no function; give one of the call and its text that returns a place",
        ),
    ],
)
def test_a_policy_without_sense_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        ToolExecutionPolicy(**options)
    assert str(caught.value) == problem
