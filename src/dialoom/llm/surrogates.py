"""Characters that a server escaped in two halves and sent in two deltas."""

from dialoom.base.text import replace_surrogates


class SurrogateJoiner:
    """Holds back a first half at the end of a delta until its second half comes."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        """Return what is whole now; a half that never finds its other one becomes U+FFFD."""
        if not self._half and text.isascii():
            return text
        text = self._half + text
        self._half = text[-1:] if _is_first_half(text[-1:]) else ""
        return replace_surrogates(text[: len(text) - len(self._half)])

    def finish(self) -> str:
        half, self._half = self._half, ""
        return replace_surrogates(half)


def _is_first_half(char: str) -> bool:
    return "\ud800" <= char <= "\udbff"
