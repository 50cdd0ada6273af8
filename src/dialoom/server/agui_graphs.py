"""Graphs over AG-UI: one call runs a thread of a graph and streams its steps; leaving stops nothing.

A client that calls while its thread runs joins it: it gets the steps under way, then the rest. Questions of a
graph end the run as interrupts; a call with answers goes on. That needs a graph with a store.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec
from starlette.responses import Response

from dialoom.base.errors import DialoomError, UsageError
from dialoom.base.ids import new_id
from dialoom.base.text import one_line
from dialoom.graph import (
    Chunk,
    Graph,
    GraphEvent,
    Interrupt,
    NodeBegin,
    NodeEnd,
    ResumeCommand,
    Retry,
    RunControl,
    RunOptions,
    RunResult,
    StepCommitted,
)
from dialoom.server.agui_stream import Fields, Followed, RunName, ThreadId, agui_response
from dialoom.server.background import Background
from dialoom.server.graphs import checkpoint_name, plain_state
from dialoom.server.hub import Event, EventHub
from dialoom.server.problems import ProblemError, not_found
from dialoom.server.routes import AnyRoute, Call, Nothing, Route
from dialoom.server.sse import MEDIA_TYPE
from dialoom.server.watched import custom

RESERVED = "dialog"
"""No graph has this name: conversations are run under it."""
_INTERNAL = ("internal", "this run ended here; the server's log says why")


class GraphAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """An answer to a question of a graph: the interrupt's id, and any value."""

    interrupt_id: Annotated[str, msgspec.Meta(max_length=1000)]
    payload: object = None


