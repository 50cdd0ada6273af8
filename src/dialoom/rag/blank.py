"""Whether a text says anything."""

import re

_WORD = re.compile(r"[^\s\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff\u00ad]")


def is_blank(text: str) -> bool:
    """Whether `text` has nothing to see in it: only white space and invisible marks."""
    return _WORD.search(text) is None
