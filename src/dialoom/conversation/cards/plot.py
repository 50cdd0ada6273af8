"""A picture of data, by the id of the file that holds it."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from dialoom.conversation.cards.card import Card, Language


class Plot(Card):
    """An image people look at, and the words for those who cannot."""

    type: ClassVar[str] = "Plot"
    names: ClassVar[Mapping[Language, str]] = {"en": "plot", "zh": "图"}

    image_id: str | None = None
    caption: str = ""
    alt_text: str = ""
    width: int | None = Field(default=None, ge=1)
    height: int | None = Field(default=None, ge=1)
    dataset_id: str | None = None
    grid_id: str | None = None

    def details(self) -> str:
        return self.caption or self.alt_text
