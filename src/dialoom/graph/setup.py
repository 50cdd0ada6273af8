"""What all runs of one graph share."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from dialoom.base.clock import Clock
from dialoom.base.events import Observer
from dialoom.graph.checkpoint import CheckpointStore
from dialoom.graph.commit import Step, accept_input
from dialoom.graph.compile_draft import onward_of, reached_from
from dialoom.graph.draft import Draft
from dialoom.graph.fingerprint import fingerprint_of
from dialoom.graph.frontier import AT_ENTRY
from dialoom.graph.guard import Chance
from dialoom.graph.migrate import version_of
from dialoom.graph.names import START
from dialoom.graph.state import EMPTY
from dialoom.graph.table import Table
from dialoom.graph.turns import Turns


class Setup:
    """A table, the draft it was made of, where its checkpoints go, who listens, and what time it is."""

    def __init__(
        self,
        table: Table,
        store: CheckpointStore | None,
        observers: Sequence[Observer],
        *,
        clock: Clock,
        chance: Chance | None = None,
        draft: Draft,
    ) -> None:
        self.table = table
        self.store = store
        self.observers = tuple(observers)
        self.clock = clock
        self.chance = chance
        self.draft = draft
        self.turns = Turns()

    @cached_property
    def state_version(self) -> int:
        return version_of(self.table.migrations)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint_of(self.table)

    @cached_property
    def entry(self) -> Step | None:
        """The step into a new thread that is given nothing; None where it is not the same for all of them.

        A router behind START may look anywhere, and an append channel that is not empty is a run's own.
        """
        table = self.table
        if table.exits[START].routes or any(op.kind != "set" for op in table.initial.values()):
            return None
        return accept_input(table, EMPTY, AT_ENTRY, {})

    @cached_property
    def onward(self) -> Mapping[str, frozenset[str]]:
        """The nodes that each node may lead to by an edge."""
        return {name: frozenset(targets) for name, targets in onward_of(self.draft).items()}

    @cached_property
    def reaches(self) -> Mapping[str, frozenset[str]]:
        """The nodes that each node may lead to by any number of edges."""
        return {name: frozenset(reached_from(self.onward, self.onward[name])) for name in self.onward}
