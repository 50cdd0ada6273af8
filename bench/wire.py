"""How many of the ways to cut each wire case dialoom reads wrong; none may be."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.report import Row
from dialoom.testing.wire_cases import run_cases

PACKAGES: tuple[str, ...] = ("httpx2", "msgspec")
CASES = Path(__file__).parents[1] / "tests" / "llm" / "wire_cases.jsonl"
MOST_CUTS = 5_000


def rows(cases: Sequence[Path] = ()) -> list[Row]:
    """Return one row for each case of the files in `cases`, the ones of the tests by default."""
    results = asyncio.run(run_cases(cases or (CASES,), most_cuts=MOST_CUTS))
    for result in results:
        for problem in result.problems:
            print(f"{result.id}: {problem}", file=sys.stderr)
    return [
        Row(result.id, "wrong", float(result.wrong), "cuts tried", float(result.runs), must=0.0)
        for result in results
    ]
