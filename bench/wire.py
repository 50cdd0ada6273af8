"""How many of the ways to cut each wire case are read wrong, by dialoom or by a program; none may be.

Each case is played as recorded, whole, byte by byte and cut in two at every byte: minutes of work in all.
"""

import asyncio
import shlex
import sys
from pathlib import Path

import msgspec

from bench.report import Row
from dialoom.base.errors import UsageError
from dialoom.testing.wire_cases import CaseResult, run_cases
from dialoom.testing.wire_client import ClientProgram

PACKAGES: tuple[str, ...] = ("httpx2", "msgspec")
CASES = Path(__file__).parents[1] / "tests" / "llm" / "wire_cases.jsonl"


class WireChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What is scored, by which cases."""

    cases: tuple[Path, ...] = ()
    """Files of cases; without one, those of the tests."""
    client: str = ""
    """The command of a program to be scored instead of dialoom."""
    at: Path = Path()
    """The folder the program is started in."""
    most_cuts: int | None = None
    """How often one body is cut in two; at every byte without a number."""


DEFAULT_CHOICE = WireChoice()


def rows(choice: WireChoice = DEFAULT_CHOICE) -> list[Row]:
    """Return one row for each case. Raises `UsageError` for a command that cannot be started."""
    results = asyncio.run(_results(choice))
    for result in results:
        for problem in result.problems[:1]:
            print(f"{result.id}: {problem}", file=sys.stderr)
    right = sum(result.ok for result in results)
    print(f"{right} of {len(results)} cases are read right in every way they were cut", file=sys.stderr)
    return [
        Row(result.id, "wrong", float(result.wrong), "cuts tried", float(result.runs), must=0.0)
        for result in results
    ]


async def _results(choice: WireChoice) -> list[CaseResult]:
    cases = choice.cases or (CASES,)
    if not choice.client:
        return await run_cases(cases, most_cuts=choice.most_cuts)
    try:
        argv = shlex.split(choice.client)
    except ValueError as error:
        raise UsageError(f"the command of the client cannot be read: {error}; correct its quotes") from error
    async with ClientProgram(argv, cwd=str(choice.at)) as program:
        return await run_cases(cases, program.provider, most_cuts=choice.most_cuts)
