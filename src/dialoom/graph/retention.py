"""How much of a thread's past is kept. Pure."""

from collections.abc import Sequence

from dialoom.base.errors import UsageError


def check_retention(keep_last: int | None, max_age: float | None) -> None:
    """Raise UsageError for limits that are none, or that would not leave a thread its newest checkpoint."""
    if keep_last is None and max_age is None:
        raise UsageError("prune needs a limit; give keep_last, max_age in seconds, or both")
    if keep_last is not None and keep_last < 1:
        raise UsageError(f"keep_last is {keep_last}; a thread keeps its newest checkpoint, so give 1 or more")
    if max_age is not None and not max_age >= 0:
        raise UsageError(f"max_age is {max_age}; give seconds, 0 or more")


def first_kept(created: Sequence[float], keep_last: int | None, since: float | None) -> int:
    """Return the place of the oldest checkpoint to keep, of those made at `created`, oldest first.

    `since` is the time from which on they are young enough. The newest one is always kept.
    """
    first = 0 if keep_last is None else max(0, len(created) - keep_last)
    if since is None or not created:
        return first
    return max(first, next((at for at, time in enumerate(created) if time >= since), len(created) - 1))
