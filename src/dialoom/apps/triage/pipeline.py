"""The graph of a triage: load, prepare, process, persist.

Long files go through `prepare` and `process` in rounds, so that vectors take little memory and a checkpoint
little space.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from dialoom.apps.triage.cases import Job
from dialoom.apps.triage.desk import Desk
from dialoom.apps.triage.report import Report, summary_of
from dialoom.apps.triage.rows import MAX_ROWS, Rows, Ticket, read_tickets
from dialoom.apps.triage.verdict import Hit, Judged
from dialoom.base.errors import StoreError, UsageError
from dialoom.graph import (
    END,
    START,
    CheckpointStore,
    Graph,
    GraphBuilder,
    NodeContext,
    NodeResult,
    Reducers,
    State,
)
from dialoom.llm import Usage

ROUND: Final = 200
"""So many tickets are embedded, and then judged, before the next are."""
MAX_STEPS: Final = 2 * MAX_ROWS // ROUND + 2
STORED_TYPES: Final = (Ticket, Job, Judged, Hit, Usage)
"""What a store has to be able to hold."""


class Paths(msgspec.Struct, frozen=True):
    """Where tickets come from, and where their results go. A pipe is read once, so its rows may be given."""

    tickets: Path | Rows[Ticket]
    out: Path


def triage_graph(
    desk: Desk,
    paths: Paths,
    *,
    concurrency: int,
    warn: Callable[[str], None],
    store: CheckpointStore | None = None,
) -> Graph:
    """Return the graph that judges the tickets of a file, at most `concurrency` at once.

    `warn` hears of rows that are left out. With a `store` that holds `STORED_TYPES` no answer of a model is
    asked for twice, whatever ends the process. Run it with `MAX_STEPS`. It takes no input, and its state has
    `results`, one `Judged` for each ticket in the order of the file. The run ends with stop_reason error when
    there is no ticket or the result file cannot be written.
    """
    steps = _Steps(desk, paths, warn)
    builder = GraphBuilder("triage")
    for name in ("tickets", "left_out", "jobs"):
        builder.add_channel(name)
    for name in ("embedders", "results"):
        builder.add_channel(name, Reducers.append)
    builder.add_node("load", steps.load)
    builder.add_node("prepare", steps.prepare)
    builder.add_map("process", steps.process, over="jobs", into="results", max_concurrency=concurrency)
    builder.add_node("persist", steps.persist)
    builder.add_edge(START, "load")
    builder.add_edge("load", "prepare")
    builder.add_edge("prepare", "process")
    builder.add_conditional_edges("process", _next, {"persist": "persist", "prepare": "prepare"})
    builder.add_edge("persist", END)
    return builder.build(store)


class _Steps:
    """The nodes."""

    def __init__(self, desk: Desk, paths: Paths, warn: Callable[[str], None]) -> None:
        self._desk = desk
        self._paths = paths
        self._warn = warn
        self._unsaved: StoreError | None = None

    def load(self, _: NodeContext) -> dict[str, Any] | NodeResult:
        try:
            given = self._paths.tickets
            found = read_tickets(given) if isinstance(given, Path) else given
        except UsageError as error:
            return NodeResult.fail(str(error))
        for line in found.warnings():
            self._warn(line)
        if not found.rows:
            return NodeResult.fail(found.nothing("id and text"))
        return {"tickets": list(found.rows), "left_out": len(found.left_out)}

    async def prepare(self, ctx: NodeContext) -> dict[str, Any]:
        begin = len(ctx.state.get("results", ()))
        jobs = await self._desk.index.jobs(ctx.state["tickets"][begin : begin + ROUND])
        return {"jobs": jobs, "embedders": [self._desk.index.label]}

    async def process(self, ctx: NodeContext) -> Judged:
        job: Job = ctx.input
        if self._desk.asked is None:
            return await self._desk.judge(job)  # costs nothing to do again
        if self._unsaved is not None:
            raise self._unsaved
        try:
            return await ctx.aonce("judged", lambda: self._desk.judge(job))
        except StoreError as error:
            self._unsaved = error  # no more is asked for that could not be kept
            raise

    def persist(self, ctx: NodeContext) -> dict[str, Any] | NodeResult:
        out = self._paths.out
        try:
            _report(self._desk, ctx.state).write(out)
        except OSError as error:
            told = error.strerror or str(error)
            return NodeResult.fail(f"cannot write {out}: {told}; mend that, then run the same again")
        return {}


def _next(state: State) -> str:
    return "persist" if len(state["results"]) == len(state["tickets"]) else "prepare"


def _report(desk: Desk, state: Mapping[str, Any]) -> Report:
    results: list[Judged] = list(state["results"])
    return Report(
        mode=desk.mode,
        model=None if desk.asked is None else desk.asked.label,
        embedder=", ".join(dict.fromkeys(state["embedders"])),
        summary=summary_of(results, left_out=state["left_out"]),
        tickets=results,
    )
