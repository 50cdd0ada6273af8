"""What a reader process takes away from itself before it opens anything. POSIX only."""

import math
import resource
from collections.abc import Callable
from pathlib import Path

_MB = 1_048_576
_STATUS = Path("/proc/self/statm")
_USUAL_START = 512 * _MB
_OPEN_FILES = 64
_CPU_GRACE = 2  # the parent's clock should be the first to say that the time is over


def set_limits(memory_mb: int, set_one: Callable[[int, tuple[int, int]], None] = resource.setrlimit) -> None:
    """Allow `memory_mb` more than is in use, few open files, and no byte written to any file; for good."""
    memory = address_space() + memory_mb * _MB
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        set_one(kind, (bound, bound))


def allow_cpu(seconds: float) -> None:
    """End this process when it has computed for `seconds` from now, even if nobody is there to stop it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(used.ru_utime + used.ru_stime + seconds) + _CPU_GRACE
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(
        resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
    )


def address_space(status: Path = _STATUS) -> int:
    """The bytes of address space in use; a usual number where the system does not tell."""
    try:
        return int(status.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return _USUAL_START
