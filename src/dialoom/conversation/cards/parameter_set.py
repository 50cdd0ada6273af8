"""A set of parameters people adjust inside the conversation."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.conversation.cards.actions import CardInput
from dialoom.conversation.cards.card import Card, CardPart, Language, pairs


class Parameter(CardPart):
    """One parameter. Its value is the text people see and edit; `min` and `max` bound it as a number."""

    name: str
    value_text: str = ""
    description: str = ""
    field_type: str = "text"
    options: tuple[str, ...] = ()
    unit: str = ""
    min: float | None = None
    max: float | None = None
    default: str | None = None

    def with_value(self, text: str) -> "Parameter":
        """Return this parameter with another value. Raises `UsageError` when it does not take it."""
        if self.options and text not in self.options:
            raise UsageError(f"parameter {self.name!r} takes one of: {', '.join(self.options[:10])}")
        if self.min is not None or self.max is not None:
            self._check_bounds(text)
        return self.changed(value_text=text)

    def _check_bounds(self, text: str) -> None:
        try:
            number = float(text)
        except ValueError as error:
            raise UsageError(f"parameter {self.name!r} is a number, not {one_line(text, 40)!r}") from error
        low = float("-inf") if self.min is None else self.min
        high = float("inf") if self.max is None else self.max
        if not low <= number <= high:
            raise UsageError(f"parameter {self.name!r} lies between {low} and {high}")


class ParameterSet(Card):
    """Parameters with their values. `dirty` says that some are changed and not yet applied.

    A set that was applied can be adjusted and applied again.
    """

    type: ClassVar[str] = "ParameterSet"
    names: ClassVar[Mapping[Language, str]] = {"en": "parameter set", "zh": "参数集"}

    items: tuple[Parameter, ...] = ()
    dirty: bool = False
    preset_id: str | None = None

    @property
    def is_closed(self) -> bool:
        return super().is_closed and self.status != "applied"

    def details(self) -> str:
        return pairs((item.name, f"{item.value_text}{item.unit}") for item in self.items)

    def with_values(self, values: Mapping[str, str]) -> "ParameterSet":
        """Return the set with `values` by name applied. Raises `UsageError` for one it does not take."""
        strangers = values.keys() - {item.name for item in self.items}
        if strangers:
            raise UsageError(f"there is no parameter {one_line(min(strangers), 40)!r} in this set")
        items = [item.with_value(values[item.name]) if item.name in values else item for item in self.items]
        return self.changed(items=items, status="applied", dirty=False)

    def reset(self) -> "ParameterSet":
        """Return the set with every parameter that has a default back at it."""
        items = [
            item if item.default is None else item.changed(value_text=item.default) for item in self.items
        ]
        return self.changed(items=items, status=None, dirty=False)


class ApplyParameters(CardInput):
    """New values by parameter name; parameters left out keep theirs."""

    name = "apply"

    values: dict[str, str] = Field(default_factory=dict)

    def apply(self, card: Card) -> Card:
        assert isinstance(card, ParameterSet)
        return card.with_values(self.values)


class ResetParameters(CardInput):
    """Back to the defaults."""

    name = "reset"

    def apply(self, card: Card) -> Card:
        assert isinstance(card, ParameterSet)
        return card.reset()
