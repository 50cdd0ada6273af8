"""What it costs to import dialoom, against a bare interpreter that imports nothing."""

from functools import partial

from bench.measure import medians, process_cpu
from bench.report import Row

PACKAGES: tuple[str, ...] = ()
ROUNDS = 15
CODE = ("pass", "import dialoom", "import dialoom.graph")


def rows() -> list[Row]:
    """Return the CPU of whole processes, taken in turn."""
    taken = medians({code: partial(process_cpu, code) for code in CODE}, rounds=ROUNDS)
    bare, whole, graph = (1000 * seconds for seconds in taken.values())
    return [
        Row("import dialoom", "ms", whole, "bare interpreter", bare, must=2.5),
        Row(
            "import dialoom.graph, beyond the interpreter", "ms", graph - bare, "60 ms of CPU", 60.0, must=1.0
        ),
    ]
