"""Grids in the workbench: what is done on `GriddingParamCard`, and the cards that tell how it goes."""

import asyncio
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Final, cast

import numpy as np

from dialoom.apps.geo import GridJob, Search, run_job
from dialoom.apps.geo.points import Floats
from dialoom.apps.geo.worker import Computed
from dialoom.base.errors import DialoomError, UsageError
from dialoom.base.ids import new_id
from dialoom.base.text import one_line
from dialoom.conversation.cards import Card, GriddingParamCard, Plot, WorkflowStatus, WorkflowStep
from dialoom.conversation.cards.gridding import GridOutput, GridResult, GridSearch
from dialoom.server.card_work import CardHandlers, CardWork
from dialoom.server.files import StoredFile

_STEPS: Final = (("read", "Read the points"), ("grid", "Compute the grid"), ("keep", "Keep the files"))
_TOLD_EVERY: Final = 0.25
"""Progress is an entry of the log, so it is told in quarters."""
_MIMES: Final = {"png": "image/png", "csv": "text/csv"}


async def run_grid(work: CardWork) -> Card:
    """Begin to compute; a workflow card tells how far it is, and a plot what came of it."""
    card = cast("GriddingParamCard", work.card)
    job = _job(card)
    if not card.dataset_id:
        raise UsageError("this card names no points; load a file first")
    await asyncio.to_thread(work.desk.keep.datasets.find, card.dataset_id)
    name = _job_name(work)
    if work.desk.is_going(name):
        raise UsageError("this grid is being computed; wait for it or cancel it")
    flow = WorkflowStatus(
        id=new_id(),
        title=one_line(card.title or "Gridding", 80),
        run_id=name,
        steps=tuple(
            WorkflowStep(id=step, display_name=words, order=at) for at, (step, words) in enumerate(_STEPS)
        ),
    )
    await work.show(flow)
    work.desk.start(_grid(work, job, flow.id or "", card.dataset_id), name)
    return card.changed(status="running", error=None, result=None, nx=job.nx, ny=job.ny)


async def cancel_grid(work: CardWork) -> Card:
    """Stop computing; the job itself says on its cards that it ended."""
    if not work.desk.stop(_job_name(work)):
        return work.card.changed(status="draft")
    return work.card


GRID_HANDLERS: Final[CardHandlers] = {
    ("GriddingParamCard", "run"): run_grid,
    ("GriddingParamCard", "cancel"): cancel_grid,
}
"""The handlers of cards of grids."""


async def keep_file(work: CardWork, content: bytes, name: str, mime: str) -> StoredFile:
    return await work.desk.keep.files.keep(content, name=name, mime=mime)


def _job(card: GriddingParamCard) -> GridJob:
    """Return what the card asks to be computed. Raises `UsageError` for what is not done here."""
    if card.extent is None or card.cell is None:
        raise UsageError("this card has no extent or no cell; give both")
    if card.mask == "polygon":
        raise UsageError("a mask by polygon is not built here; choose convex_hull or distance")
    search = card.search or GridSearch()
    if search.sectors != 1 or search.anisotropy is not None:
        raise UsageError("sectors and anisotropy are not built here; search in one round sector")
    extent, cell, output = card.extent, card.cell, card.output or GridOutput()
    return GridJob(
        x_min=extent.x_min,
        y_min=extent.y_min,
        dx=cell.dx,
        dy=cell.dy,
        nx=_nodes(extent.x_min, extent.x_max, cell.dx),
        ny=_nodes(extent.y_min, extent.y_max, cell.dy),
        method=card.method,
        params=cast("dict[str, float | int | str | bool | None]", card.params.stored()),
        search=Search(
            radius=search.radius, min_points=search.min_points, max_points=min(search.max_points, 100)
        ),
        mask=card.mask,
        log10=card.z_transform == "log10",
        clamp=card.clamp_to_data,
        folds=card.cross_validation.folds if card.cross_validation else 0,
        formats=output.formats,
    )


def _nodes(low: float, high: float, step: float) -> int:
    if not (np.isfinite(low) and np.isfinite(high) and high > low and (high - low) / step < 1e7):
        raise UsageError("an extent goes from a smaller to a larger number, in cells that fit; mend it")
    return int((high - low) / step + 1e-9) + 1


def _job_name(work: CardWork) -> str:
    return f"grid {work.conversation_id} {work.card_id}"


