"""A grid as files other programs read: ESRI and Surfer text, CSV, NumPy, PNG."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from dialoom.apps.geo.grid import GridJob
from dialoom.apps.geo.picture import map_of
from dialoom.apps.geo.points import Floats

NO_DATA: Final = "-99999"
BLANKED: Final = "1.70141e38"


def write_grid(folder: Path, job: GridJob, grid: Floats) -> dict[str, Path]:
    """Write the formats of `job`, and always the picture; return each format's file."""
    written: dict[str, Path] = {}
    for kind in dict.fromkeys((*job.formats, "png")):
        path = written[kind] = folder / f"grid.{kind}"
        match kind:
            case "npy":
                np.save(path, grid)
            case "png":
                path.write_bytes(map_of(grid))
            case "csv":
                _write_csv(path, job, grid)
            case "asc":
                _write_lines(path, (*_esri_header(job), *_rows(grid[::-1], NO_DATA)))
            case "grd":
                _write_lines(path, (*_surfer_header(job, grid), *_rows(grid, BLANKED)))
    return written


def _esri_header(job: GridJob) -> Sequence[str]:
    # the lower left corner of the first cell, whose middle is the first node
    return (
        f"ncols {job.nx}",
        f"nrows {job.ny}",
        f"xllcorner {job.x_min - job.dx / 2!r}",
        f"yllcorner {job.y_min - job.dy / 2!r}",
        f"cellsize {job.dx!r}",
        f"NODATA_value {NO_DATA}",
    )


def _surfer_header(job: GridJob, grid: Floats) -> Sequence[str]:
    known = grid[np.isfinite(grid)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    return (
        "DSAA",
        f"{job.nx} {job.ny}",
        f"{job.x_min!r} {job.x_min + job.dx * (job.nx - 1)!r}",
        f"{job.y_min!r} {job.y_min + job.dy * (job.ny - 1)!r}",
        f"{low!r} {high!r}",
    )


def _rows(grid: Floats, empty: str) -> Iterator[str]:
    for row in grid:
        yield " ".join(f"{value:.9g}" if np.isfinite(value) else empty for value in row)


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _write_csv(path: Path, job: GridJob, grid: Floats) -> None:
    with path.open("w", encoding="ascii", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("x", "y", "z"))
        for down, row in enumerate(grid):
            y = job.y_min + job.dy * down
            writer.writerows(
                (job.x_min + job.dx * across, y, f"{value:.9g}")
                for across, value in enumerate(row)
                if np.isfinite(value)
            )
