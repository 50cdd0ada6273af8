"""Files of points in the workbench: what is done on `XyzLoadCard` and `ColumnMatch`, and what comes after."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, cast

from dialoom.apps.geo import (
    SURE,
    SYNONYMS,
    AxisMatch,
    Chosen,
    Hints,
    Loaded,
    PointFile,
    load,
    match_axes,
    read_points,
    scatter,
    suggested_cell,
    warnings_of,
)
from dialoom.base.errors import UsageError
from dialoom.base.ids import new_id
from dialoom.base.text import one_line
from dialoom.cli.serve_grid import GRID_HANDLERS, keep_file
from dialoom.conversation.cards import (
    Card,
    ColumnMapping,
    ColumnMatch,
    GriddingParamCard,
    PreviewColumn,
    RequiredColumn,
    Table,
    XyzLoadCard,
)
from dialoom.conversation.cards.gridding import (
    GridCell,
    GridCrossValidation,
    GridExtent,
    GridOutput,
    GridSearch,
)
from dialoom.conversation.cards.xyz_load import ConfigureLoad, XyzColumn, XyzMapping, XyzStats
from dialoom.server.card_work import CardHandlers, CardWork
from dialoom.server.dataset_store import DatasetColumn
from dialoom.server.files import StoredFile


async def configure(work: CardWork) -> Card:
    """Read the file as it is set up now, and ask for columns that no name tells."""
    card, given = cast("XyzLoadCard", work.card), cast("ConfigureLoad", work.given)
    if given.file_id is not None:
        card = XyzLoadCard(id=card.id, title=card.title, lang=card.lang, file_id=given.file_id)
    info, file = await _read(work, card)
    chosen = {
        axis: name for axis, name in (card.mapping or XyzMapping()).stored().items() if name is not None
    }
    guessed = {each.axis: each for each in match_axes(file) if each.axis not in chosen}
    mapping = {**{axis: each.column for axis, each in guessed.items()}, **chosen}
    unsure = [each for each in guessed.values() if each.confidence < SURE]
    if unsure and given.file_id is not None:
        await work.show(_question(work.card_id, file, list(guessed.values())))
    return _configured(card, info, file, mapping)


async def confirm(work: CardWork) -> Card:
    """Take the columns a person chose over to the file's card; other matches are left as they are."""
    card = cast("ColumnMatch", work.card)
    target = (card.id or "").removesuffix(".columns")
    if target != card.id:
        mapping = {each.required_column: each.matched_column for each in card.mappings}
        work.desk.start(_take_over(work, target, mapping), f"columns {new_id()}")
    return card


async def load_points(work: CardWork) -> Card:
    """Load the points, keep them as a data set, and show them with the settings of a first grid."""
    card = cast("XyzLoadCard", work.card)
    info, file = await _read(work, card)
    loaded = await asyncio.to_thread(load, file, _chosen(card))
    draft = _draft(loaded, info.name)
    rows = [(float(x), float(y), float(z)) for x, y, z in loaded.points]
    columns = [DatasetColumn(name, "number") for name in "xyz"]
    dataset = await asyncio.to_thread(work.desk.keep.datasets.create, info.name, columns, rows)
    picture = await asyncio.to_thread(scatter, loaded.points)
    thumbnail = await keep_file(work, picture, f"{info.name}.png", "image/png")
    table = Table.preview("xyz", rows, title=info.name, limit=50)
    await work.show(table.changed(id=new_id(), dataset_id=dataset.id))
    await work.show(draft.changed(dataset_id=dataset.id))
    return card.changed(
        status="loaded",
        error=None,
        dataset_id=dataset.id,
        thumbnail_id=thumbnail.id,
        warnings=loaded.warnings,
        stats=_stats(loaded).stored(),
    )


GEO_HANDLERS: Final[CardHandlers] = {
    ("XyzLoadCard", "configure"): configure,
    ("XyzLoadCard", "load"): load_points,
    ("ColumnMatch", "confirm"): confirm,
    **GRID_HANDLERS,
}
"""The handlers of cards of points and grids."""


