"""How points become a grid: method, extent, cells, and what came of it."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from dialoom.base.errors import UsageError
from dialoom.conversation.cards.actions import CardInput
from dialoom.conversation.cards.card import Card, CardPart, Language, pairs

MAX_NODES = 4_000_000
Method: TypeAlias = Literal[
    "nearest", "idw", "linear", "cubic", "minimum_curvature", "rbf", "kriging", "moving_average"
]


class IdwParams(CardPart):
    """Inverse distance weighting."""

    power: float = Field(default=2.0, gt=0)
    smoothing: float = Field(default=0.0, ge=0)


class KrigingParams(CardPart):
    """Ordinary kriging; `auto` fits nugget, sill and range from the points."""

    model: str = "spherical"
    nugget: float | None = Field(default=None, ge=0)
    sill: float | None = Field(default=None, ge=0)
    range: float | None = Field(default=None, gt=0)
    auto: bool = True


class MinimumCurvatureParams(CardPart):
    """A thin plate under tension, relaxed until it changes less than `tol`."""

    tension: float = Field(default=0.25, ge=0, le=1)
    max_iter: int = Field(default=500, ge=1)
    tol: float = Field(default=1e-3, gt=0)


class RbfParams(CardPart):
    """Radial basis functions."""

    kernel: str = "thin_plate_spline"
    smoothing: float = Field(default=0.0, ge=0)


_PARAMS: Mapping[str, type[CardPart]] = {
    "idw": IdwParams,
    "kriging": KrigingParams,
    "minimum_curvature": MinimumCurvatureParams,
    "rbf": RbfParams,
}


class GridExtent(CardPart):
    """The rectangle to fill, and where it came from."""

    x_min: float
    x_max: float
    y_min: float
    y_max: float
    source: Literal["data", "manual", "polygon"] = "data"


class GridCell(CardPart):
    """The size of a cell; `lock` keeps it square."""

    dx: float = Field(gt=0)
    dy: float = Field(gt=0)
    lock: bool = True


class GridAnisotropy(CardPart):
    """How the search is stretched: by `ratio`, along `angle` in degrees."""

    ratio: float = Field(default=1.0, gt=0)
    angle: float = 0.0


class GridSearch(CardPart):
    """Which points a node looks at."""

    radius: float | None = Field(default=None, gt=0)
    min_points: int = Field(default=1, ge=1)
    max_points: int = Field(default=12, ge=1)
    sectors: Literal[1, 4, 8] = 1
    anisotropy: GridAnisotropy | None = None


class GridCrossValidation(CardPart):
    """Leave out a part of the points and compare."""

    folds: int = Field(default=5, ge=2, le=100)


class GridOutput(CardPart):
    """What is written, and how the map looks."""

    formats: tuple[Literal["asc", "grd", "csv", "npy", "png"], ...] = ()
    colormap: str | None = None
    contour_interval: float | None = Field(default=None, gt=0)
    hillshade: bool = False


class GridResult(CardPart):
    """What a run gave."""

    grid_id: str | None = None
    nx: int | None = None
    ny: int | None = None
    z_min: float | None = None
    z_max: float | None = None
    null_count: int | None = None
    rmse: float | None = None
    mae: float | None = None
    elapsed_ms: float | None = None
    image_id: str | None = None
    files: tuple[str, ...] = ()
    file_names: tuple[str, ...] = ()


class GriddingParamCard(Card):
    """Settings of one gridding run, at most 4 million nodes, and its result once it ran."""

    type: ClassVar[str] = "GriddingParamCard"
    names: ClassVar[Mapping[Language, str]] = {"en": "gridding parameters", "zh": "网格化参数"}

    dataset_id: str | None = None
    method: Method = "idw"
    method_params: CardPart | None = None
    extent: GridExtent | None = None
    cell: GridCell | None = None
    nx: int | None = Field(default=None, ge=1)
    ny: int | None = Field(default=None, ge=1)
    search: GridSearch | None = None
    mask: Literal["none", "convex_hull", "distance", "polygon"] = "none"
    z_transform: Literal["none", "log10"] = "none"
    clamp_to_data: bool = False
    cross_validation: GridCrossValidation | None = None
    output: GridOutput | None = None
    result: GridResult | None = None

    @property
    def params(self) -> CardPart:
        """The parameters of the chosen method, as its own model where it has one."""
        model = _PARAMS.get(self.method, CardPart)
        return model.model_validate(self.method_params.stored() if self.method_params else {})

    def details(self) -> str:
        facts: list[tuple[str, object]] = [("method", self.method)]
        if self.cell is not None:
            facts += [("cell", f"{self.cell.dx}×{self.cell.dy}")]
        if self.nx is not None and self.ny is not None:
            facts += [("nodes", f"{self.nx}×{self.ny}")]
        if self.result is not None and self.result.rmse is not None:
            facts += [("rmse", self.result.rmse)]
        return pairs(facts)

    @model_validator(mode="after")
    def _hold_together(self) -> Self:
        if (self.nx or 1) * (self.ny or 1) > MAX_NODES:
            raise UsageError(f"a grid of {self.nx} x {self.ny} nodes is over {MAX_NODES}; use larger cells")
        assert self.params is not None  # reading them checks them
        return self


class RunGridding(CardInput):
    """Compute the grid with these settings; what is left out stays."""

    name = "run"
    needs_work = True

    method: Method | None = None
    method_params: dict[str, float | int | str | bool | None] | None = None
    cell: GridCell | None = None
    extent: GridExtent | None = None

    def apply(self, card: Card) -> Card:
        return card.changed(**self.model_dump(by_alias=True, exclude_unset=True))


class CancelGridding(CardInput):
    """Stop computing."""

    name = "cancel"
    needs_work = True
