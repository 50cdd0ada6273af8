"""What a program hands over, looked at where it is handed over: a slip is named there, in one line."""

from decimal import Decimal
from math import isfinite

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line


def named(value: object) -> str:
    """Return what a value is, and nothing of what it holds."""
    return "None" if value is None else f"a value of type {type(value).__name__}"


def expect_text(value: object, what: str, example: str) -> str:
    """Return a text. Raises `UsageError` for anything else, a variable that is not set among it."""
    if not isinstance(value, str):
        raise UsageError(f"{what} is {named(value)} and no text; write it like {example}")
    return value


def expect_texts(value: object, what: str) -> None:
    """Raise `UsageError` for one text where several are wanted: its letters would be taken for them."""
    if isinstance(value, str):
        raise UsageError(f"{what} is one text; give several, like {what}=({one_line(value, 20)!r},)")


def is_count(value: object, *, least: int) -> bool:
    """Tell whether `value` is a whole number from `least` on."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def expect_number(value: object, what: str, *, least: float) -> None:
    """Raise `UsageError` unless `value` is None or a number that is no less than `least`."""
    if value is None:
        return
    shown = named(value)
    if isinstance(value, int | float | Decimal):
        if (isinstance(value, int) or isfinite(value)) and value >= least:
            return
        shown = str(value)
    raise UsageError(f"{what} is {shown}; use a number from {least:g} on, or None to leave it to the server")
