"""Gridding in a process of its own: bounded in time, told of as it goes, ended when nobody waits for it."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from dialoom.apps.geo.grid import GridJob, GridOutcome, compute
from dialoom.apps.geo.grid_files import write_grid
from dialoom.apps.geo.points import Floats
from dialoom.base.errors import DialoomError, UsageError
from dialoom.base.text import one_line

MAX_SECONDS: Final = 600.0
_FAILED = 3


class Computed(msgspec.Struct, frozen=True):
    """What a run gave: figures, and each format's file in the folder of the run."""

    outcome: GridOutcome
    files: dict[str, str]


async def run_job(
    folder: Path,
    job: GridJob,
    points: Floats,
    *,
    progress: Callable[[float], None] = lambda _: None,
    seconds: float = MAX_SECONDS,
) -> Computed:
    """Compute in a process of its own and leave the files in `folder`. Cancelling ends the process.

    Raises `UsageError` with what the process says, or when it takes longer than `seconds`.
    """
    await asyncio.to_thread(_put, folder, job, points)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dialoom.apps.geo", str(folder),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(seconds):
            said = await _follow(process, progress)
            code = await process.wait()
    except TimeoutError as error:
        raise UsageError(
            f"gridding took longer than {seconds:g} seconds; use larger cells or another method"
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if code != 0:
        raise UsageError(_why(code, said))
    return msgspec.json.decode((folder / "result.json").read_bytes(), type=Computed)


def _why(code: int, said: str) -> str:
    """Return why a process ended with `code`: by what it said, by the machine's lack of memory, or broken."""
    if code == _FAILED:
        return said
    if code < 0:
        return f"gridding was ended by the machine (signal {-code}); use larger cells"
    return f"gridding broke off with code {code}; what it printed on stderr says why"


async def _follow(process: asyncio.subprocess.Process, progress: Callable[[float], None]) -> str:
    """Tell of the progress that the process prints; return its last other line."""
    assert process.stdout is not None
    said = ""
    async for line in process.stdout:
        words = line.decode("utf-8", "replace").strip()
        if words.startswith("at "):
            progress(float(words[3:]))
        else:
            said = one_line(words, 300)
    return said


def _put(folder: Path, job: GridJob, points: Floats) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.json").write_bytes(msgspec.json.encode(job))
    np.save(folder / "points.npy", points)


def main(folder: Path) -> int:
    """Do the job of a folder; print progress as `at 0.5`, and what is wrong as a line."""
    job = msgspec.json.decode((folder / "job.json").read_bytes(), type=GridJob)
    points: Floats = np.load(folder / "points.npy", allow_pickle=False)
    try:
        grid, outcome = compute(job, points, progress=lambda share: print(f"at {share:.4f}", flush=True))
    except DialoomError as error:
        print(one_line(str(error), 300), flush=True)
        return _FAILED
    files = {kind: path.name for kind, path in write_grid(folder, job, grid).items()}
    (folder / "result.json").write_bytes(msgspec.json.encode(Computed(outcome, files)))
    return 0