async def _read(work: CardWork, card: XyzLoadCard) -> tuple[StoredFile, PointFile]:
    if card.file_id is None:
        raise UsageError("this card has no file yet; upload one")
    files, file_id = work.desk.keep.files, card.file_id
    if card.format == "xlsx":
        raise UsageError("xlsx is not read here; save the sheet as CSV")
    hints = Hints(
        encoding=card.encoding,
        delimiter=card.delimiter,
        skip_rows=card.skip_rows,
        null_values=card.null_values,
    )

    def read() -> tuple[StoredFile, PointFile]:
        info = files.find(file_id)
        return info, read_points(files.path(file_id).read_bytes(), info.name, hints)

    return await asyncio.to_thread(read)


def _configured(
    card: XyzLoadCard, info: StoredFile, file: PointFile, mapping: dict[str, object]
) -> XyzLoadCard:
    columns = [
        XyzColumn(
            index=each.index, name=each.name, dtype=each.dtype, samples=each.samples,
            min=each.low, max=each.high, nulls=each.nulls,
        ).stored()
        for each in file.columns
    ]  # fmt: skip
    return card.changed(
        title=card.title or info.name,
        file_name=info.name,
        size_bytes=info.size,
        error=None,
        encoding=file.encoding,
        decimal=file.decimal,
        delimiter=file.delimiter,
        comment_prefix=file.comment_prefix,
        header_row=file.header_row,
        columns=columns,
        mapping=mapping,
        warnings=_warnings(file, mapping),
        preview_rows=[[one_line(cell, 200) for cell in row] for row in file.rows[:20]],
    )


def _warnings(file: PointFile, mapping: Mapping[str, object]) -> list[str]:
    """Return what looks wrong about the columns chosen. Raises `UsageError` for one that is not there."""
    chosen = {axis: file.column(cast("str | int", name)) for axis, name in mapping.items()}
    return warnings_of(chosen["x"], chosen["y"]) if {"x", "y"} <= chosen.keys() else []


def _question(card_id: str, file: PointFile, guessed: Sequence[AxisMatch]) -> ColumnMatch:
    return ColumnMatch(
        id=f"{card_id}.columns",
        title="Which column is which?",
        required_columns=tuple(
            RequiredColumn(name=axis, dtype="number", synonyms=names) for axis, names in SYNONYMS.items()
        ),
        preview_columns=tuple(
            PreviewColumn(name=each.name, dtype=each.dtype, samples=each.samples) for each in file.columns
        ),
        mappings=tuple(
            ColumnMapping(
                required_column=each.axis, matched_column=each.column, confidence=each.confidence, by="auto"
            )
            for each in guessed
        ),
    )


async def _take_over(work: CardWork, target: str, mapping: dict[str, str | None]) -> None:
    def change(card: Card) -> Card:
        return card.changed(mapping=mapping) if isinstance(card, XyzLoadCard) and not card.is_closed else card

    await work.desk.change(work.conversation_id, target, change)


def _chosen(card: XyzLoadCard) -> Chosen:
    mapping = card.mapping or XyzMapping()
    if mapping.x is None or mapping.y is None or mapping.z is None:
        raise UsageError("choose the columns of x, y and z first")
    kept, doubles = card.filter, card.duplicates
    return Chosen(
        x=mapping.x,
        y=mapping.y,
        z=mapping.z,
        z_factor=card.z_factor,
        bbox=kept.bbox if kept else None,
        z_min=kept.z_min if kept else None,
        z_max=kept.z_max if kept else None,
        tolerance=doubles.tolerance if doubles else 0.0,
        keep=doubles.keep if doubles else "first",
    )


def _stats(loaded: Loaded) -> XyzStats:
    z = loaded.points[:, 2]
    return XyzStats(
        n=loaded.read,
        used=len(z),
        dropped=loaded.read - len(z),
        extent=loaded.extent,
        mean_spacing=loaded.spacing,
        z_min=float(z.min()),
        z_max=float(z.max()),
        z_mean=float(z.mean()),
        z_std=float(z.std()),
    )


def _draft(loaded: Loaded, name: str) -> GriddingParamCard:
    """Return the settings of a first grid: over the points, with cells of half their spacing."""
    x_min, y_min, x_max, y_max = loaded.extent
    cell = suggested_cell(loaded.points)
    return GriddingParamCard(
        id=new_id(),
        title=one_line(name, 80),
        method="idw",
        extent=GridExtent(x_min=x_min, x_max=x_max, y_min=y_min, y_max=y_max),
        cell=GridCell(dx=cell, dy=cell),
        search=GridSearch(),
        cross_validation=GridCrossValidation(),
        output=GridOutput(formats=("asc", "csv", "npy", "png")),
    )
