"""One question of a form: what kind of answer it takes, and within which bounds."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Literal, Self, TypeAlias, cast

from pydantic import Field, model_validator

from dialoom.base.errors import UsageError
from dialoom.conversation.cards.card import CardPart, Cell
from dialoom.conversation.cards.pattern import check_pattern

FieldType: TypeAlias = Literal[
    "text",
    "textarea",
    "number",
    "integer",
    "bool",
    "select",
    "multiselect",
    "date",
    "file",
    "secret",
]
FieldValue: TypeAlias = str | int | float | bool | tuple[str, ...] | None
Bound: TypeAlias = int | float | str | None

COUNTED = frozenset(("text", "textarea", "secret", "multiselect"))
"""Field types whose `min` and `max` count characters or choices."""


class Option(CardPart):
    """One choice: the value an answer holds, and the words people see for it."""

    value: str
    label: str = ""


class FormField(CardPart):
    """One question.

    `min` and `max` bound a number or a date, the characters of a text, the choices of a multiselect; both
    are allowed answers. `pattern` must be found in the text. `visible_if` maps other fields to the answers
    that make this one visible: all must hold. A file's answer is the id of an upload. What a `secret` field
    is answered is never kept: its value and default are dropped here.
    """

    id: str = Field(min_length=1, max_length=100)
    label: str = ""
    type: FieldType = "text"
    current_value: FieldValue = None
    default: FieldValue = None
    options: tuple[str | Option, ...] = ()
    required: bool = False
    min: Bound = None
    max: Bound = None
    pattern: str | None = None
    help: str = ""
    visible_if: dict[str, Cell | tuple[Cell, ...]] = Field(default_factory=dict)

    @property
    def choices(self) -> tuple[str, ...]:
        """The values an answer may hold."""
        return tuple(each if isinstance(each, str) else each.value for each in self.options)

    def is_visible(self, values: Mapping[str, object]) -> bool:
        """Tell whether the other answers in `values` make this field one to answer."""
        return all(
            any(same_value(values.get(other), each) for each in wanted)
            for other, wanted in self.conditions.items()
        )

    @property
    def conditions(self) -> dict[str, tuple[Cell, ...]]:
        """Other fields' ids, each with the answers of which one is needed."""
        return {
            other: wanted if isinstance(wanted, tuple) else (wanted,)
            for other, wanted in self.visible_if.items()
        }

    @model_validator(mode="before")
    @classmethod
    def _forget_secret(cls, fields: object) -> object:
        if not isinstance(fields, dict):
            return fields
        named = cast("dict[str, object]", fields)
        if named.get("type") != "secret":
            return named
        return {key: value for key, value in named.items() if key not in ANSWERS}

    @model_validator(mode="after")
    def _hold_together(self) -> Self:
        for name, bound in (("min", self.min), ("max", self.max)):
            if bound is not None and not _bounds(self.type, bound):
                raise UsageError(f"field {self.id!r}: {name} {bound!r} does not bound a {self.type}")
        if self.pattern is not None:
            check_pattern(self.pattern)
        if self.type in {"select", "multiselect"} and not self.options:
            raise UsageError(f"field {self.id!r} is a {self.type} without options; give at least one")
        return self


_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
ANSWERS = frozenset(("current_value", "currentValue", "default"))
"""Where a field holds what it is answered."""


def same_value(left: object, right: object) -> bool:
    """Tell whether two JSON values are equal: true is not 1, and 1 is 1.0."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def is_date(value: object) -> bool:
    """Tell whether `value` is a day of the calendar, written `2026-11-30`."""
    if not isinstance(value, str) or _DAY.fullmatch(value) is None:
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _bounds(kind: FieldType, bound: str | float) -> bool:
    if kind == "date":
        return is_date(bound)
    if kind in COUNTED:
        return isinstance(bound, int) and not isinstance(bound, bool) and bound >= 0
    return kind in {"number", "integer"} and isinstance(bound, int | float) and not isinstance(bound, bool)
