"""Where the run of a dialog stands, read out of its checkpoint."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from dialoom.agent import begin
from dialoom.base.errors import StoreError
from dialoom.base.text import one_line
from dialoom.graph import Checkpoint
from dialoom.llm import Message


class Turn(msgspec.Struct, frozen=True):
    """One turn of a dialog: its id, and how many entries of the log stood before it."""

    id: str
    seen: int

    def inputs(self) -> dict[str, Any]:
        """Return what the agent's graph begins this turn with."""
        return {**begin(()), "seen": {"turn": self.id, "entries": self.seen}}


def turn_of(checkpoint: Checkpoint) -> Turn:
    """Return the turn that a checkpoint is of. Raises `StoreError` when it is of no dialog's."""
    seen: Any = checkpoint.state.get("seen")
    if not isinstance(seen, Mapping):
        raise StoreError(
            f"thread {one_line(checkpoint.thread_id, 80)!r} is of no dialog; give dialogs their own store"
        )
    told = cast("Mapping[str, Any]", seen)
    return Turn(told["turn"], told["entries"])


def messages_of(checkpoint: Checkpoint) -> Sequence[Message]:
    """Return what was said in the turn so far; where a crash may have left nothing, nothing."""
    return checkpoint.state.get("turn") or ()
