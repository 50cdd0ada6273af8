"""What a forked child, which has no thread but one, must not inherit."""

import os
from collections.abc import Callable


def in_forked_child(call: Callable[[], None]) -> None:
    """Have `call` run in every child this process forks. Does nothing where processes do not fork."""
    register = getattr(os, "register_at_fork", None)
    if register is not None:
        register(after_in_child=call)
