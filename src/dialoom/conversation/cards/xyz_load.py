"""A file of points: how it is laid out, which column is which, and what loading it gave."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from dialoom.conversation.cards.actions import CardInput
from dialoom.conversation.cards.card import Card, CardPart, Cell, Language, pairs

MAX_PREVIEW_ROWS = 50


class XyzColumn(CardPart):
    """One column of the file as it was detected."""

    index: int
    name: str = ""
    dtype: str = ""
    samples: tuple[Cell, ...] = ()
    min: float | None = None
    max: float | None = None
    nulls: int = 0


class XyzMapping(CardPart):
    """Which column holds what, by name or index."""

    x: str | int | None = None
    y: str | int | None = None
    z: str | int | None = None
    weight: str | int | None = None
    id: str | int | None = None


class XyzUnits(CardPart):
    """Units of the plane and of the measured value."""

    xy: str = ""
    z: str = ""


class XyzFilter(CardPart):
    """Points kept: inside `bbox` (xMin, yMin, xMax, yMax) and between `zMin` and `zMax`."""

    bbox: tuple[float, float, float, float] | None = None
    z_min: float | None = None
    z_max: float | None = None


class XyzDuplicates(CardPart):
    """What becomes of points closer than `tolerance`."""

    tolerance: float = 0.0
    keep: Literal["first", "last", "mean", "min", "max"] = "first"


class XyzStats(CardPart):
    """What loading gave. `extent` is xMin, yMin, xMax, yMax."""

    n: int = 0
    used: int = 0
    dropped: int = 0
    extent: tuple[float, float, float, float] | None = None
    mean_spacing: float | None = None
    z_min: float | None = None
    z_max: float | None = None
    z_mean: float | None = None
    z_std: float | None = None


class XyzLoadCard(Card):
    """A point file on its way in."""

    type: ClassVar[str] = "XyzLoadCard"
    names: ClassVar[Mapping[Language, str]] = {"en": "point file", "zh": "XYZ 数据"}

    file_id: str | None = None
    file_name: str = ""
    size_bytes: int | None = None
    format: Literal["auto", "xyz", "csv", "tsv", "xlsx"] = "auto"
    encoding: str = "auto"
    delimiter: str | None = None
    decimal: str = "."
    comment_prefix: str | None = None
    header_row: int | None = None
    skip_rows: int = 0
    columns: tuple[XyzColumn, ...] = ()
    mapping: XyzMapping | None = None
    units: XyzUnits | None = None
    crs: str | None = None
    null_values: tuple[str, ...] = ()
    z_factor: float = 1.0
    filter: XyzFilter | None = None
    duplicates: XyzDuplicates | None = None
    stats: XyzStats | None = None
    preview_rows: tuple[tuple[Cell, ...], ...] = Field(default=(), max_length=MAX_PREVIEW_ROWS)
    thumbnail_id: str | None = None
    warnings: tuple[str, ...] = ()
    dataset_id: str | None = None

    def details(self) -> str:
        facts: list[tuple[str, object]] = [("file", self.file_name)] if self.file_name else []
        if self.mapping is not None:
            facts += [(axis, column) for axis, column in self.mapping.stored().items() if column is not None]
        if self.stats is not None:
            facts += [("points", self.stats.used)]
        return pairs(facts)


class ConfigureLoad(CardInput):
    """Corrections to the detected layout, or another file; what is left out stays."""

    name = "configure"
    needs_work = True

    file_id: str | None = None
    format: Literal["auto", "xyz", "csv", "tsv", "xlsx"] | None = None
    encoding: str | None = None
    delimiter: str | None = None
    header_row: int | None = None
    skip_rows: int | None = Field(default=None, ge=0)
    mapping: XyzMapping | None = None
    crs: str | None = None
    z_factor: float | None = None

    def apply(self, card: Card) -> Card:
        return card.changed(**self.model_dump(by_alias=True, exclude_unset=True))


class LoadPoints(CardInput):
    """Load the file as configured."""

    name = "load"
    needs_work = True
