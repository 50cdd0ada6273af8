"""A graph as a tool: its channels are the arguments, its end the result, its questions asked on the way."""

from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec

from dialoom.base.ids import new_id
from dialoom.base.text import one_line
from dialoom.graph.events import StepCommitted
from dialoom.graph.graph import Graph
from dialoom.graph.options import RunOptions
from dialoom.graph.result import RunResult
from dialoom.graph.resume import ResumeCommand
from dialoom.tools.context import ToolContext
from dialoom.tools.observe import observe, to_plain
from dialoom.tools.result import ToolResult, failed
from dialoom.tools.tool import Tool, ToolOptions

MAX_STOPS: Final = 20


class GraphTool(Tool):
    """Runs `graph` on the arguments and returns its state, or of it the channel `gives`.

    `takes` is the JSON Schema of the arguments; without it every channel may be given. Supersteps are shown
    as progress. A graph that asks people needs a store: it is resumed from there with the answer.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        description: str,
        name: str | None = None,
        takes: Mapping[str, object] | None = None,
        gives: str | None = None,
        options: ToolOptions | None = None,
    ) -> None:
        self.name = name or graph.name
        self.description = description
        self.options = options or ToolOptions()
        self._graph = graph
        self._takes = takes or _channels_as_schema(graph)
        self._gives = gives

    def parameters_schema(self) -> Mapping[str, object]:
        return self._takes

    async def run(self, args: dict[str, object], ctx: ToolContext) -> ToolResult:
        """Run the graph to its end. Raises `Interrupted` while it waits for a person."""
        thread: str = await ctx.aonce("thread", _new_thread)
        answers: dict[str, object] = {}
        for number in range(MAX_STOPS):
            go_on = partial(self._stopped, args, answers, ctx, thread=thread)
            try:
                waiting = msgspec.json.decode(await ctx.aonce(f"stop/{number}", go_on), type=list[_Waiting])
            except _Ended as ended:
                return self._observed(ended.result)
            answers = {each.id: ctx.ask(each.payload, key=f"{number}/{each.id}") for each in waiting}
        return failed(
            "max_questions", tool=self.name, more={"message": f"it asked more than {MAX_STOPS} times"}
        )

    async def _stopped(
        self, args: dict[str, object], answers: dict[str, object], ctx: ToolContext, *, thread: str
    ) -> str:
        """Run until the graph waits for a person; return for what, as JSON. Raises `_Ended` at its end."""
        options = RunOptions(thread_id=thread, control=ctx.cancel, deps=ctx.deps)
        if answers:
            stream = self._graph.resume_stream(thread, ResumeCommand.many(answers), options=options)
        else:
            stream = self._graph.stream(args, options)
        async with stream:
            async for event in stream:
                if isinstance(event, StepCommitted) and event.nodes and not event.ns:
                    ctx.emit({"progress": event.step, "message": ", ".join(event.nodes)})
            result = stream.result
        if result.stop_reason != "interrupted" or result.checkpoint_id is None:
            raise _Ended(result)
        waiting = [_Waiting(each.id, to_plain(each.payload)) for each in result.interrupts]
        return msgspec.json.encode(waiting).decode()

    def _observed(self, result: RunResult) -> ToolResult:
        if result.stop_reason == "finished":
            return observe(result.state[self._gives] if self._gives else dict(result.state), tool=self.name)
        told = "it waits for a person, and has no store to wait in; give the graph one"
        if result.stop_reason != "interrupted":
            told = "; ".join(one_line(error.message) for error in result.errors[:3])
        return failed(result.stop_reason, tool=self.name, more={"message": told})


class _Waiting(msgspec.Struct, frozen=True):
    id: str
    payload: object


class _Ended(Exception):  # noqa: N818 - no error: how a run that came to its end leaves the journal
    def __init__(self, result: RunResult) -> None:
        super().__init__("ended")
        self.result = result


async def _new_thread() -> str:
    return new_id()


def _channels_as_schema(graph: Graph) -> dict[str, object]:
    """Take every channel, with any value. Raises `UsageError` for a graph that cannot be described."""
    channels = graph.to_dict()["channels"]
    return {
        "type": "object",
        "properties": {channel["name"]: {} for channel in channels},
        "additionalProperties": False,
    }
