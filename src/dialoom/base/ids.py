"""Ids: opaque, unique on any machine, and in order of creation when sorted as text."""

import os
import time
from contextlib import suppress
from typing import Final

_RANDOM: Final = 10
"""Bytes of an id behind its time."""
_AT_ONCE: Final = 64
_VERSION: Final = bytes(0x70 | value & 0x0F for value in range(256))
_VARIANT: Final = bytes(0x80 | value & 0x3F for value in range(256))
"""What becomes of a random byte that holds the bits of the RFC as well."""
_ends: Final[list[str]] = []
"""The random ends of ids to come: asking the system for each would be half of what an id costs."""


def new_id() -> str:
    """Return a fresh UUID version 7 (RFC 9562) in its 36-character text form.

    The first 48 bits are Unix milliseconds, so ids made one after another by one process sort by
    age to the millisecond; the rest is random.
    """
    stamp = (time.time_ns() // 1_000_000).to_bytes(6, "big").hex("-", -4)
    try:
        end = _ends.pop()
    except IndexError:
        end, *others = _fresh_ends()
        _ends.extend(others)
    return f"{stamp}-{end}"


def _fresh_ends() -> list[str]:
    random = bytearray(os.urandom(_AT_ONCE * _RANDOM))
    random[0::_RANDOM] = random[0::_RANDOM].translate(_VERSION)
    random[2::_RANDOM] = random[2::_RANDOM].translate(_VARIANT)
    digits = random.hex()
    starts = range(0, len(digits), 2 * _RANDOM)
    return [f"{digits[at : at + 4]}-{digits[at + 4 : at + 8]}-{digits[at + 8 : at + 20]}" for at in starts]


with suppress(AttributeError):  # Windows knows no fork
    os.register_at_fork(after_in_child=_ends.clear)  # or a child hands out what its parent does
