"""Patterns from outside, matched in linear time: no pattern can make a match take long."""

import re
from functools import lru_cache
from typing import Annotated

from pydantic import StringConstraints, TypeAdapter, ValidationError
from pydantic_core import SchemaError

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line

MAX_PATTERN = 500
_CLASSES = {
    r"\d": "[0-9]",
    r"\D": "[^0-9]",
    r"\w": "[0-9A-Za-z_]",
    r"\W": "[^0-9A-Za-z_]",
}


def matches(pattern: str, text: str) -> bool:
    """Tell whether `pattern` is found anywhere in `text`, as a page's `RegExp` with flag `u` would.

    Raises `UsageError` for what no linear matcher takes: look-around, back-references, over 500 characters.
    """
    try:
        _matcher(pattern).validate_python(text)
    except ValidationError:
        return False
    return True


def check_pattern(pattern: str) -> str:
    """Return `pattern`, or raise `UsageError` as `matches` would."""
    _matcher(pattern)
    return pattern


@lru_cache(maxsize=16)
def _matcher(pattern: str) -> TypeAdapter[str]:
    # pydantic's default engine is Rust's regex: finite automata, bounded compiled size
    if len(pattern) > MAX_PATTERN:
        raise UsageError(f"a pattern of {len(pattern)} characters is over the limit of {MAX_PATTERN}")
    ascii_classes = re.sub(r"\\.", lambda found: _CLASSES.get(found[0], found[0]), pattern, flags=re.DOTALL)
    try:
        return TypeAdapter(Annotated[str, StringConstraints(pattern=ascii_classes)])
    except SchemaError as error:
        reason = str(error).rsplit("error:", 1)[-1]
        raise UsageError(
            f"the pattern {one_line(pattern, 60)!r} cannot be used: {one_line(reason, 100)}"
        ) from error
