"""Reasoning that a model writes between tags inside its text, told apart while it streams."""

from dialoom.llm.events import ReasoningDelta, TextDelta


class ThinkTagSplitter:
    """Splits text at opening and closing tags, holding back only what may be the beginning of one.

    An answer that ends inside the tags was reasoning to the end. The same text gives the same words and
    the same reasoning however it is cut.
    """

    def __init__(self, tags: tuple[str, str]) -> None:
        self._tags = tags
        self._thinking = False
        self._held = ""

    def feed(self, text: str) -> list[TextDelta | ReasoningDelta]:
        """Return what `text` makes certain."""
        out: list[TextDelta | ReasoningDelta] = []
        if not self._held and self._tags[self._thinking][0] not in text:  # nearly always
            self._say(text, out)
            return out
        rest = self._held + text
        while True:
            tag = self._tags[self._thinking]
            before, found, rest_after = rest.partition(tag)
            if not found:
                break
            self._say(before, out)
            self._thinking = not self._thinking
            rest = rest_after
        certain = len(rest) - _tag_prefix(rest, self._tags[self._thinking])
        self._say(rest[:certain], out)
        self._held = rest[certain:]
        return out

    def finish(self) -> list[TextDelta | ReasoningDelta]:
        """Return what was held back; no tag can follow any more."""
        out: list[TextDelta | ReasoningDelta] = []
        self._say(self._held, out)
        self._held = ""
        return out

    def _say(self, text: str, out: list[TextDelta | ReasoningDelta]) -> None:
        if text:
            out.append(ReasoningDelta(text) if self._thinking else TextDelta(text))


def _tag_prefix(text: str, tag: str) -> int:
    """Return how many of the last characters of `text` may begin `tag`."""
    longest = min(len(text), len(tag) - 1)
    return next((size for size in range(longest, 0, -1) if tag.startswith(text[-size:])), 0)
