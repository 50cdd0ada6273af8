"""Points on their way in: what holds nothing is dropped, doubles are settled, and what is left is told."""

from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from dialoom.apps.geo.axes import warnings_of
from dialoom.apps.geo.layout import PointFile
from dialoom.base.errors import UsageError

Floats = npt.NDArray[np.float64]
Keep = Literal["first", "last", "mean", "min", "max"]


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What is loaded of a file: columns by name or index, and which points are left out.

    `bbox` is xMin, yMin, xMax, yMax. Points closer than `tolerance` count as one, 0 for the same place.
    """

    x: str | int
    y: str | int
    z: str | int
    z_factor: float = 1.0
    bbox: tuple[float, float, float, float] | None = None
    z_min: float | None = None
    z_max: float | None = None
    tolerance: float = 0.0
    keep: Keep = "first"


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """Points, one row each of x, y and z; `read` is how many rows the file has."""

    points: Floats
    read: int
    warnings: list[str]

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """The rectangle around the points: xMin, yMin, xMax, yMax."""
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])

    @property
    def spacing(self) -> float:
        """How far points are from each other if they were spread evenly over their extent."""
        return mean_spacing(self.points)


def load(file: PointFile, chosen: Chosen) -> Loaded:
    """Return the points of `file`. Raises `UsageError` when a column is no number or nothing is left."""
    columns = [file.column(name) for name in (chosen.x, chosen.y, chosen.z)]
    for each in columns:
        if each.dtype != "number":
            raise UsageError(f"column {each.name!r} holds text; choose one of numbers")
    points = np.column_stack([np.asarray(each.values, dtype=np.float64) for each in columns])
    read = len(points)
    points = points[np.isfinite(points).all(axis=1)]
    points[:, 2] *= chosen.z_factor
    points = _settle(_inside(points, chosen), chosen)
    if len(points) == 0:
        raise UsageError("no point is left; check the columns, the null values and the filter")
    return Loaded(points=points, read=read, warnings=warnings_of(columns[0], columns[1]))


def mean_spacing(points: Floats) -> float:
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    width, height = float(high[0] - low[0]), float(high[1] - low[1])
    if width > 0 and height > 0:
        return float(np.sqrt(width * height / len(points)))
    return max(width, height) / max(len(points) - 1, 1)


def _inside(points: Floats, chosen: Chosen) -> Floats:
    kept = np.ones(len(points), dtype=bool)
    x, y, z = points.T
    if chosen.bbox is not None:
        x_min, y_min, x_max, y_max = chosen.bbox
        kept &= (x >= x_min) & (x <= x_max) & (y >= y_min) & (y <= y_max)
    if chosen.z_min is not None:
        kept &= z >= chosen.z_min
    if chosen.z_max is not None:
        kept &= z <= chosen.z_max
    return points[kept]


def _settle(points: Floats, chosen: Chosen) -> Floats:
    """Make one point of those in one place: the same coordinates, or the same square of `tolerance`."""
    if len(points) == 0:
        return points
    places = np.floor(points[:, :2] / chosen.tolerance) if chosen.tolerance > 0 else points[:, :2]
    _, first, group = np.unique(places, axis=0, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    count = len(first)
    if count == len(points):
        return points
    if chosen.keep == "first":
        return points[np.sort(first)]
    if chosen.keep == "last":
        last = np.zeros(count, dtype=np.int64)
        last[group] = np.arange(len(points))  # of equal places the later row is written later
        return points[np.sort(last)]
    one = points[first].copy()
    if chosen.keep == "mean":
        one[:, 2] = np.bincount(group, weights=points[:, 2]) / np.bincount(group)
    else:
        pick = np.minimum if chosen.keep == "min" else np.maximum
        pick.at(one[:, 2], group, points[:, 2])
    return one[np.argsort(first)]
