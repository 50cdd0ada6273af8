"""What users complain of, tried on LangGraph, in the Python that has it: `rival_cases.py`.

The cases are numbered as in our own tests. It stands alone: the rival's Python has nothing of dialoom. Prints
a line for each case: its number, `holds` or `fails`, and what happened.
"""

import asyncio
import importlib
import operator
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypedDict

Seen = tuple[bool, str]
"""Whether what a user expects happened, and what did."""


def _graph() -> Any:
    return importlib.import_module("langgraph.graph")


def _types() -> Any:
    return importlib.import_module("langgraph.types")


def _saver() -> Any:
    return importlib.import_module("langgraph.checkpoint.memory").InMemorySaver()


class Log(TypedDict):
    """A list that grows and a number."""

    said: Annotated[list[str], operator.add]
    n: int


THREAD: dict[str, Any] = {"configurable": {"thread_id": "t"}}


def _built(nodes: dict[str, Any], edges: list[tuple[str, str]], **options: Any) -> Any:
    builder = _graph().StateGraph(Log)
    for name, node in nodes.items():
        builder.add_node(name, node)
    for source, target in edges:
        builder.add_edge(_graph().START if source == "START" else source, target)
    return builder.compile(**options)


def _saying(word: str) -> Callable[[Log], dict[str, list[str]]]:
    return lambda _: {"said": [word]}


def _tried(call: Callable[[], Any]) -> tuple[Any, str]:
    """Return what `call` returns, and the error that it raises, with its kind; "" for none."""
    try:
        return call(), ""
    except Exception as error:  # noqa: BLE001 - whatever it is
        return None, f"{type(error).__name__}: {error}"


def _to_a(_: Log) -> str:
    return "a"


def _to_nope(_: Log) -> str:
    return "nope"


def effect_before_an_interrupt() -> Seen:
    charged: list[int] = []

    def pay(_: Log) -> dict[str, Any]:
        charged.append(1)
        return {"said": [_types().interrupt("sure?")]}

    app = _built({"pay": pay}, [("START", "pay")], checkpointer=_saver())
    app.invoke({"said": [], "n": 0}, THREAD)
    app.invoke(_types().Command(resume="yes"), THREAD)
    return len(charged) == 1, f"the effect ran {len(charged)} times"


def interrupt_in_a_try() -> Seen:
    def ask(_: Log) -> dict[str, Any]:
        try:
            return {"said": [_types().interrupt("sure?")]}
        except Exception:  # noqa: BLE001 - what the case is about
            return {"said": ["swallowed"]}

    app = _built({"ask": ask}, [("START", "ask")], checkpointer=_saver())
    found = app.invoke({"said": [], "n": 0}, THREAD)
    return "__interrupt__" in found, f"the run ended with {found['said']}"


def timeout_of_a_plain_node() -> Seen:
    def slow(_: Log) -> dict[str, Any]:
        time.sleep(0.5)  # what the case is about: a plain node that blocks
        return {"n": 1}

    app = _built({"slow": slow}, [("START", "slow")])
    app.step_timeout = 0.1
    began = time.monotonic()
    _, error = _tried(lambda: app.invoke({"said": [], "n": 0}))
    took = time.monotonic() - began
    return took < 0.2, f"{error.partition(':')[0] or 'no error'} after {took:.2f} s for a timeout of 0.10 s"


def join_of_a_branch_not_taken() -> Seen:
    builder = _graph().StateGraph(Log)
    for name in ("a", "b", "c"):
        builder.add_node(name, _saying(name))
    builder.add_conditional_edges(_graph().START, _to_a, ["a", "b"])
    builder.add_edge(["a", "b"], "c")
    said = builder.compile().invoke({"said": [], "n": 0})["said"]
    return said == ["a", "c"], f"the run finished after {said}"


