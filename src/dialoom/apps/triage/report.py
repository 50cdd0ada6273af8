"""The result file: one JSON object for programs, that people can read too."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from dialoom.apps.triage.verdict import Judged
from dialoom.base.files import replace_file
from dialoom.llm import Usage


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What all tickets come to, counted. `left_out` are rows of the file that were no tickets."""

    tickets: int
    left_out: int
    category: dict[str, int]
    priority: dict[str, int]
    source: dict[str, int]
    usage: dict[str, int]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A whole triage. `model` is None when none was asked; `embedder` names more than one when one failed."""

    mode: str
    model: str | None
    embedder: str
    summary: Summary
    tickets: Sequence[Judged]

    def write(self, path: Path) -> None:
        """Put the report in the file's place, whole or not at all. Raises `OSError`."""
        fields = msgspec.structs.asdict(self)
        fields["tickets"] = [
            msgspec.structs.asdict(each) | {"usage": _told(each.usage)} for each in self.tickets
        ]
        replace_file(path, msgspec.json.format(msgspec.json.encode(fields)) + b"\n")


def summary_of(tickets: Sequence[Judged], *, left_out: int) -> Summary:
    """Count what `tickets` came to."""
    usage = Usage()
    for each in tickets:
        usage = usage.plus(each.usage)
    return Summary(
        tickets=len(tickets),
        left_out=left_out,
        category=_counted(each.category for each in tickets),
        priority=_counted(each.priority for each in tickets),
        source=_counted(each.source for each in tickets),
        usage=_told(usage),
    )


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(Counter(words).most_common())


def _told(usage: Usage) -> dict[str, int]:
    """Return the counts that a server reported."""
    return {name: count for name, count in msgspec.structs.asdict(usage).items() if count is not None}
