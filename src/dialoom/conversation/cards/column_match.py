"""Which column of a file is which that a job needs."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.conversation.cards.actions import CardInput
from dialoom.conversation.cards.card import Card, CardPart, Cell, Language, pairs


class RequiredColumn(CardPart):
    """A column the job asks for, and the names it goes by."""

    name: str
    label: str = ""
    dtype: str = ""
    required: bool = True
    synonyms: tuple[str, ...] = ()


class PreviewColumn(CardPart):
    """A column the file has, with a few of its values."""

    name: str
    dtype: str = ""
    samples: tuple[Cell, ...] = ()
    null_ratio: float | None = Field(default=None, ge=0, le=1)


class ColumnMapping(CardPart):
    """One pair. `confidence` from 0 to 1 says how sure an automatic match is."""

    required_column: str
    matched_column: str | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)
    by: Literal["auto", "user"] | None = None


class ColumnMatch(Card):
    """Columns asked for, columns there are, and how they pair."""

    type: ClassVar[str] = "ColumnMatch"
    names: ClassVar[Mapping[Language, str]] = {"en": "column match", "zh": "列匹配"}

    required_columns: tuple[RequiredColumn | str, ...] = ()
    preview_columns: tuple[PreviewColumn | str, ...] = ()
    mappings: tuple[ColumnMapping, ...] = ()
    dataset_id: str | None = None

    def details(self) -> str:
        return pairs(
            (each.required_column, each.matched_column) for each in self.mappings if each.matched_column
        )

    def confirm(self, mappings: Mapping[str, str]) -> "ColumnMatch":
        """Return the match as a person decided it, by required column.

        Raises `UsageError` when a needed column has no partner, or a partner is not there or taken twice.
        """
        needed = {_name(each) for each in self.required_columns if isinstance(each, str) or each.required}
        asked = {_name(each) for each in self.required_columns}
        missing, strangers = needed - mappings.keys(), mappings.keys() - asked
        absent = set(mappings.values()) - {_name(each) for each in self.preview_columns}
        if missing:
            raise UsageError(f"column {one_line(min(missing), 40)!r} has no partner; choose one")
        if strangers:
            raise UsageError(f"column {one_line(min(strangers), 40)!r} is not asked for; leave it out")
        if absent:
            raise UsageError(f"the file has no column {one_line(min(absent), 40)!r}; choose another")
        if len(set(mappings.values())) < len(mappings):
            raise UsageError("one column is matched twice; give each its own")
        decided = [
            ColumnMapping(required_column=name, matched_column=partner, by="user")
            for name, partner in mappings.items()
        ]
        return self.changed(mappings=decided, status="confirmed")


class ConfirmMatch(CardInput):
    """The decided pairs: required column to column of the file."""

    name = "confirm"

    mappings: dict[str, str]

    def apply(self, card: Card) -> Card:
        assert isinstance(card, ColumnMatch)
        return card.confirm(self.mappings)


def _name(column: RequiredColumn | PreviewColumn | str) -> str:
    return column if isinstance(column, str) else column.name
