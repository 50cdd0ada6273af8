"""A table as a preview: some rows in the card, all of them in a data set."""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from dialoom.conversation.cards.card import Card, CardPart, Cell, Language, listed

MAX_CELL = 2000


class TableColumn(CardPart):
    """How a column is read and shown."""

    name: str
    dtype: str = ""
    format: str = ""


class Table(Card):
    """Column names and rows. `total_row_count` counts all rows, also those only `dataset_id` has."""

    type: ClassVar[str] = "Table"
    names: ClassVar[Mapping[Language, str]] = {"en": "table", "zh": "表格"}

    column_names: tuple[str, ...] = ()
    columns: tuple[TableColumn, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    total_row_count: int | None = Field(default=None, ge=0)
    max_preview_rows: int | None = Field(default=None, ge=0)
    dataset_id: str | None = None
    sort: str | None = None
    filter: str | None = None

    @classmethod
    def preview(
        cls, column_names: Sequence[str], rows: Iterable[Sequence[Cell]], *, title: str = "", limit: int = 50
    ) -> "Table":
        """Return a table of the first `limit` rows that says how many there are.

        A text longer than 2,000 characters is cut and ends in an ellipsis.
        """
        shown: list[list[Cell]] = []
        total = 0
        for row in rows:
            total += 1
            if total <= limit:
                shown.append([_cut(cell) for cell in row])
        return cls(
            title=title,
            column_names=tuple(column_names),
            rows=tuple(tuple(row) for row in shown),
            total_row_count=total,
            max_preview_rows=limit,
        )

    def details(self) -> str:
        count = len(self.rows) if self.total_row_count is None else self.total_row_count
        return f"{count} × {listed(self.column_names)}"


def _cut(cell: Cell) -> Cell:
    if isinstance(cell, str) and len(cell) > MAX_CELL:
        return cell[: MAX_CELL - 1] + "…"
    return cell
