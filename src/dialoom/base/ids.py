"""Ids: opaque, unique on any machine, and in order of creation when sorted as text."""

import os
import time
from contextlib import suppress
from typing import Final

_AT_ONCE: Final = 64
_BYTES: Final = 10
_noise: Final[list[str]] = []
"""Random digits for ids to come: asking the system for each id would be most of what an id costs."""

_VARIANT: Final = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))
"""Two random bits behind the two of the RFC's variant."""


def new_id() -> str:
    """Return a fresh UUID version 7 (RFC 9562) in its 36-character text form.

    The first 48 bits are Unix milliseconds, so ids made one after another by one process sort by
    age to the millisecond; the rest is random.
    """
    stamp = f"{time.time_ns() // 1_000_000:012x}"
    noise = _next_noise()
    return f"{stamp[:8]}-{stamp[8:]}-7{noise[:3]}-{_VARIANT[noise[3]]}{noise[4:7]}-{noise[8:]}"


def _next_noise() -> str:
    """Return 20 random hexadecimal digits that nobody else gets."""
    try:
        return _noise.pop()
    except IndexError:
        fresh = os.urandom(_AT_ONCE * _BYTES)
        _noise.extend(fresh[at : at + _BYTES].hex() for at in range(_BYTES, len(fresh), _BYTES))
        return fresh[:_BYTES].hex()


with suppress(AttributeError):  # Windows knows no fork
    os.register_at_fork(after_in_child=_noise.clear)  # or a child hands out what its parent does
