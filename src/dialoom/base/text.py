"""Text that is safe to store, send and show: no lone surrogates, no control codes, no endless lines."""

import re

REPLACEMENT = "\ufffd"
_SURROGATE = re.compile("[\ud800-\udfff]")
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def replace_surrogates(text: str) -> str:
    """Return `text` encodable as UTF-8: halves that make a pair are joined, lone ones become U+FFFD."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def printable(text: str) -> str:
    """Return `text` without what would steer a terminal: control codes, except line breaks and tabs."""
    return _STEERING.sub("", replace_surrogates(text))


def one_line(text: str, limit: int = 200) -> str:
    """Return `text` as one printable line of at most `limit` characters, for messages people read."""
    line = _UNPRINTABLE.sub(" ", replace_surrogates(text[: 4 * limit])).strip()
    if len(line) <= limit and len(text) <= 4 * limit:
        return line
    return line[: limit - 1].rstrip() + "…"