def branches_of_unequal_length() -> Seen:
    names = ("a", "b", "b2", "c", "d")
    edges = [("START", "a"), ("a", "b"), ("b", "b2"), ("a", "c"), ("b2", "d"), ("c", "d")]
    said = _built({name: _saying(name) for name in names}, edges).invoke({"said": [], "n": 0})["said"]
    return said.count("d") == 1, f"the node they meet in ran {said.count('d')} times, without a warning"


def fast_branch_beside_a_slow_one() -> Seen:
    began, through = time.monotonic(), list[float]()

    def nap(seconds: float) -> Callable[[Log], dict[str, list[str]]]:
        def node(_: Log) -> dict[str, list[str]]:
            time.sleep(seconds)  # what the case is about
            return {"said": ["x"]}

        return node

    def last(_: Log) -> dict[str, list[str]]:
        through.append(time.monotonic() - began)
        return {"said": ["x"]}

    nodes = {"fast": nap(0.05), "slow": nap(0.4), "last": last}
    app = _built(nodes, [("START", "fast"), ("START", "slow"), ("fast", "last")])
    began = time.monotonic()
    app.invoke({"said": [], "n": 0})
    return through[0] < 0.3, f"the node after a nap of 0.05 s ran after {through[0]:.2f} s"


def wide_fan_out_of_plain_nodes() -> Seen:
    def nap(_: Log) -> dict[str, Any]:
        time.sleep(0.05)  # what the case is about: many plain nodes that block
        return {"said": ["x"]}

    app = _built({f"n{at}": nap for at in range(64)}, [("START", f"n{at}") for at in range(64)])
    began = time.monotonic()
    count = len(app.invoke({"said": [], "n": 0})["said"])
    took = time.monotonic() - began
    return count == 64 and took < 0.15, f"{count} naps of 0.05 s took {took:.2f} s"


def goto_beside_an_edge() -> Seen:
    def go(_: Log) -> Any:
        return _types().Command(goto="c", update={"said": ["a"]})

    nodes = {"a": go, "b": _saying("b"), "c": _saying("c")}
    said = _built(nodes, [("START", "a"), ("a", "b")]).invoke({"said": [], "n": 0})["said"]
    return said == ["a", "c"], f"ran {said}"


def route_to_nowhere() -> Seen:
    builder = _graph().StateGraph(Log)
    builder.add_node("a", _saying("a"))
    builder.add_edge(_graph().START, "a")
    builder.add_conditional_edges("a", _to_nope)
    said, error = _tried(lambda: builder.compile().invoke({"said": [], "n": 0})["said"])
    return "nope" in error, error or f"the run finished after {said}, without an error"


def unreachable_node() -> Seen:
    _, error = _tried(lambda: _built({"a": _saying("a"), "lost": _saying("lost")}, [("START", "a")]))
    return bool(error), error or "it compiles"


def subgraph_on_a_shared_channel() -> Seen:
    child = _built({"c": _saying("c")}, [("START", "c")])
    said = _built({"child": child}, [("START", "child")]).invoke({"said": ["u"], "n": 0})["said"]
    return said == ["u", "c"], f"the history is {said}"


def state_changed_in_place() -> Seen:
    given = {"said": ["mine"], "n": 0}

    def sneak(state: Log) -> dict[str, Any]:
        state["said"].append("sneaked in")
        return {}

    try:
        found = _built({"a": sneak}, [("START", "a")]).invoke(given)["said"]
    except TypeError as error:
        return True, f"TypeError: {error}"
    return found == ["mine"] == given["said"], f"state {found}, the caller's own list {given['said']}"


def output_of_the_wrong_type() -> Seen:
    def wrong(_: Log) -> dict[str, Any]:
        return {"n": "seven"}

    found, error = _tried(lambda: _built({"a": wrong}, [("START", "a")]).invoke({"said": [], "n": 0})["n"])
    return bool(error), error or f"the int channel holds {found!r}"


