"""How a value is found between points: one estimator per method, over SciPy."""

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Final, Protocol, TypeAlias, cast

import msgspec
import numpy as np
import numpy.typing as npt

from dialoom.apps.geo.points import Floats
from dialoom.base.errors import MissingExtraError, UsageError

Estimator: TypeAlias = Callable[[Floats], Floats]
"""Gives a value for each node, one row of x and y; NaN where there is none."""
Params: TypeAlias = Mapping[str, float | int | str | bool | None]


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """A node looks at the nearest `max_points` within `radius`; fewer than `min_points` give no value."""

    radius: float | None = None
    min_points: int = 1
    max_points: int = 12


class Tree(Protocol):
    """Finds the nearest points; for a place without one the distance is infinite."""

    def query(
        self, x: Floats, k: list[int], *, distance_upper_bound: float
    ) -> tuple[Floats, npt.NDArray[np.int64]]: ...


def estimator(method: str, params: Params, search: Search, points: Floats) -> Estimator:
    """Return what estimates by `method`. Raises `UsageError` for one that is not built here."""
    build = METHODS.get(method)
    if build is None:
        known = ", ".join(METHODS)
        raise UsageError(f"gridding by {method} is not built here; choose one of {known}")
    return build(params, search, points)


def tree_of(points: Floats) -> Tree:
    return cast("Tree", _scipy("scipy.spatial").cKDTree(points[:, :2]))


def inside_hull(points: Floats) -> Callable[[Floats], npt.NDArray[np.bool_]]:
    """Return what tells which nodes lie between the points."""
    mesh = _triangulated(points, "a mask by hull")
    return lambda nodes: cast("npt.NDArray[np.int64]", mesh.find_simplex(nodes)) >= 0


def _nearest(_params: Params, search: Search, points: Floats) -> Estimator:
    return _by_neighbours(points, msgspec.structs.replace(search, max_points=1, min_points=1), _first)


def _moving_average(_params: Params, search: Search, points: Floats) -> Estimator:
    return _by_neighbours(points, search, lambda _distance, z, there: _mean(z, there.astype(np.float64)))


def _idw(params: Params, search: Search, points: Floats) -> Estimator:
    power, smoothing = _positive(params, "power", 2.0), _positive(params, "smoothing", 0.0)

    def weigh(distance: Floats, z: Floats, there: npt.NDArray[np.bool_]) -> Floats:
        away = np.where(there, np.hypot(distance, smoothing), 1.0)
        nearest = np.maximum(away.min(axis=1, keepdims=True), 1e-300)
        weights = np.where(there, (nearest / np.maximum(away, 1e-300)) ** power, 0.0)
        return _mean(z, weights)

    return _by_neighbours(points, search, weigh)


def _by_mesh(name: str, _params: Params, _search: Search, points: Floats) -> Estimator:
    """Estimate within triangles, by the interpolator of SciPy that is called `name`."""
    mesh = _triangulated(points, "gridding by triangles")
    return cast("Estimator", getattr(_scipy("scipy.interpolate"), name)(mesh, points[:, 2]))


def _rbf(params: Params, search: Search, points: Floats) -> Estimator:
    kernel = str(params.get("kernel") or "thin_plate_spline")
    smoothing = _positive(params, "smoothing", 0.0)
    neighbours = min(max(search.max_points, 8), 50, len(points))
    try:
        return cast(
            "Estimator",
            _scipy("scipy.interpolate").RBFInterpolator(
                points[:, :2], points[:, 2], neighbors=neighbours, kernel=kernel, smoothing=smoothing
            ),
        )
    except ValueError as error:
        raise UsageError(f"rbf gridding: {error}; choose other parameters") from error


METHODS: Final[Mapping[str, Callable[[Params, Search, Floats], Estimator]]] = {
    "nearest": _nearest,
    "idw": _idw,
    "moving_average": _moving_average,
    "linear": partial(_by_mesh, "LinearNDInterpolator"),
    "cubic": partial(_by_mesh, "CloughTocher2DInterpolator"),
    "rbf": _rbf,
}


def _by_neighbours(
    points: Floats, search: Search, combine: Callable[[Floats, Floats, npt.NDArray[np.bool_]], Floats]
) -> Estimator:
    """Estimate from distances and values of the nearest points, and which of them are there."""
    tree, wanted = tree_of(points), list(range(1, min(search.max_points, len(points)) + 1))
    bound = np.inf if search.radius is None else float(search.radius)

    def estimate(nodes: Floats) -> Floats:
        distance, which = tree.query(nodes, wanted, distance_upper_bound=bound)
        there = np.isfinite(distance)
        z = points[np.where(there, which, 0), 2]
        enough = there.sum(axis=1) >= search.min_points
        return np.where(enough, combine(distance, z, there), np.nan)

    return estimate


def _first(_distance: Floats, z: Floats, _there: npt.NDArray[np.bool_]) -> Floats:
    return z[:, 0]


def _mean(z: Floats, weights: Floats) -> Floats:
    total = weights.sum(axis=1)
    return np.divide((z * weights).sum(axis=1), total, out=np.full(len(z), np.nan), where=total > 0)


def _positive(params: Params, name: str, default: float) -> float:
    value = params.get(name)
    if value is None:
        return default
    if isinstance(value, str | bool) or not 0 <= value < 1e6:
        raise UsageError(f"{name} is a number from 0 on; give one")
    return float(value)


def _triangulated(points: Floats, what: str) -> "Mesh":
    """Return the triangles between points. Raises `UsageError` when there are none: all lie on a line."""
    spatial = _scipy("scipy.spatial")
    try:
        return cast("Mesh", spatial.Delaunay(points[:, :2]))
    except (spatial.QhullError, ValueError) as error:
        raise UsageError(
            f"{what} needs three points that are not on a line; choose nearest or idw"
        ) from error


class Mesh(Protocol):
    """Triangles between points."""

    def find_simplex(self, nodes: Floats) -> object: ...


def _scipy(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError("scipy", "geo") from error
