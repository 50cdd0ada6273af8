"""Grids of points: what each method gives, the files, and the process that computes them."""

import asyncio
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from dialoom.apps.geo import GridJob, Search, compute, run_job, scatter, suggested_cell
from dialoom.apps.geo.grid_files import write_grid
from dialoom.apps.geo.picture import map_of, png
from dialoom.apps.geo.points import Floats
from dialoom.apps.geo.worker import main
from dialoom.base.errors import MissingExtraError, UsageError

SCATTERED = np.random.default_rng(1).uniform(0, 100, (400, 2))
PLANE: Floats = np.column_stack([SCATTERED, 2 * SCATTERED[:, 0] + SCATTERED[:, 1] + 10])


def job(**fields: Any) -> GridJob:
    return GridJob(**{"x_min": 10, "y_min": 20, "dx": 5, "dy": 5, "nx": 15, "ny": 12, **fields})


def truth(made: GridJob) -> Floats:
    x, y = np.meshgrid(made.x_min + made.dx * np.arange(made.nx), made.y_min + made.dy * np.arange(made.ny))
    return 2 * x + y + 10


@pytest.mark.parametrize(
    ("method", "most"),
    [("nearest", 12), ("idw", 6), ("moving_average", 8), ("linear", 1e-6), ("cubic", 1e-3), ("rbf", 1e-3)],
)
def test_every_method_follows_a_plane_and_tells_its_error(method: str, most: float) -> None:
    made = job(method=method, folds=5)
    shares: list[float] = []
    grid, outcome = compute(made, PLANE, progress=shares.append)
    assert np.sqrt(np.nanmean((grid - truth(made)) ** 2)) < most
    assert shares == [1.0]
    assert (outcome.nx, outcome.ny, outcome.null_count) == (15, 12, 0)
    assert outcome.z_min == grid.min()
    assert outcome.rmse is not None
    assert outcome.mae is not None
    assert 0 <= outcome.mae <= outcome.rmse < 3 * most + 3
    assert compute(made, PLANE)[1] == outcome


def test_a_node_on_a_point_has_its_value_and_smoothing_softens_it() -> None:
    points = np.array([[10.0, 20, 5], [80, 75, 50]])
    assert compute(job(), points)[0][0, 0] == 5
    assert compute(job(params={"power": 1, "smoothing": 50}), points)[0][0, 0] > 5


def test_nodes_without_enough_points_near_by_have_no_value() -> None:
    points = np.array([[10.0, 20, 5], [11, 20, 5]])
    grid, outcome = compute(job(search=Search(radius=6, min_points=2)), points)
    assert (grid[0, 0], outcome.null_count) == (5, 15 * 12 - 3)
    alone = compute(job(search=Search(radius=6, min_points=3)), points)[1]
    assert (alone.z_min, alone.z_max, alone.rmse) == (None, None, None)


def test_masks_leave_out_what_is_outside_or_far() -> None:
    corner = PLANE[(PLANE[:, 0] < 40) & (PLANE[:, 1] < 50)]
    whole, hull, near = (compute(job(mask=mask), corner)[1] for mask in ("none", "convex_hull", "distance"))
    assert whole.null_count == 0
    assert hull.null_count > near.null_count > 0


