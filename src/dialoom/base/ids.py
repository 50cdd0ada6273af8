"""Ids: opaque, unique on any machine, and in order of creation when sorted as text."""

import os
import time
from typing import Final

_VARIANT: Final = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))
"""Two random bits behind the two of the RFC's variant."""


def new_id() -> str:
    """Return a fresh UUID version 7 (RFC 9562) in its 36-character text form.

    The first 48 bits are Unix milliseconds, so ids made one after another by one process sort by
    age to the millisecond; the rest is random.
    """
    stamp = f"{time.time_ns() // 1_000_000:012x}"
    noise = os.urandom(10).hex()
    return f"{stamp[:8]}-{stamp[8:]}-7{noise[:3]}-{_VARIANT[noise[3]]}{noise[4:7]}-{noise[8:]}"
