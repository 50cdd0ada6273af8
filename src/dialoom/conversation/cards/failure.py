"""Something went wrong, said where it happened."""

from collections.abc import Mapping
from typing import ClassVar

from dialoom.conversation.cards.actions import CardInput
from dialoom.conversation.cards.card import Card, Language


class ErrorCard(Card):
    """An error of a run as people see it: a stable code, one line, and what to do next."""

    type: ClassVar[str] = "Error"
    names: ClassVar[Mapping[Language, str]] = {"en": "error", "zh": "错误"}

    code: str = "error"
    message: str = ""
    hint: str = ""
    retryable: bool = False
    run_id: str | None = None

    def details(self) -> str:
        return ": ".join(part for part in (self.code, self.message) if part)


class RetryRun(CardInput):
    """Try again what failed."""

    name = "retry"
    needs_work = True