def test_logarithms_and_clamps_hold_the_values() -> None:
    grid, outcome = compute(job(log10=True, clamp=True, method="cubic", folds=3), PLANE)
    assert np.nanmin(grid) >= PLANE[:, 2].min() - 1e-6
    assert outcome.rmse is not None
    with pytest.raises(UsageError, match="values above 0"):
        compute(job(log10=True), PLANE - 500)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"method": "kriging"}, "gridding by kriging is not built here; choose one of nearest, idw"),
        ({"params": {"power": -1}}, "power is a number"),
        ({"method": "rbf", "params": {"kernel": "odd"}}, "rbf gridding: .*; choose other parameters"),
        ({"nx": 1}, "a grid of 1 x 12 nodes is not computed"),
        ({"nx": 3000, "ny": 3000}, "at most 4000000"),
        ({"dx": 0}, "a cell has a size"),
        ({"dx": 4, "formats": ("asc",)}, "an asc file has square cells"),
    ],
)
def test_what_cannot_be_gridded_is_told(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        compute(job(**fields), PLANE)


def test_points_on_a_line_have_no_triangles_and_no_scipy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    line = np.array([[0.0, 0, 1], [1, 1, 2], [2, 2, 3]])
    with pytest.raises(UsageError, match="on a line; choose nearest or idw"):
        compute(job(method="linear"), line)
    monkeypatch.setitem(sys.modules, "scipy.spatial", None)
    with pytest.raises(MissingExtraError, match=r'pip install "dialoom\[geo\]"'):
        compute(job(), PLANE)


def test_a_suggested_cell_is_half_the_spacing_in_two_digits() -> None:
    assert suggested_cell(PLANE) == 2.5
    many = np.column_stack([np.linspace(0, 1000, 10), np.linspace(0, 0.001, 10), np.ones(10)])
    assert suggested_cell(many) == 2.1
    with pytest.raises(UsageError, match="one place"):
        suggested_cell(np.ones((3, 3)))


def test_files_hold_the_grid_as_others_read_it(tmp_path: Path) -> None:
    grid = np.array([[1.0, 2, 3], [4, np.nan, 6]])
    made = job(nx=3, ny=2, formats=("asc", "grd", "csv", "npy"))
    files = write_grid(tmp_path, made, grid)
    assert list(files) == ["asc", "grd", "csv", "npy", "png"]
    assert files["asc"].read_text().splitlines() == [
        "ncols 3", "nrows 2", "xllcorner 7.5", "yllcorner 17.5", "cellsize 5", "NODATA_value -99999",
        "4 -99999 6", "1 2 3",
    ]  # fmt: skip
    assert files["grd"].read_text().splitlines() == [
        "DSAA", "3 2", "10 20", "20 25", "1.0 6.0", "1 2 3", "4 1.70141e38 6",
    ]  # fmt: skip
    assert files["csv"].read_text().splitlines()[:3] == ["x,y,z", "10,20,1", "15,20,2"]
    assert len(files["csv"].read_text().splitlines()) == 6
    assert np.array_equal(np.load(files["npy"]), grid, equal_nan=True)
    empty = write_grid(tmp_path, made, np.full((2, 3), np.nan))
    assert "0.0 0.0" in empty["grd"].read_text()


def pixels(picture: bytes) -> np.ndarray[Any, Any]:
    """Return the pixels of a picture as `png` writes it."""
    width, height = struct.unpack(">II", picture[16:24])
    size = struct.unpack(">I", picture[33:37])[0]
    rows = np.frombuffer(zlib.decompress(picture[41 : 41 + size]), dtype=np.uint8)
    return rows.reshape(height, width * 4 + 1)[:, 1:].reshape(height, width, 4)


def test_pictures_show_north_on_top_and_gaps_as_clear() -> None:
    shown = pixels(map_of(np.array([[1.0, 2], [np.nan, 3]])))
    assert shown[:, :, 3].tolist() == [[0, 255], [255, 255]]
    assert (shown[0, 1, :3].tolist(), shown[1, 0, :3].tolist()) == ([253, 231, 37], [68, 1, 84])
    assert pixels(map_of(np.ones((3000, 10)))).shape == (1000, 4, 4)
    assert pixels(map_of(np.full((2, 2), np.nan))).max() == 0
    assert max(pixels(scatter(PLANE)).shape) <= 327
    assert pixels(scatter(PLANE[:1])).shape == (320, 320, 4)
    assert png(np.zeros((1, 1, 4), dtype=np.uint8)).startswith(b"\x89PNG")


async def test_a_job_runs_in_a_process_of_its_own_that_prints_no_warnings(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shares: list[float] = []
    done = await run_job(
        tmp_path, job(nx=200, ny=150, dx=0.4, dy=0.4, formats=("npy",)), PLANE, progress=shares.append
    )
    assert (done.outcome.nx, done.files) == (200, {"npy": "grid.npy", "png": "grid.png"})
    assert np.load(tmp_path / "grid.npy").shape == (150, 200)
    assert shares == [0.6667, 1.0]
    assert capfd.readouterr().err == ""
    with pytest.raises(UsageError, match="kriging is not built here"):
        await run_job(tmp_path, job(method="kriging"), PLANE)
    with pytest.raises(UsageError, match="took longer than 0 seconds"):
        await run_job(tmp_path, job(), PLANE, seconds=0)


async def test_a_process_that_is_ended_by_the_machine_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "points.npy", PLANE)
    (tmp_path / "job.json").write_bytes(msgspec.json.encode(job(formats=("csv",))))
    assert main(tmp_path) == 0
    (tmp_path / "job.json").write_bytes(msgspec.json.encode(job(method="kriging")))
    assert main(tmp_path) == 3
    assert capsys.readouterr().out.splitlines()[-1].startswith("gridding by kriging is not built here")
    for script, told in (
        ("exit 1", "gridding broke off with code 1; what it printed on stderr says why"),
        ("kill -9 $$", r"gridding was ended by the machine \(signal 9\); use larger cells"),
    ):
        program = tmp_path / "python"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(program))
        with pytest.raises(UsageError, match=told):
            await run_job(tmp_path, job(), PLANE)


async def test_a_job_that_is_cancelled_ends_its_process(tmp_path: Path) -> None:
    began = asyncio.Event()
    large = job(nx=2000, ny=2000, dx=0.05, dy=0.05)
    task = asyncio.create_task(run_job(tmp_path, large, PLANE, progress=lambda _: began.set()))
    async with asyncio.timeout(60):
        first = asyncio.create_task(began.wait())
        await asyncio.wait({task, first}, return_when=asyncio.FIRST_COMPLETED)
        first.cancel()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not (tmp_path / "result.json").exists()
