"""What a run does, whichever way it is run."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.graph import (
    END,
    START,
    Graph,
    GraphBuilder,
    NodeContext,
    NodeError,
    NodeResult,
    Reducers,
    RunFailedError,
    RunOptions,
    RunResult,
    Send,
    State,
)
from dialoom.graph.options import DEFAULT_OPTIONS
from tests.graph.graphs import counter, line, saying, speakers, wait_for

Runner = Callable[..., RunResult]


def run_async(
    graph: Graph, inputs: Mapping[str, Any] | None = None, options: RunOptions = DEFAULT_OPTIONS
) -> RunResult:
    return asyncio.run(graph.run(inputs, options))


def run_streamed(
    graph: Graph, inputs: Mapping[str, Any] | None = None, options: RunOptions = DEFAULT_OPTIONS
) -> RunResult:
    stream = graph.stream_sync(inputs, options)
    list(stream)
    return stream.result


@pytest.fixture(params=[Graph.run_sync, run_async, run_streamed], ids=["run_sync", "run", "stream_sync"])
def run(request: pytest.FixtureRequest) -> Runner:
    """Each way to run a graph to its end."""
    return request.param


@pytest.mark.promise("graph-001", "graph-019", "graph-032")
def test_the_thirty_second_example(run: Runner) -> None:
    builder = GraphBuilder("upper")
    builder.add_channel("text", Reducers.overwrite)
    builder.add_node("upper", lambda ctx: NodeResult.ok({"text": ctx.state["text"].upper()}))
    builder.add_edge("__start__", "upper")
    builder.add_edge("upper", "__end__")
    result = run(builder.build(), {"text": "hello"})
    assert (result.stop_reason, result.state, result.steps) == ("finished", {"text": "HELLO"}, 1)


@pytest.mark.promise("graph-011")
def test_an_edge_makes_its_target_run_in_the_next_superstep(run: Runner) -> None:
    steps: dict[str, int] = {}

    def note(ctx: NodeContext) -> None:
        steps[ctx.node] = ctx.step

    builder = GraphBuilder("line")
    for name in ("a", "b", "c"):
        builder.add_node(name, note)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", "c")
    assert run(builder.build()).steps == 3
    assert steps == {"a": 1, "b": 2, "c": 3}


@pytest.mark.promise("graph-012")
@pytest.mark.parametrize(("number", "said"), [(2, ["even"]), (3, ["odd"])])
def test_a_conditional_edge_goes_where_its_label_leads(run: Runner, number: int, said: list[str]) -> None:
    builder = speakers("even", "odd")
    builder.add_channel("number")
    builder.add_channel("parity")
    builder.add_node("classify", lambda ctx: {"parity": ["0", "1"][ctx.state["number"] % 2]})
    builder.add_edge(START, "classify")
    builder.add_conditional_edges("classify", lambda state: state["parity"], {"0": "even", "1": "odd"})
    assert run(builder.build(), {"number": number}).state["said"] == said


@pytest.mark.promise("graph-002", "graph-013")
def test_all_targets_of_a_node_run_in_one_superstep_and_commit_in_the_order_they_were_added(
    run: Runner,
) -> None:
    builder = speakers("a", "b", "c", "d")
    builder.add_edge(START, "c")
    for target in ("d", "a", "b"):
        builder.add_edge("c", target)
    result = run(builder.build())
    assert (result.steps, result.state["said"]) == (2, ["c", "a", "b", "d"])


@pytest.mark.promise("graph-003")
def test_nodes_of_a_superstep_do_not_see_each_other(run: Runner) -> None:
    builder = GraphBuilder("isolated")
    builder.add_channel("n", default=1)
    builder.add_channel("seen", Reducers.append)
    for name in ("a", "b", "c"):
        builder.add_node(name, lambda ctx: {"n": ctx.state["n"] + 1, "seen": [(ctx.node, ctx.state["n"])]})
        builder.add_edge(START, name)
    assert run(builder.build()).state == {"n": 2, "seen": [("a", 1), ("b", 1), ("c", 1)]}


def test_a_node_that_keeps_its_state_keeps_what_it_saw(run: Runner) -> None:
    kept: list[State] = []
    builder = GraphBuilder("kept")
    builder.add_channel("log", Reducers.append)
    for name, target in (("a", "b"), ("b", END)):
        builder.add_node(name, lambda ctx: kept.append(ctx.state) or {"log": [ctx.node]})
        builder.add_edge(name, target)
    builder.add_edge(START, "a")
    run(builder.build())
    assert kept == [{"log": []}, {"log": ["a"]}]


@pytest.mark.promise("graph-014")
def test_a_loop_ends_when_its_router_leaves_it(run: Runner) -> None:
    result = run(counter(until=7))
    assert (result.stop_reason, result.state, result.steps) == ("finished", {"n": 7}, 7)


@pytest.mark.promise("graph-015", "graph-033")
def test_max_steps_ends_a_loop_and_keeps_its_state(run: Runner) -> None:
    result = run(counter(until=7), None, RunOptions(max_steps=3))
    assert (result.stop_reason, result.state, result.steps) == ("max_steps", {"n": 3}, 3)
    assert run(counter(until=3), None, RunOptions(max_steps=3)).stop_reason == "finished"


@pytest.mark.promise("graph-020")
def test_a_node_may_return_a_mapping_a_result_or_nothing(run: Runner) -> None:
    builder = speakers()
    builder.add_node("mapping", lambda _: State(said=["mapping"]))
    builder.add_node("result", lambda _: NodeResult.ok({"said": ["result"]}))
    builder.add_node("nothing", lambda _: None)
    builder.add_node("empty", lambda _: NodeResult.ok())
    for name in ("mapping", "result", "nothing", "empty"):
        builder.add_edge(START, name)
    result = run(builder.build())
    assert (result.state, result.errors) == ({"said": ["mapping", "result"]}, ())


@pytest.mark.parametrize("goto", ["c", ["c"], ("c", "c", END)])
def test_goto_overrides_the_edges_of_its_node(run: Runner, goto: Any) -> None:
    """G22."""
    builder = speakers("b", "c")
    builder.add_node("a", lambda _: NodeResult.ok({"said": ["a"]}, goto=goto))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", "c")
    assert run(builder.build()).state["said"] == ["a", "c"]


def test_goto_end_ends_the_path(run: Runner) -> None:
    builder = speakers("b")
    builder.add_node("a", lambda _: NodeResult.ok(goto=END))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    result = run(builder.build())
    assert (result.stop_reason, result.state["said"], result.steps) == ("finished", [], 1)


@pytest.mark.promise("graph-037")
def test_goto_nowhere_fails_the_node_and_commits_nothing_of_it(run: Runner) -> None:
    builder = speakers("b")
    builder.add_node("a", lambda _: NodeResult.ok({"said": ["a"]}, goto="nowhere"))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    result = run(builder.build())
    message = "goto 'nowhere': there is no such node; the graph has: b, a, __end__"
    assert (result.stop_reason, result.errors) == ("error", (NodeError(node="a", message=message),))
    assert result.state["said"] == []


@pytest.mark.promise("graph-034")
def test_halt_ends_the_run_after_its_superstep(run: Runner) -> None:
    builder = speakers("b", "c")
    builder.add_node("a", lambda _: NodeResult.ok({"said": ["a"]}, halt=True))
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    builder.add_edge("a", "c")
    result = run(builder.build())
    assert (result.stop_reason, result.state["said"], result.steps) == ("halted", ["b", "a"], 1)


def test_a_lone_node_can_halt_too(run: Runner) -> None:
    builder = speakers("b")
    builder.add_node("a", lambda _: NodeResult.ok(halt=True))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    assert run(builder.build()).stop_reason == "halted"


@pytest.mark.promise("graph-021", "graph-023", "graph-024", "graph-025", "graph-035")
def test_a_failing_node_ends_the_run_and_its_siblings_count(run: Runner) -> None:
    builder = speakers("good", "next")
    builder.add_node("bad", lambda _: NodeResult.fail("no luck"))
    builder.add_edge(START, "good")
    builder.add_edge(START, "bad")
    builder.add_edge("good", "next")
    result = run(builder.build())
    assert (result.stop_reason, result.steps, result.state) == ("error", 1, {"said": ["good"]})
    assert result.errors == (NodeError(node="bad", message="no luck", attempts=1),)


@pytest.mark.promise("graph-022")
def test_an_exception_in_a_node_becomes_an_error_with_its_traceback(run: Runner) -> None:
    def explode(_: NodeContext) -> None:
        raise ValueError("boom\nand more")

    builder = GraphBuilder("explosive")
    builder.add_node("bomb", explode)
    builder.add_edge(START, "bomb")
    result = run(builder.build())
    (error,) = result.errors
    assert (error.node, error.message) == ("bomb", "ValueError: boom and more")
    assert "in explode\n" in error.traceback
    assert result.steps == 0


def test_all_errors_of_a_superstep_are_listed_in_order(run: Runner) -> None:
    builder = GraphBuilder("many")
    for name in ("c", "a", "b"):
        builder.add_node(name, lambda ctx: NodeResult.fail(f"{ctx.node} failed"))
        builder.add_edge(START, name)
    assert [error.node for error in run(builder.build()).errors] == ["c", "a", "b"]


def test_an_exception_that_cannot_be_shown_is_an_error_all_the_same(run: Runner) -> None:
    class Odd(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise RuntimeError("not even this")

    def explode(_: NodeContext) -> None:
        raise Odd

    builder = GraphBuilder("odd")
    builder.add_node("odd", explode)
    builder.add_edge(START, "odd")
    assert run(builder.build()).errors[0].message == "Odd (which cannot say why)"


class _Thenable:
    def __await__(self) -> Any:
        yield


async def later() -> dict[str, Any]:
    return {}


@pytest.mark.parametrize(
    ("returns", "message"),
    [
        (lambda: 5, "it returned int; return a mapping of writes, a NodeResult or None"),
        (later, "it is plain but returned an awaitable; declare it with async def"),
        (
            _Thenable,
            "it is plain but returned an awaitable; declare it with async def",
        ),
    ],
)
def test_a_node_that_returns_something_else_is_told_what_to_return(
    run: Runner, returns: Callable[[], Any], message: str
) -> None:
    builder = GraphBuilder("odd")
    builder.add_node("odd", lambda _: returns())
    builder.add_edge(START, "odd")
    assert run(builder.build()).errors == (NodeError(node="odd", message=message),)


SENDS = "give Send(node, input) each"


@pytest.mark.parametrize(
    ("makes", "message"),
    [
        (lambda: NodeResult.ok(3), "its writes are of type int; give a mapping of channels to values"),
        (lambda: NodeResult.ok([1]), "its writes are of type list; give a mapping of channels to values"),
        (lambda: NodeResult.ok(goto=3), "its goto is 3; give a node's name, or several"),
        (lambda: NodeResult.ok(goto=[["b"]]), "its goto is (['b'],); give a node's name, or several"),
        (lambda: NodeResult.ok(sends=3), f"its sends are 3; {SENDS}"),
        (lambda: NodeResult.ok(sends="b"), f"its sends are 'b'; {SENDS}"),
        (lambda: NodeResult.ok(sends=[("b", 1)]), f"its sends are (('b', 1),); {SENDS}"),
        (lambda: NodeResult.ok(sends=[Send(["b"])]), "it sends to [['b']]; give names of nodes"),
        (lambda: NodeResult(error=3), "its error is of type int; give text"),
        (lambda: NodeResult.fail(None), "it failed and gave no reason"),
        (lambda: NodeResult.fail(""), "it failed and gave no reason"),
        (lambda: NodeResult.fail(3), "3"),
    ],
)
def test_a_result_of_wrong_types_fails_its_node_alone(
    run: Runner, makes: Callable[[], Any], message: str
) -> None:
    builder = speakers("beside")
    builder.add_node("odd", lambda _: makes())
    builder.add_edge(START, "beside")
    builder.add_edge(START, "odd")
    result = run(builder.build())
    assert (result.stop_reason, result.state) == ("error", {"said": ["beside"]})
    assert result.errors == (NodeError(node="odd", message=message),)


@pytest.mark.promise("graph-036")
@pytest.mark.parametrize(
    ("answer", "shown"),
    [("nope", "'nope'"), (None, "None"), (5, "5"), (["x", "nope"], "'nope'"), ([["a"]], "['a']")],
)
def test_a_router_that_answers_something_unknown_ends_the_run_with_the_answers_it_may_give(
    run: Runner, answer: Any, shown: str
) -> None:
    """G23."""
    builder = speakers("a")
    builder.add_node("ask", saying("ask"))
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", lambda _: answer, {"x": "a", "y": END})
    result = run(builder.build())
    assert (result.stop_reason, result.state["said"], result.steps) == ("error", ["ask"], 1)
    (error,) = result.errors
    assert error.node == "ask"
    assert error.message == f"the conditional edge answered {shown}; it may answer: x, y, __end__"


def test_a_router_without_targets_may_answer_with_any_node(run: Runner) -> None:
    builder = speakers("a", "b", "c")
    builder.add_conditional_edges(START, lambda _: ["c", "a", END])
    assert run(builder.build()).state["said"] == ["a", "c"]
    builder.add_conditional_edges("a", lambda _: "d")
    error = run(builder.build()).errors[0]
    assert error.message == "the conditional edge answered 'd'; it may answer: a, b, c, __end__"


def test_a_router_may_always_end_its_path(run: Runner) -> None:
    """G23: END need not be among the targets."""
    builder = speakers("a", "b")
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", lambda _: END, {"more": "b"})
    result = run(builder.build())
    assert (result.stop_reason, result.state["said"]) == ("finished", ["a"])


def test_the_default_of_a_conditional_edge_takes_every_other_answer(run: Runner) -> None:
    builder = speakers("a", "b")
    builder.add_conditional_edges(START, lambda _: "anything", {"x": "a"}, default="b")
    assert run(builder.build()).state["said"] == ["b"]


def test_a_router_that_raises_names_its_node(run: Runner) -> None:
    builder = speakers("a")
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", lambda state: state["typo"])
    (error,) = run(builder.build()).errors
    assert error.node == "a"
    assert error.message.startswith(
        "conditional edge after node 'a': KeyError: \"channel 'typo' has no value"
    )


def test_a_router_that_fails_on_the_input_is_an_error_of_start(run: Runner) -> None:
    builder = speakers("a")
    builder.add_conditional_edges(START, lambda _: 1 / 0)  # type: ignore[arg-type, return-value]
    result = run(builder.build())
    assert (result.stop_reason, result.steps) == ("error", 0)
    assert result.errors[0].node == START
    assert result.errors[0].message == "conditional edge after the input: ZeroDivisionError: division by zero"


def test_edges_and_conditional_edges_of_one_node_are_all_followed(run: Runner) -> None:
    builder = speakers("a", "b", "c", "d")
    builder.add_edge(START, "a")
    builder.add_edge("a", "d")
    builder.add_conditional_edges("a", lambda _: "b")
    builder.add_conditional_edges("a", lambda _: "c")
    assert run(builder.build()).state["said"] == ["a", "b", "c", "d"]


def test_an_entry_that_leads_nowhere_is_a_finished_run(run: Runner) -> None:
    builder = speakers("a")
    builder.add_conditional_edges(START, lambda _: END)
    result = run(builder.build())
    assert (result.stop_reason, result.steps) == ("finished", 0)


@pytest.mark.promise("graph-102")
def test_every_run_has_an_id_of_its_own_which_its_nodes_know(run: Runner) -> None:
    known: list[tuple[str, str, Any]] = []
    builder = GraphBuilder("ids")
    builder.add_node("look", lambda ctx: known.append((ctx.run_id, ctx.thread_id, ctx.deps)))
    builder.add_edge(START, "look")
    graph, deps = builder.build(), object()
    first = run(graph, None, RunOptions(thread_id="alice", deps=deps))
    second = run(graph)
    assert known == [(first.run_id, "alice", deps), (second.run_id, second.thread_id, None)]
    assert first.run_id != second.run_id
    assert first.thread_id == "alice"


def test_an_error_is_raised_for_those_who_ask_for_it(run: Runner) -> None:
    builder = GraphBuilder("raises")
    for name in ("a", "b"):
        builder.add_node(name, lambda _: NodeResult.fail("no luck"))
        builder.add_edge(START, name)
    graph = builder.build()
    with pytest.raises(
        RunFailedError, match=r"^node 'a': no luck \(and 1 more in result.errors\)$"
    ) as failed:
        run(graph, None, RunOptions(raise_on_error=True))
    assert failed.value.result.stop_reason == "error"
    with pytest.raises(RunFailedError):
        run(graph).raise_for_error()
    fine = run(line("a"), None, RunOptions(raise_on_error=True))
    assert fine.raise_for_error() is fine


def test_context_variables_of_the_caller_reach_every_node(run: Runner) -> None:
    who = contextvars.ContextVar("who", default="nobody")
    builder = speakers()
    for name in ("a", "b", "c"):
        builder.add_node(name, lambda _: {"said": [who.get()]})
        builder.add_edge(START, name)
    builder.add_node("last", lambda _: {"said": [who.get()]}, blocking=False)
    builder.add_edge("a", "last")
    token = who.set("alice")
    try:
        assert run(builder.build()).state["said"] == ["alice"] * 4
    finally:
        who.reset(token)


@pytest.mark.promise("graph-004")
def test_blocking_nodes_of_a_superstep_run_at_the_same_time(run: Runner) -> None:
    together = threading.Barrier(3, timeout=60)
    builder = speakers()
    for name in ("a", "b", "c"):
        builder.add_node(name, lambda ctx: together.wait() >= 0 and {"said": [ctx.node]})
        builder.add_edge(START, name)
    assert run(builder.build()).state["said"] == ["a", "b", "c"]


def test_commit_order_is_the_order_of_adding_whichever_finishes_first(run: Runner) -> None:
    done = {name: threading.Event() for name in ("a", "b", "c")}

    def after(earlier: str | None) -> Callable[[NodeContext], dict[str, list[str]]]:
        def node(ctx: NodeContext) -> dict[str, list[str]]:
            if earlier is not None:
                wait_for(done[earlier])
            done[ctx.node].set()
            return {"said": [ctx.node]}

        return node

    builder = speakers()
    for name, earlier in (("a", "b"), ("b", "c"), ("c", None)):
        builder.add_node(name, after(earlier))
        builder.add_edge(START, name)
    assert run(builder.build()).state["said"] == ["a", "b", "c"]


@pytest.mark.parametrize("limit", [1, 2, 7, 64])
def test_every_node_runs_exactly_once_at_any_concurrency(run: Runner, limit: int) -> None:
    lock, running, most = threading.Lock(), 0, 0

    def work(ctx: NodeContext) -> dict[str, list[str]]:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        with lock:
            running -= 1
        return {"said": [ctx.node]}

    names = [f"n{at:02}" for at in range(40)]
    builder = speakers()
    for at, name in enumerate(names):
        builder.add_node(name, work, blocking=at % 3 != 0)
        builder.add_edge(START, name)
    result = run(builder.build(), None, RunOptions(max_concurrency=limit))
    assert result.state["said"] == names
    assert most <= limit + 1  # the quick ones run beside the workers


@given(st.integers(1, 4), st.data())
def test_the_order_of_edges_and_targets_does_not_matter(width: int, data: st.DataObject) -> None:
    names = [f"n{at}" for at in range(width)]
    builder = speakers(*names)
    for name in data.draw(st.permutations(names)):
        builder.add_edge(START, name)
    assert builder.build().run_sync().state["said"] == names


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"thread_id": ""}, "a thread_id is text of 1 to 512 characters; leave it out for a new thread"),
        (
            {"thread_id": "x" * 513},
            "a thread_id is text of 1 to 512 characters; leave it out for a new thread",
        ),
        ({"timeout": -1.0}, "timeout is -1.0; give seconds, 0 or more, or leave it out"),
        ({"timeout": float("nan")}, "timeout is nan; give seconds, 0 or more, or leave it out"),
        ({"max_steps": 0}, "max_steps is 0; give a whole number, 1 or more"),
        ({"max_steps": "3"}, "max_steps is '3'; give a whole number, 1 or more"),
        ({"max_steps": True}, "max_steps is True; give a whole number, 1 or more"),
        ({"max_concurrency": 0}, "max_concurrency is 0; give a whole number, 1 or more"),
        ({"max_concurrency": 2.5}, "max_concurrency is 2.5; give a whole number, 1 or more"),
        ({"timeout": "x"}, "timeout is 'x'; give seconds, 0 or more, or leave it out"),
        ({"thread_id": 5}, "a thread_id is text of 1 to 512 characters; leave it out for a new thread"),
        (
            {"thread_id": "\ud800"},
            "a thread_id holds half a character, which no store can keep; use whole text",
        ),
        ({"control": object()}, "control is of type object; give a RunControl"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        RunOptions(**options)
    assert str(refused.value) == message


def test_errors_are_one_line_of_bounded_length_however_much_there_is_to_say(run: Runner) -> None:
    def explode(_: NodeContext) -> None:
        raise ValueError("x" * 1_000_000)

    builder = speakers()
    builder.add_node("explode", explode)
    builder.add_node("lost", lambda _: NodeResult.ok(goto="y\n" * 100_000))
    builder.add_edge(START, "explode")
    builder.add_edge(START, "lost")
    result = run(builder.build())
    assert [len(error.message) for error in result.errors] == [500, 500]
    assert all("\n" not in error.message for error in result.errors)
    assert len(result.errors[0].traceback) <= 20_000


def test_an_exception_without_words_is_told_by_its_name(run: Runner) -> None:
    def explode(_: NodeContext) -> None:
        raise TimeoutError

    builder = GraphBuilder("silent")
    builder.add_node("explode", explode)
    builder.add_edge(START, "explode")
    assert run(builder.build()).errors[0].message == "TimeoutError"


def test_a_context_shows_where_it_is_and_not_what_it_holds() -> None:
    shown: list[str] = []
    builder = GraphBuilder("shown")
    builder.add_channel("secret")
    builder.add_node("look", lambda ctx: shown.append(repr(ctx)))
    builder.add_edge(START, "look")
    builder.build().run_sync({"secret": "hunter2"})
    assert shown == ["<NodeContext 'look' step 1>"]


@pytest.mark.parametrize(
    ("inputs", "options", "told"),
    [
        ([1], RunOptions(), "inputs are of type list; give a mapping of channels to values"),
        ("s", RunOptions(), "inputs are of type str; give a mapping of channels to values"),
        (None, {"thread_id": "t"}, "options are of type dict; give RunOptions(...)"),
    ],
)
async def test_what_is_no_input_and_no_options_is_refused_by_its_type(
    inputs: Any, options: Any, told: str
) -> None:
    graph = line("a")
    with pytest.raises(UsageError) as caught:
        graph.run_sync(inputs, options)
    assert str(caught.value) == told
    with pytest.raises(UsageError):
        await graph.run(inputs, options)


def test_inputs_may_be_any_mapping_and_options_of_a_class_of_ones_own() -> None:
    class Mine(RunOptions, frozen=True):
        """Options with a name."""

    result = line("a").run_sync(MappingProxyType({}), Mine(thread_id=None))
    assert result.stop_reason == "finished"