async def _grid(work: CardWork, job: GridJob, flow: str, dataset_id: str) -> None:
    """Compute, and say on the cards how it went: done, failed or cancelled."""
    began = monotonic()
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="dialoom-grid-"))
    telling = _Telling(work, flow)
    try:
        points = await asyncio.to_thread(_points, work, dataset_id)
        await telling.at("grid")
        computed = await run_job(folder, job, points, progress=telling.note)
        await telling.at("keep")
        kept = await _keep_all(work, folder, computed)
        result = _result(computed, kept, elapsed=monotonic() - began)
        await work.change(lambda card: card.changed(status="done", result=result.stored()))
        await telling.ended("done")
        await work.show(_plot(work, result, dataset_id))
    except DialoomError as error:
        why = one_line(str(error), 300)
        await work.change(lambda card: card.changed(status="draft", error=why))
        await telling.ended("failed", why)
    except asyncio.CancelledError:
        with suppress(DialoomError):  # the server may be ending, and its dialogs be closed
            await work.change(lambda card: card.changed(status="draft"))
            await telling.ended("cancelled")
        raise
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


class _Telling:
    """Says on a workflow card where a job is; of the many shares of a step, quarters are told."""

    def __init__(self, work: CardWork, flow: str) -> None:
        self._work = work
        self._flow = flow
        self._told = 0.0
        self._now = _STEPS[0][0]

    async def at(self, step: str) -> None:
        """Say that a step begins, and that those before it are done."""
        self._now = step
        await self._change(step, 0.0)

    def note(self, share: float) -> None:
        """Take a share of the step from the process, and tell it when it is a quarter more."""
        if share - self._told >= _TOLD_EVERY and share < 1:
            self._told = share
            self._work.desk.start(self._change(self._now, share), f"progress {new_id()}")

    async def ended(self, status: str, message: str = "") -> None:
        """Say how the job ended, at the step where it was."""
        last = {"done": "done", "failed": "failed"}.get(status, "skipped")

        def change(card: Card) -> Card:
            flow = cast("WorkflowStatus", card)
            if flow.status is not None:
                return flow  # it was cancelled there
            steps = [
                (
                    step
                    if step.status == "done"
                    else step.changed(status=last, progress=None, message=message)
                ).stored()
                for step in flow.steps
            ]
            return flow.changed(steps=steps, status=status)

        await self._work.desk.change(self._work.conversation_id, self._flow, change)

    async def _change(self, name: str, share: float) -> None:
        now = next(at for at, (step, _) in enumerate(_STEPS) if step == name)

        def change(card: Card) -> Card:
            flow = cast("WorkflowStatus", card)
            if flow.status is not None or flow.steps[now].status == "done":
                return flow  # it went on meanwhile
            steps = [_moved(step, step.order - now, share).stored() for step in flow.steps]
            return flow.changed(steps=steps)

        await self._work.desk.change(self._work.conversation_id, self._flow, change)


def _moved(step: WorkflowStep, ahead: int, share: float) -> WorkflowStep:
    if ahead == 0:
        return step.changed(status="running", progress=share)
    return step.changed(status="done", progress=None) if ahead < 0 else step


def _points(work: CardWork, dataset_id: str) -> Floats:
    rows = list(work.desk.keep.datasets.all_rows(dataset_id))
    return np.array(rows, dtype=np.float64)


async def _keep_all(work: CardWork, folder: Path, computed: Computed) -> dict[str, StoredFile]:
    kept: dict[str, StoredFile] = {}
    for kind, name in computed.files.items():
        content = await asyncio.to_thread((folder / name).read_bytes)
        label = f"{one_line(work.card.title, 60) or 'grid'}.{kind}"
        kept[kind] = await keep_file(work, content, label, _MIMES.get(kind, "application/octet-stream"))
    return kept


def _result(computed: Computed, kept: dict[str, StoredFile], *, elapsed: float) -> GridResult:
    outcome = computed.outcome
    return GridResult(
        grid_id=kept["npy"].id if "npy" in kept else None,
        nx=outcome.nx,
        ny=outcome.ny,
        z_min=outcome.z_min,
        z_max=outcome.z_max,
        null_count=outcome.null_count,
        rmse=outcome.rmse,
        mae=outcome.mae,
        elapsed_ms=round(elapsed * 1000),
        image_id=kept["png"].id,
        files=tuple(each.id for each in kept.values()),
        file_names=tuple(each.name for each in kept.values()),
    )


def _plot(work: CardWork, result: GridResult, dataset_id: str) -> Plot:
    card = cast("GriddingParamCard", work.card)
    error = "" if result.rmse is None else f", rmse {result.rmse:.4g}"
    return Plot(
        id=new_id(),
        title=card.title,
        image_id=result.image_id,
        caption=f"{card.method}, {result.nx} × {result.ny} nodes{error}",
        alt_text=f"map of {card.title}" if card.title else "map",
        dataset_id=dataset_id,
        grid_id=result.grid_id,
    )
