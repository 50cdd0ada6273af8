"""What it costs to import dialoom, against a bare interpreter that imports nothing."""

import resource
import statistics
import subprocess
import sys

from bench.report import Row

PACKAGES: tuple[str, ...] = ()
ROUNDS = 15


def rows() -> list[Row]:
    """Return the CPU of whole processes, taken in turn."""
    taken: dict[str, list[float]] = {"pass": [], "import dialoom": [], "import dialoom.graph": []}
    for _ in range(ROUNDS):
        for code, times in taken.items():
            times.append(_process_cpu(code))
    bare, whole, graph = (1000 * statistics.median(times) for times in taken.values())
    return [
        Row("import dialoom", "ms", whole, "bare interpreter", bare, must=2.5),
        Row(
            "import dialoom.graph, beyond the interpreter", "ms", graph - bare, "60 ms of CPU", 60.0, must=1.0
        ),
    ]


def _process_cpu(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
