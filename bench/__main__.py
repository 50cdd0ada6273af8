"""Run one bench or all: `python -m bench [NAME …] [--json]`. Exits 1 when a ratio does not hold."""

import argparse
import sys
from importlib import import_module
from pathlib import Path

from bench.report import to_json, to_table
from bench.wire import WireChoice
from dialoom.base.errors import UsageError

NAMES = ("imports", "graph", "graph_store", "llm", "wire", "agent", "conversation", "mcp", "rag", "server")
BY_NAME_ONLY = ("rag_million", "rag_manuals")
"""Those that take minutes, or documents that are not everywhere."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", default=NAMES, metavar="NAME", help=", ".join(NAMES + BY_NAME_ONLY)
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per bench")
    wire = parser.add_argument_group("wire")
    wire.add_argument("--cases", action="append", type=Path, metavar="FILE", help="JSONL of cases")
    wire.add_argument("--client", default="", metavar="COMMAND", help="score this program, not dialoom")
    wire.add_argument("--client-at", default=".", type=Path, metavar="FOLDER", help="where it is started")
    wire.add_argument("--most-cuts", type=int, metavar="N", help="cut a body in two at most so often")
    chosen = parser.parse_args()
    try:
        return 0 if _run(chosen) else 1
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2


def _run(chosen: argparse.Namespace) -> bool:
    """Print each bench and tell whether all of it held."""
    if unknown := set(chosen.names) - {*NAMES, *BY_NAME_ONLY}:
        there_are = ", ".join(NAMES + BY_NAME_ONLY)
        raise UsageError(f"there is no bench {min(unknown)!r}; there are: {there_are}")
    held = True
    for name in chosen.names:
        bench = import_module(f"bench.{name}")
        rows = bench.rows(_wire_choice(chosen)) if name == "wire" else bench.rows()
        print(to_json(name, rows, bench.PACKAGES) if chosen.json else to_table(name, rows), flush=True)
        held = held and all(row.ok for row in rows)
    return held


def _wire_choice(chosen: argparse.Namespace) -> WireChoice:
    return WireChoice(
        cases=tuple(chosen.cases or ()),
        client=chosen.client,
        at=chosen.client_at,
        most_cuts=chosen.most_cuts,
    )


if __name__ == "__main__":
    sys.exit(main())
