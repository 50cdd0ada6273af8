"""Numbers that count something, looked at where a program hands them over."""

from dialoom.base.text import one_line
from dialoom.llm.given import is_count
from dialoom.rag.errors import InvalidOptionsError


def check_count(value: object, what: str, *, least: int = 1) -> None:
    """Raise `InvalidOptionsError` unless `value` is a whole number from `least` on."""
    if not is_count(value, least=least):
        told = one_line(repr(value), 40)
        raise InvalidOptionsError(f"{what} must be {least} or more, not {told}; give a whole number")
