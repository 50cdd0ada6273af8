"""Points become a grid: node by node, a part at a time, with what leaving points out says of the error."""

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from dialoom.apps.geo.methods import Estimator, Search, estimator, inside_hull, tree_of
from dialoom.apps.geo.points import Floats, mean_spacing
from dialoom.base.errors import UsageError

MAX_NODES: Final = 4_000_000
MAX_COLUMNS: Final = 500
"""A suggested grid has at most so many nodes in a row."""
PART: Final = 20_000
CHECKED: Final = 2_000
"""So many points, at most, are left out in turn to tell the error."""
_FAR = 3.0
Format: TypeAlias = Literal["asc", "grd", "csv", "npy", "png"]


class GridJob(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be computed: from (`x_min`, `y_min`) on, `nx` by `ny` nodes, `dx` and `dy` apart."""

    x_min: float
    y_min: float
    dx: float
    dy: float
    nx: int
    ny: int
    method: str = "idw"
    params: dict[str, float | int | str | bool | None] = {}
    search: Search = Search()
    mask: Literal["none", "convex_hull", "distance"] = "none"
    log10: bool = False
    clamp: bool = False
    folds: int = 0
    formats: tuple[Format, ...] = ()

    def __post_init__(self) -> None:
        if not (self.nx >= 2 and self.ny >= 2 and self.nx * self.ny <= MAX_NODES):
            raise UsageError(
                f"a grid of {self.nx} x {self.ny} nodes is not computed; have 2 or more each way, "
                f"and at most {MAX_NODES} in all"
            )
        if not (0 < self.dx < np.inf and 0 < self.dy < np.inf):
            raise UsageError("a cell has a size above 0; give one")
        if "asc" in self.formats and abs(self.dx - self.dy) > 1e-9 * self.dx:
            raise UsageError("an asc file has square cells; make dx and dy equal, or choose grd")


class GridOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it; errors are those of points left out in turn, None when none were."""

    nx: int
    ny: int
    z_min: float | None
    z_max: float | None
    null_count: int
    rmse: float | None
    mae: float | None


def suggested_cell(points: Floats) -> float:
    """Return half the mean spacing, larger when a row would have more than 500 nodes; two digits of it."""
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    size = float(max(high - low))
    cell = max(mean_spacing(points) / 2, size / (MAX_COLUMNS - 1))
    if cell <= 0:
        raise UsageError("all points are in one place; there is no map to make")
    digits = 10.0 ** (np.floor(np.log10(cell)) - 1)
    return float(f"{np.ceil(cell / digits) * digits:.6g}")


def compute(
    job: GridJob, points: Floats, *, progress: Callable[[float], None] = lambda _: None
) -> tuple[Floats, GridOutcome]:
    """Return the grid, its first row the southern one, and what came of it; `progress` goes from 0 to 1."""
    if job.log10:
        points = _logarithms(points)
    estimate = estimator(job.method, job.params, job.search, points)
    allowed = _allowed(job, points)
    across = np.arange(job.nx, dtype=np.float64) * job.dx + job.x_min
    upward = np.arange(job.ny, dtype=np.float64) * job.dy + job.y_min
    grid = np.empty(job.nx * job.ny)
    for start in range(0, len(grid), PART):
        at = np.arange(start, min(start + PART, len(grid)))
        nodes: Floats = np.column_stack([across[at % job.nx], upward[at // job.nx]]).astype(np.float64)
        grid[at] = np.where(allowed(nodes), estimate(nodes), np.nan)
        progress((start + len(at)) / len(grid))
    if job.clamp:
        grid = np.clip(grid, points[:, 2].min(), points[:, 2].max())
    rmse, mae = _errors(job, points)
    grid = (10.0**grid if job.log10 else grid).reshape(job.ny, job.nx)
    known = grid[np.isfinite(grid)]
    return grid, GridOutcome(
        nx=job.nx,
        ny=job.ny,
        z_min=float(known.min()) if len(known) else None,
        z_max=float(known.max()) if len(known) else None,
        null_count=int(grid.size - len(known)),
        rmse=rmse,
        mae=mae,
    )


def _logarithms(points: Floats) -> Floats:
    if (points[:, 2] <= 0).any():
        raise UsageError("a logarithm needs values above 0; leave zTransform at none")
    return np.column_stack([points[:, :2], np.log10(points[:, 2])])


def _allowed(job: GridJob, points: Floats) -> Callable[[Floats], npt.NDArray[np.bool_]]:
    if job.mask == "convex_hull":
        return inside_hull(points)
    if job.mask == "none":
        return lambda nodes: np.ones(len(nodes), dtype=bool)
    tree, far = tree_of(points), job.search.radius or _FAR * mean_spacing(points)
    return lambda nodes: np.isfinite(tree.query(nodes, [1], distance_upper_bound=far)[0][:, 0])


def _errors(job: GridJob, points: Floats) -> tuple[float | None, float | None]:
    """Leave each of some points out with its fold, estimate it from the others, and compare."""
    if job.folds < 2 or len(points) < max(2 * job.folds, 8):
        return None, None
    order = np.random.default_rng(7).permutation(len(points))  # the same points give the same figures
    asked = order[:CHECKED]
    apart: list[Floats] = []
    for fold in range(job.folds):
        out = asked[fold :: job.folds]
        rest = np.delete(points, out, axis=0)
        estimate: Estimator = estimator(job.method, job.params, job.search, rest)
        apart.append(_linear_z(job, estimate(points[out, :2])) - _linear_z(job, points[out, 2]))
    all_apart = np.concatenate(apart)
    known = all_apart[np.isfinite(all_apart)]
    if len(known) == 0:
        return None, None
    return float(np.sqrt((known**2).mean())), float(np.abs(known).mean())


def _linear_z(job: GridJob, z: Floats) -> Floats:
    return 10.0**z if job.log10 else z
