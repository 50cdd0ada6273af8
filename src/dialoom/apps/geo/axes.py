"""Which column is x, which y and which z: by the names people give them, in English and in Chinese."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from dialoom.apps.geo.layout import Column, PointFile
from dialoom.apps.geo.names import SYNONYMS

AXES: Final = ("x", "y", "z")
SURE: Final = 0.8
"""A match below this confidence is asked."""
_DEGREES = frozenset({"lon", "long", "longitude", "lng", "lat", "latitude", "经度", "纬度"})
_UNIT = re.compile(r"[(（\[][^)）\]]{0,40}[)）\]]")
_FINE = re.compile(r"[+-]?\d{1,3}\.\d{4,20}")


class AxisMatch(msgspec.Struct, frozen=True):
    """The column of one axis and how sure that is, from 0 to 1."""

    axis: str
    column: str
    confidence: float


def match_axes(file: PointFile) -> list[AxisMatch]:
    """Return the likely column of each axis; what no name tells goes by the order of the numbers."""
    free = [column for column in file.columns if column.dtype == "number"]
    found: dict[str, AxisMatch] = {}
    for confidence, fits in ((0.95, _is_named), (0.85, _is_like)):
        for axis in AXES:
            column = next((each for each in free if fits(each.name, axis)), None)
            if axis not in found and column is not None:
                found[axis] = AxisMatch(axis, column.name, confidence)
                free.remove(column)
    for axis in AXES:
        if axis not in found and free:
            found[axis] = AxisMatch(axis, free.pop(0).name, 0.5)
    return [found[axis] for axis in AXES if axis in found]


def warnings_of(x: Column, y: Column) -> list[str]:
    """Return what looks wrong about a choice of x and y, one line each."""
    told: list[str] = []
    if _look_swapped(x, y):
        told.append("x and y look swapped: exchange the two columns if the map is mirrored")
    if _are_degrees(x, y):
        told.append("x and y look like degrees, not metres: distances and cells are in degrees")
    return told


def plain_name(name: str) -> str:
    """Return a column's name without its unit, in lower case."""
    return _UNIT.sub("", name).strip().lower()


def _is_named(name: str, axis: str) -> bool:
    return plain_name(name) in SYNONYMS[axis]


def _is_like(name: str, axis: str) -> bool:
    plain = plain_name(name)
    words = re.split(r"[\s_.-]+", plain)
    chinese = any(word in plain for word in SYNONYMS[axis] if len(word) > 1 and not word.isascii())
    return chinese or any(word in SYNONYMS[axis] for word in words)


def _look_swapped(x: Column, y: Column) -> bool:
    if _is_named(x.name, "y") and _is_named(y.name, "x"):
        return True
    if x.low is None or x.high is None or y.low is None or y.high is None:
        return False
    geographic = abs(x.high) <= 90 and abs(x.low) <= 90 and 90 < max(abs(y.low), abs(y.high)) <= 180
    projected = x.low >= 1e6 and x.high < 1e7 and y.low >= 1e5 and y.high < 1e6
    return geographic or projected


def _are_degrees(x: Column, y: Column) -> bool:
    if plain_name(x.name) in _DEGREES or plain_name(y.name) in _DEGREES:
        return True
    largest = [max(abs(each.low or 0), abs(each.high or 0)) for each in (x, y)]
    return max(largest) <= 180 and min(largest) <= 90 and _is_fine(x.samples) and _is_fine(y.samples)


def _is_fine(samples: Sequence[str]) -> bool:
    return bool(samples) and all(_FINE.fullmatch(sample) for sample in samples)
