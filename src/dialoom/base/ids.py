"""Ids: opaque, unique on any machine, and in order of creation when sorted as text."""

import os
import time
from contextlib import suppress
from typing import Final

_VARIANT: Final = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))
"""Two random bits behind the two of the RFC's variant."""
_DIGITS: Final = 20
_AT_ONCE: Final = 64
_ends: Final[list[str]] = []
"""The random ends of ids to come: asking the system for each would be half of what an id costs."""


def new_id() -> str:
    """Return a fresh UUID version 7 (RFC 9562) in its 36-character text form.

    The first 48 bits are Unix milliseconds, so ids made one after another by one process sort by
    age to the millisecond; the rest is random.
    """
    stamp = f"{time.time_ns() // 1_000_000:012x}"
    try:
        end = _ends.pop()
    except IndexError:
        end, *others = _fresh_ends()
        _ends.extend(others)
    return f"{stamp[:8]}-{stamp[8:]}-7{end}"


def _fresh_ends() -> list[str]:
    digits = os.urandom(_AT_ONCE * _DIGITS // 2).hex()
    each = (digits[at : at + _DIGITS] for at in range(0, len(digits), _DIGITS))
    return [f"{one[:3]}-{_VARIANT[one[3]]}{one[4:7]}-{one[8:]}" for one in each]


with suppress(AttributeError):  # Windows knows no fork
    os.register_at_fork(after_in_child=_ends.clear)  # or a child hands out what its parent does
