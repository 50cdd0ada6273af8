"""The placeholder for a card that cannot be shown, with what it came as."""

import msgspec

from dialoom.conversation.cards.card import Language, bracketed


class UnknownCard(msgspec.Struct, frozen=True, kw_only=True):
    """A card whose type, version or payload is not understood here; `payload` is kept as it came.

    `reason` is one line for people. `id` is the card's own where that could be read.
    """

    type: str
    payload: str
    reason: str
    id: str | None = None

    @property
    def locked(self) -> bool:
        return True

    @property
    def language(self) -> Language:
        return "en"

    def note(self, lang: Language) -> str:
        if lang == "zh":
            return bracketed(f"无法显示的卡片：{self.type}")
        return bracketed(f"a card of type {self.type} that cannot be shown")
