"""What a JSON answer holds so far, while it streams. For display only: nothing in it is certain."""

MAX_TEXT = 1_000_000


class PartialJson:
    """Collects the text of an answer; `value` is what it holds up to here.

    Words and fences before the first brace are skipped. Strings may be cut anywhere, a number may still
    grow, and nothing is checked: run nothing and store nothing on the strength of it.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0
        self._begun = False

    def feed(self, text: str) -> None:
        """Take in more text; what goes past `MAX_TEXT` characters is not shown."""
        if not self._begun:
            start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
            if start < 0:
                return
            self._begun = True
            text = text[start:]
        text = text[: MAX_TEXT - self._size]
        self._size += len(text)
        self._pieces.append(text)

    @property
    def value(self) -> object | None:
        """Return the value so far, None before it begins or when what came is no JSON."""
        from jiter import from_json  # the stream of most answers is never looked at as JSON

        text = "".join(self._pieces)
        self._pieces = [text]
        if not text:
            return None
        try:
            return from_json(
                text.encode(errors="replace"), partial_mode="trailing-strings", allow_inf_nan=False
            )
        except ValueError:
            return None
