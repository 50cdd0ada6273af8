"""Ids: opaque, unique on any machine, and in order of creation when sorted as text."""

import os
import time


def new_id() -> str:
    """Return a fresh UUID version 7 (RFC 9562) in its 36-character text form.

    The first 48 bits are Unix milliseconds, so ids made one after another by one process sort by
    age to the millisecond; the rest is random.
    """
    millis = time.time_ns() // 1_000_000
    tail = int.from_bytes(os.urandom(10), "big")
    bits = (millis & 0xFFFF_FFFF_FFFF) << 80 | tail
    bits = bits & ~(0xF << 76) | 0x7 << 76  # version 7
    bits = bits & ~(0x3 << 62) | 0x2 << 62  # RFC variant
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
