"""A question with two answers: may this be done or not."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from dialoom.base.errors import UsageError
from dialoom.conversation.cards.actions import CardInput
from dialoom.conversation.cards.card import Card, Language


class Approval(Card):
    """What is to be done, with which arguments, and what a person decided; decided once."""

    type: ClassVar[str] = "Approval"
    names: ClassVar[Mapping[Language, str]] = {"en": "approval", "zh": "审批"}

    question: str = ""
    tool_name: str | None = None
    tool_call_id: str | None = None
    arguments: dict[str, object] = Field(default_factory=dict)
    expires_at: str | None = None
    comment: str = ""
    edited_arguments: dict[str, object] | None = None

    def details(self) -> str:
        return ", ".join(part for part in (self.tool_name, self.question, self.comment) if part)

    def decide(
        self, *, approved: bool, comment: str = "", edited_arguments: dict[str, object] | None = None
    ) -> "Approval":
        """Return the decided card. Raises `UsageError` when it was decided before."""
        if self.is_done:
            raise UsageError(f"this approval is {self.status}; it cannot be decided again")
        return self.changed(
            status="approved" if approved else "declined",
            comment=comment,
            edited_arguments=edited_arguments,
        )


class Decide(CardInput):
    """Yes or no, with a reason, and with other arguments where a yes needs them."""

    name = "decide"

    approved: bool
    comment: str = Field(default="", max_length=2000)
    edited_arguments: dict[str, object] | None = None

    def apply(self, card: Card) -> Card:
        assert isinstance(card, Approval)
        return card.decide(
            approved=self.approved, comment=self.comment, edited_arguments=self.edited_arguments
        )
