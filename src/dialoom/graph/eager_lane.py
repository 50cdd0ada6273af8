"""A run on an event loop whose nodes do not wait for the slow ones beside them."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dialoom.graph.async_lane import AsyncLane
from dialoom.graph.channels import WriteRefused, apply_writes
from dialoom.graph.commit import Outcome
from dialoom.graph.context import NodeContext
from dialoom.graph.lane import Task, lines_of
from dialoom.graph.result import NodeResult
from dialoom.graph.run import Run
from dialoom.graph.setup import Setup
from dialoom.graph.state import State
from dialoom.graph.table import NodeSpec

Place = tuple[int, str, int | None]
"""The superstep, the node and the item of a task."""


class Begun(NamedTuple):
    """A task that was started. `line` are those it certainly follows, itself the last.

    It was started ahead of its superstep when it follows any.
    """

    work: "asyncio.Task[Outcome]"
    line: tuple[Place, ...]


class EagerLane(AsyncLane):
    """Starts a node ahead of its superstep, as soon as the one it certainly follows is through.

    What a superstep is, and the order in which supersteps commit, stay as they are: when its superstep comes,
    a node that was started ahead has a head start and no more. It sees what was committed when its line left
    the superstep at hand, and what the nodes of that line have written since. A node is started ahead when a
    plain edge or a goto leads to it and by no edge anything else that runs can lead to the same; it is no
    map and no subgraph, and its graph has no joins. One that fails ahead, pauses or uses `once` runs again
    in its turn.
    """

    __slots__ = ("_begun", "_places", "_run", "_setup")

    def __init__(self, run: Run, setup: Setup) -> None:
        limit = run.options.max_concurrency
        super().__init__(run.stop, run.publisher, limit, clock=run.clock, chance=run.chance)
        self._run = run
        self._setup = setup
        self._places = asyncio.Semaphore(limit)
        self._begun: dict[Place, Begun] = {}

    async def run_nodes(self, tasks: Sequence[Task]) -> Sequence[Outcome]:
        outcomes: list[Outcome] = [None] * len(tasks)
        self.begin_nodes()
        try:
            await self._turn(tasks, outcomes)
        except asyncio.CancelledError as error:
            if self._task.cancelling() - self._asked > self._cancels:
                self._cancelled_by_others(error)
            begun = [self._begun.get(_place(context)) for _, context in tasks]
            await self._leave()
            outcomes = [None if each is None else _said(each) for each in begun]
        finally:
            self.end_nodes()
        return outcomes

    async def end(self) -> None:
        await self._leave()
        if (rest := super().end()) is not None:
            await rest

    async def _leave(self) -> None:
        left = [begun.work for begun in self._begun.values()]
        self._begun.clear()
        for work in left:
            work.cancel()
        while not all(work.done() for work in left):
            try:
                await asyncio.wait(left)
            except asyncio.CancelledError as error:
                self._cancelled_by_others(error)

    async def _turn(self, tasks: Sequence[Task], outcomes: list[Outcome]) -> None:
        """Carry out a superstep: with what was started ahead, and again what could not be done ahead."""
        waiting: Sequence[int] = range(len(tasks))
        while waiting:
            for limit, line in lines_of(tasks, waiting, self._limit):
                places = self._places if limit == self._limit else asyncio.Semaphore(limit)
                for at in line:
                    self._start(*tasks[at], places)
            begun = {at: self._begun[_place(tasks[at][1])] for at in waiting}
            await asyncio.wait([each.work for each in begun.values()])
            for at, each in begun.items():
                outcomes[at] = _said(each)
            again = [at for at, each in begun.items() if len(each.line) > 1 and outcomes[at] is None]
            waiting = again if self._stop.reason is None else ()
            for at in waiting:
                del self._begun[_place(tasks[at][1])]
        for _, context in tasks:
            del self._begun[_place(context)]

    def _start(
        self,
        spec: NodeSpec,
        context: NodeContext,
        places: asyncio.Semaphore,
        *,
        follows: tuple[Place, ...] = (),
    ) -> None:
        place = _place(context)
        if place not in self._begun:
            # owned by this lane: its superstep takes it, or `end` does
            work = self._loop.create_task(self._placed(spec, context, places))
            self._begun[place] = Begun(work, (*follows, place))

    async def _placed(self, spec: NodeSpec, context: NodeContext, places: asyncio.Semaphore) -> Outcome:
        async with places:
            outcome = None if self._stop.reason is not None else await self._one(spec, context)
        if (
            isinstance(outcome, NodeResult)
            and not outcome.halt
            and context.step < self._run.options.max_steps
        ):
            self._go_ahead(context, outcome)
        return outcome

    def _go_ahead(self, context: NodeContext, result: NodeResult) -> None:
        """Start what certainly follows a node that ran in `context` and gave `result`."""
        table, begun = self._setup.table, self._begun.get(_place(context))
        static = table.exits[context.node].static
        names = [] if begun is None else [*(static if result.goto is None else result.goto)]
        ahead = [name for name in names if begun is not None and self._is_clear(name, begun.line)]
        if begun is None or not ahead:
            return
        values = dict(context.state)
        try:
            apply_writes(table.channels, values, context.node, result.writes)
        except WriteRefused:
            return  # its superstep says so
        for name in ahead:
            step = context.step + 1
            emit = self._run.emitter(name, None, step)
            following = NodeContext(self._run, name, State(values), step, emit)
            self._start(table.nodes[name], following, self._places, follows=begun.line)

    def _is_clear(self, name: str, line: tuple[Place, ...]) -> bool:
        """Whether `name` is sure to run behind `line`, and once, and for no other reason."""
        spec = self._setup.table.nodes.get(name)
        if spec is None or spec.each is not None or spec.child is not None or self._setup.table.joins:
            return False
        step = line[-1][0]
        return not any(
            name == node or (at <= step and name in self._ways(at, node, line)) for at, node, _ in self._begun
        )

    def _ways(self, at: int, node: str, line: tuple[Place, ...]) -> Iterator[str]:
        """Yield where a task that runs may lead to by the superstep after `line`, other than by that line."""
        onward = self._setup.onward
        own = {place[0]: place[1] for place in line}
        step = line[-1][0]
        if own.get(at) == node:
            others = onward[node] - {own.get(at + 1, "")} if at < step else ()
        else:
            others = onward[node]
        for other in others:
            yield other
            if at < step:
                yield from self._setup.reaches[other]


def _said(begun: Begun) -> Outcome:
    """Return what a task that is over came to; None when it was stopped or failed ahead of its turn."""
    outcome = None if begun.work.cancelled() else begun.work.result()
    return outcome if len(begun.line) == 1 or isinstance(outcome, NodeResult) else None


def _place(context: NodeContext) -> Place:
    return context.step, context.node, context.item
