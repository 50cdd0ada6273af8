"""How the checkpoints of a thread stand on each other, and when the whole state is written. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from dialoom.base.errors import ConflictError, StoreError
from dialoom.graph.checkpoint import Checkpoint, replay
from dialoom.graph.codec import UnreadableError
from dialoom.graph.frontier import Frontier
from dialoom.graph.note_changes import with_known
from dialoom.graph.state import EMPTY

SNAPSHOT_FLOOR: Final = 64 * 1024


class Head(msgspec.Struct, frozen=True):
    """The newest checkpoint of a thread, as far as the next one needs it.

    `base` is the version its state is folded from, `size` the bytes that one took uncompressed, `since` the
    bytes of all that follow it.
    """

    version: int
    id: str
    base: int
    size: int
    since: int


def check_next(thread_id: str, head: Head | None, checkpoint: Checkpoint) -> None:
    """Raise ConflictError unless `checkpoint` has the version that comes after `head`."""
    newest = 0 if head is None else head.version
    if checkpoint.version != newest + 1:
        raise ConflictError(
            f"thread {thread_id!r} is at version {newest}, so another run was first;"
            " load it again, then decide"
        )


def missing_parent(checkpoint: Checkpoint) -> StoreError:
    """Return the refusal of a checkpoint that follows nothing of its thread."""
    return StoreError(
        f"thread {checkpoint.thread_id!r} has no checkpoint {checkpoint.parent_id!r} to follow;"
        " resume from one of its own"
    )


def is_delta(head: Head | None, checkpoint: Checkpoint, size: int) -> bool:
    """Tell whether `size` bytes of changes will do, or the whole state is to be written.

    All is written where a branch begins, and when the changes since it last was come to more than it, so
    that a reload reads at most twice the state and the file grows with what was written to it.
    """
    if checkpoint.parent_id is None:
        return True
    if head is None or checkpoint.parent_id != head.id:
        return False
    return head.since + size <= max(head.size, SNAPSHOT_FLOOR)


def after(head: Head | None, checkpoint: Checkpoint, size: int, *, delta: bool) -> Head:
    """Return the head once `checkpoint`, which took `size` bytes, is written."""
    if delta and head is not None and checkpoint.parent_id is not None:
        return Head(checkpoint.version, checkpoint.id, head.base, head.size, head.since + size)
    return Head(checkpoint.version, checkpoint.id, checkpoint.version, size, 0)


def with_states(chain: Iterable[Checkpoint]) -> Iterator[Checkpoint]:
    """Give each checkpoint of a chain its state and notes: the first brings its own or begins with none.

    Raises UnreadableError when one follows notes that the one before has not.
    """
    state, frontier = EMPTY, Frontier()
    for at, checkpoint in enumerate(chain):
        state = checkpoint.state if at == 0 and checkpoint.state else replay(state, checkpoint.ops)
        try:
            frontier = with_known(frontier, checkpoint.frontier) if at else checkpoint.frontier
        except ValueError as error:
            raise UnreadableError(
                f"checkpoint {checkpoint.version} of thread {checkpoint.thread_id!r} cannot be read: {error};"
                " restore the file, or erase the thread"
            ) from error
        yield msgspec.structs.replace(checkpoint, state=state, frontier=frontier)
