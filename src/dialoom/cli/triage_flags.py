"""The options of `dialoom triage`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter, validators

from dialoom.cli.flags import NamedPath


@Parameter(name="*", group=Group("Tickets", sort_key=0))
@dataclass(frozen=True, kw_only=True)
class TriageFlags:
    """Which tickets, from which cases, to where."""

    tickets: NamedPath = Path("tickets.jsonl")
    """The tickets: one JSON object with id and text on each line, or one array of them."""
    cases: NamedPath = Path("cases.jsonl")
    """Earlier cases, in the same way: id, category, title, text and resolution."""
    out: Annotated[NamedPath, Parameter(allow_leading_hyphen=True)] = Path("triage.json")
    """The result file."""
    top_k: Annotated[int, Parameter(validator=validators.Number(gte=1, lte=20))] = 3
    """How many earlier cases a ticket is answered from."""
    concurrency: Annotated[int, Parameter(validator=validators.Number(gte=1, lte=64))] = 4
    """How many tickets are worked on at once; fewer for a slow server."""


NO_TRIAGE_FLAGS = TriageFlags()