def key_with_a_typing_error() -> Seen:
    def typo(_: Log) -> dict[str, Any]:
        return {"n": 1, "siad": ["x"]}

    found, error = _tried(lambda: _built({"a": typo}, [("START", "a")]).invoke({"said": [], "n": 0}))
    return bool(error), error or f"finished with {found}, without an error"


def two_runs_on_one_thread() -> Seen:
    async def slow(_: Log) -> dict[str, Any]:
        await asyncio.sleep(0.02)
        return {"said": ["answer"]}

    app = _built({"a": slow}, [("START", "a")], checkpointer=_saver())

    async def both() -> list[Any]:
        inputs = ({"said": [word], "n": 0} for word in ("x", "y"))
        return await asyncio.gather(*(app.ainvoke(given, THREAD) for given in inputs), return_exceptions=True)

    found = asyncio.run(both())
    held = app.get_state(THREAD).values["said"]
    refused = any(isinstance(one, Exception) for one in found)
    return refused or len(held) == 4, f"both runs succeeded and the thread holds {held}"


def limit_of_steps() -> Seen:
    builder = _graph().StateGraph(Log)
    builder.add_node("a", _saying("a"))
    builder.add_edge(_graph().START, "a")
    builder.add_conditional_edges("a", _to_a, ["a"])
    try:
        builder.compile().invoke({"said": [], "n": 0}, {"recursion_limit": 5})
    except Exception as error:  # noqa: BLE001 - whatever it is
        return False, f"{type(error).__name__} is raised, and what five steps did is lost"
    return True, "the state is returned"


def chunks_of_a_blocking_async_node() -> Seen:
    arrived: list[float] = []

    async def talk(_: Log) -> dict[str, Any]:
        write = importlib.import_module("langgraph.config").get_stream_writer()
        for at in range(3):
            time.sleep(0.02)  # noqa: ASYNC251 - what the case is about
            write(at)
        arrived.append(time.monotonic())
        return {}

    app = _built({"a": talk}, [("START", "a")])

    async def read() -> float:
        async for _chunk in app.astream({"said": [], "n": 0}, stream_mode="custom"):
            return time.monotonic()
        return 0.0

    first = asyncio.run(read())
    late = not arrived or first >= arrived[0]
    return (
        not late,
        "the first chunk came after the node was over" if late else "chunks came as they were written",
    )


CASES: tuple[tuple[str, Callable[[], Seen]], ...] = (
    ("G9 effect before an interrupt", effect_before_an_interrupt),
    ("G10 interrupt within try/except", interrupt_in_a_try),
    ("G15 timeout of a plain node", timeout_of_a_plain_node),
    ("G17 join after a branch not taken", join_of_a_branch_not_taken),
    ("G18 branches of unequal length", branches_of_unequal_length),
    ("G20 fast branch beside a slow one", fast_branch_beside_a_slow_one),
    ("G21 64 plain nodes at once", wide_fan_out_of_plain_nodes),
    ("G22 goto beside an edge", goto_beside_an_edge),
    ("G23 route to a node that is not there", route_to_nowhere),
    ("G23 node that nothing leads to", unreachable_node),
    ("G24 subgraph on a shared channel", subgraph_on_a_shared_channel),
    ("G25 state changed in place", state_changed_in_place),
    ("G27 output of the wrong type", output_of_the_wrong_type),
    ("G27 channel with a typing error", key_with_a_typing_error),
    ("G28 two runs on one thread", two_runs_on_one_thread),
    ("limit of steps", limit_of_steps),
    ("chunks of an async node that blocks", chunks_of_a_blocking_async_node),
)


def lines() -> Iterator[str]:
    """Yield a line for each case, as it is tried."""
    for name, case in CASES:
        holds, what = case()
        yield f"{name}: {'holds' if holds else 'fails'}: {' '.join(what.split())[:160]}"


if __name__ == "__main__":
    for line in lines():
        print(line, flush=True)