class RunGraphInput(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a client asks for: `state` has what the channels begin with, or get anew."""

    thread_id: ThreadId
    run_id: RunName
    state: Fields | None = None
    resume: list[GraphAnswer] = []


class ThreadName(msgspec.Struct, frozen=True, rename="camel"):
    """A thread of a graph."""

    thread_id: ThreadId


class AguiGraphs:
    """Serves graphs over AG-UI; of each thread one run goes on at a time."""

    def __init__(self, graphs: Mapping[str, Graph], hub: EventHub, background: Background) -> None:
        if RESERVED in graphs:
            raise UsageError(f"no graph can be served as {RESERVED!r}, which runs conversations; rename it")
        self._graphs = dict(graphs)
        self._hub = hub
        self._background = background
        self._going: dict[str, _Going] = {}

    def routes(self) -> list[AnyRoute]:
        return [
            Route(
                "POST", "/agui/{graph}", self.run, body=RunGraphInput, media=MEDIA_TYPE, refusals=(409,),
                summary="Run a thread of a graph over AG-UI, or join its run",
            ),
            Route(
                "POST", "/agui/{graph}/cancel", self.cancel, body=ThreadName,
                summary="Stop the run of a graph's thread; its finished steps are kept",
            ),
        ]  # fmt: skip

    async def run(self, call: Call[Nothing, RunGraphInput]) -> Response:
        graph, topic = self._find(call, call.body.thread_id)
        asked, going = call.body, self._going.get(topic)
        if going is not None and asked.resume:
            raise ProblemError(409, "run_active", "this thread runs; answer it when it has ended")
        subscription = self._hub.subscribe([topic])
        try:
            first = [] if going is None else list(going.so_far(asked.thread_id))
            going = going or self._start(graph, topic, asked)
        except BaseException:
            subscription.close()
            raise
        followed = Followed(topic=topic, run_id=going.run_id, name=asked.run_id)
        return agui_response(self._hub, subscription, first, followed)

    async def cancel(self, call: Call[Nothing, ThreadName]) -> None:
        _, topic = self._find(call, call.body.thread_id)
        going = self._going.get(topic)
        if going is None:
            raise not_found("run of thread", call.body.thread_id, then="it has ended")
        going.control.cancel()

    def _find(
        self, call: Call[Nothing, RunGraphInput] | Call[Nothing, ThreadName], thread: str
    ) -> tuple[Graph, str]:
        name = call.name("graph")
        graph = self._graphs.get(name)
        if graph is None:
            raise not_found("graph", name)
        return graph, f"{name}/{thread}"

    def _start(self, graph: Graph, topic: str, asked: RunGraphInput) -> "_Going":
        going = _Going()
        self._background.start(self._carry(graph, topic, asked, going), f"graph {topic}")
        self._going[topic] = going
        # at once: who joins is told by us that it has begun
        names = {"threadId": asked.thread_id, "runId": going.run_id}
        self._hub.publish(topic, {"type": "RUN_STARTED", **names}, runId=going.run_id)
        return going

    async def _carry(self, graph: Graph, topic: str, asked: RunGraphInput, going: "_Going") -> None:
        """Run to the end, and say what happens; whatever comes in between, the end is said."""
        names = {"threadId": asked.thread_id, "runId": going.run_id}
        options = RunOptions(thread_id=asked.thread_id, control=going.control)
        ending = [_failed(names, *_INTERNAL)]
        try:
            if asked.resume:
                answers = ResumeCommand.many({each.interrupt_id: each.payload for each in asked.resume})
                stream = graph.resume_stream(asked.thread_id, answers, options=options)
            else:
                stream = graph.stream(asked.state, options)
            async with stream:
                async for event in stream:
                    for each in going.told(event):
                        self._hub.publish(topic, each, runId=going.run_id)
            ending = await asyncio.to_thread(_ended, stream.result, names)
        except DialoomError as error:
            ending = [_failed(names, error.code, str(error))]
        finally:
            del self._going[topic]
            for each in (*going.closed(), *ending):
                self._hub.publish(topic, each, runId=going.run_id)


class _Going:
    """A run that goes on, with the steps that have begun and not ended."""

    def __init__(self) -> None:
        self.run_id = new_id()
        self.control = RunControl()
        self._open: dict[str, None] = {}

    def so_far(self, thread: str) -> Iterator[Event]:
        """Yield what brings a client that joins late to where the run is."""
        yield {"type": "RUN_STARTED", "threadId": thread, "runId": self.run_id}
        yield from ({"type": "STEP_STARTED", "stepName": name} for name in self._open)

    def told(self, event: GraphEvent) -> Iterator[Event]:
        """Yield what an event is to those who follow; how a run ends is said once, at its end."""
        match event:
            case NodeBegin() if (name := _step(event)) not in self._open:
                self._open[name] = None
                yield {"type": "STEP_STARTED", "stepName": name}
            case NodeEnd() if _step(event) in self._open:
                del self._open[_step(event)]
                yield {
                    "type": "STEP_FINISHED",
                    "stepName": _step(event),
                    "metadata": {"status": event.status},
                }
            case Chunk(value=value):
                yield custom("graph.chunk", {"node": _step(event), "value": _plain(value)})
            case Retry(attempt=attempt, message=message):
                tried = {"node": _step(event), "attempt": attempt, "message": one_line(message, 300)}
                yield custom("graph.retry", tried)
            case StepCommitted(ns=()):
                yield custom("graph.superstep", _superstep(event))
            case _:
                pass

    def closed(self) -> Iterator[Event]:
        """Yield the ends of steps that never came to theirs."""
        yield from ({"type": "STEP_FINISHED", "stepName": name} for name in self._open)


def _step(event: NodeBegin | NodeEnd | Chunk | Retry) -> str:
    """Return the name of a step: steps of subgraphs and items have names of their own."""
    name = "/".join((*event.ns, event.node))
    return name if event.item is None else f"{name}[{event.item}]"


def _superstep(event: StepCommitted) -> Fields:
    kept = event.checkpoint_id and checkpoint_name(event.thread_id, event.checkpoint_id)
    return {
        "step": event.step,
        "nodes": list(event.nodes),
        "writes": list(event.channels),
        "checkpointId": kept,
    }


def _ended(result: RunResult, names: Fields) -> list[Event]:
    state, cut = plain_state(result.state)
    snapshot: Event = {"type": "STATE_SNAPSHOT", "snapshot": state, "metadata": {"cut": cut}}
    match result.stop_reason:
        case "finished" | "halted":
            outcome: Fields = {"type": "success"}
        case "interrupted":
            outcome = {"type": "interrupt", "interrupts": [_interrupt(each) for each in result.interrupts]}
        case "cancelled":
            outcome = {"type": "cancelled"}
        case reason:
            told = "; ".join(each.message for each in result.errors) or f"the run ended: {reason}"
            return [snapshot, _failed(names, reason, told)]
    return [snapshot, {"type": "RUN_FINISHED", **names, "outcome": outcome}]


def _interrupt(question: Interrupt) -> Fields:
    payload = _plain(question.payload)
    message = payload if isinstance(payload, str) else question.node
    return {
        "id": question.id, "reason": "input_required", "message": message, "metadata": {"payload": payload},
    }  # fmt: skip


def _failed(names: Fields, code: str, message: str) -> Event:
    return {"type": "RUN_ERROR", **names, "code": code, "message": one_line(message, 500)}


def _plain(value: object) -> object:
    return plain_state({"value": value})[0]["value"]
