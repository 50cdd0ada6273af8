"""What people do with a card: one checked input per action, which makes the card's next state."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from dialoom.conversation.cards.card import Card


class CardInput(BaseModel):
    """The input of one action; unknown fields are refused.

    `apply` is pure. An action that also needs work outside (a run to cancel, a query to make) says so with
    `needs_work`: whoever hosts the card does the work and appends the card's next state, or refuses.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )

    name: ClassVar[str]
    """What the action is called, in `POST .../cards/{id}/actions/{name}`."""
    needs_work: ClassVar[bool] = False
    """Whether `apply` alone does not do what the action says."""

    def apply(self, card: Card) -> Card:
        """Return the card after this action. Raises `UsageError` when the card cannot take it."""
        return card
