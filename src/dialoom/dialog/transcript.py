"""What a dialog holds of its log: the visible end of it, at a cost that does not grow with the rest."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from dialoom.conversation import Entry, TextEntry
from dialoom.dialog.errors import NotLoadedError
from dialoom.llm import Role


class Transcript:
    """The visible entries from `start` on; what stands before is in the store only."""

    __slots__ = ("_entries", "start")

    def __init__(self, entries: Iterable[Entry] = (), *, start: int = 0) -> None:
        self.start = start
        self._entries = list(entries)

    def __len__(self) -> int:
        """How many entries are visible, those that were not read included."""
        return self.start + len(self._entries)

    @property
    def held(self) -> int:
        """How many entries were read."""
        return len(self._entries)

    def append(self, entry: Entry) -> int:
        """Add `entry` and return its index."""
        self._entries.append(entry)
        return len(self) - 1

    def prepend(self, entries: Sequence[Entry], *, start: int) -> None:
        """Hold the entries that stand right before those held, from `start` on."""
        self._entries[:0] = entries
        self.start = start

    def replace(self, entries: Iterable[Entry]) -> int:
        """Hold `entries`, which are all there are, in place of what is held; return how many stayed.

        Those that stay are the same objects, so that they are still found by `is`.
        """
        held, start = self._entries, self.start
        self._entries, self.start = list(entries), 0
        pairs = zip(held, self._entries[start:], strict=False)
        same = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
        self._entries[start : start + len(same)] = same
        return min(len(self), start + len(same))

    def truncate(self, keep: int) -> int:
        """Keep the first `keep` entries and return how many went."""
        removed = max(0, len(self) - keep)
        del self._entries[max(0, keep - self.start) :]
        self.start = min(self.start, keep)
        return removed

    def entry(self, index: int) -> Entry:
        """Return the entry at `index`. Raises `NotLoadedError` before what was read, `IndexError` past it."""
        if index < self.start:
            raise self.not_loaded()
        return self._entries[index - self.start]

    def all(self) -> tuple[Entry, ...]:
        """Return every visible entry. Raises `NotLoadedError` when some were not read."""
        if self.start:
            raise self.not_loaded()
        return tuple(self._entries)

    def newest_first(self) -> Iterator[tuple[int, Entry]]:
        """Yield index and entry from the end to as far as was read."""
        for at in range(len(self._entries) - 1, -1, -1):
            yield self.start + at, self._entries[at]

    def newest_said(self) -> tuple[int, Role] | None:
        """Return where a user or an assistant said something last, and which of them, as far as was read."""
        for index, entry in self.newest_first():
            if isinstance(entry, TextEntry) and entry.role in {"user", "assistant"}:
                return index, entry.role
        return None

    def recent(self, messages: int, *, before: int) -> tuple[Entry, ...]:
        """Return at least `messages` entries before the index `before`, if so many are held.

        The entries of one turn stay together, so at most one turn more is returned.
        """
        end = before - self.start
        at = max(0, end - messages)
        while at > 0 and not _opens_turn(self._entries[at]):
            at -= 1
        return tuple(self._entries[at:end])

    def since(self, index: int) -> tuple[Entry, ...]:
        """Return the entries from `index` on, as far as they are held."""
        return tuple(self._entries[max(0, index - self.start) :])

    def not_loaded(self) -> NotLoadedError:
        return NotLoadedError(
            f"this dialog holds the newest {self.held} of {len(self)} messages; await its load() to read all"
        )


def _opens_turn(entry: Entry) -> bool:
    return isinstance(entry, TextEntry) and entry.role == "user"
