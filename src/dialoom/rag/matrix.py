"""Unit vectors in memory. A reader sees one moment of them, whatever writers do meanwhile."""

import logging
import sys
from collections.abc import Sequence
from threading import Lock, Thread
from typing import Generic

import numpy as np

from dialoom.rag.lists import build_lists
from dialoom.rag.rows import unit_rows
from dialoom.rag.snapshot import Key, Segment, Snapshot
from dialoom.rag.types import FloatMatrix

EXACT_UP_TO = 200_000
"""So many rows are searched one by one; of more, only those in the lists nearest to the question."""
SEGMENT_ROWS = 65_536
_DEAD_SHARE = 0.25
_FIRST_ROWS = 256
_LAST_DOUBLING = 4_096
_UNLISTED_SHARE = 0.25
_log = logging.getLogger("dialoom.rag")


class Matrix(Generic[Key]):
    """Rows by key. One writer at a time; `snapshot` may be taken and searched at any moment by anyone.

    Above `exact_up_to` rows lists are made, once for every time the matrix has grown by a third.
    """

    def __init__(self, *, exact_up_to: int = EXACT_UP_TO) -> None:
        self._rows: dict[Key, int] = {}  # segment * SEGMENT_ROWS + row
        self._exact_up_to = exact_up_to
        self._publishing = Lock()
        self._listing = Lock()
        self._packed = 0
        self.snapshot: Snapshot[Key] = Snapshot()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: Key) -> bool:
        return key in self._rows

    def replace(self, remove: Sequence[Key], keys: Sequence[Key], vectors: FloatMatrix) -> None:
        """Take out `remove`, put in `keys` with their rows, and show both to readers at once.

        `keys` are distinct, and those still present are replaced; `vectors` have passed `check_rows`.
        """
        rows = self._rows
        gone = [rows.pop(key) for group in (remove, keys) for key in group if key in rows]
        segments = _bury(self.snapshot.segments, gone)
        dim = self.snapshot.dim if self._rows or not keys else vectors.shape[1]
        packed = not self._rows
        if packed:
            segments = ()
        if keys:
            segments = self._append(segments, keys, vectors)
        if sum(segment.length for segment in segments) * (1 - _DEAD_SHARE) > len(self._rows):
            segments, packed = self._compacted(segments), True
        self._publish(Snapshot(dim, segments, len(self._rows)), packed=packed)

    def to_search(self) -> Snapshot[Key]:
        """The snapshot. When it has outgrown its lists, others are made on a thread meanwhile."""
        snapshot = self.snapshot
        if self._needs_lists(snapshot) and self._listing.acquire(blocking=False):
            Thread(target=self._list_aside, name="dialoom-lists", daemon=True).start()
        return snapshot

    def make_lists(self) -> None:
        """Make the lists that this many rows need now, if they have outgrown those that are there."""
        with self._listing:
            self._list()

    def take(self, keys: Sequence[Key]) -> FloatMatrix:
        """The unit rows of some keys, all of which are there. Not while another thread writes."""
        places = [self._rows[key] for key in keys]
        segments = self.snapshot.segments
        taken = np.empty((len(keys), self.snapshot.dim or 0), np.float32)
        for at, place in enumerate(places):
            taken[at] = segments[place // SEGMENT_ROWS].buffer[place % SEGMENT_ROWS]
        return taken

    def clear(self) -> None:
        self._rows = {}
        self._publish(Snapshot(), packed=True)

    def _publish(self, snapshot: Snapshot[Key], *, packed: bool) -> None:
        """Show readers the new rows, with the lists of the old ones unless rows have changed places."""
        with self._publishing:
            self._packed += packed
            lists = None if packed else self.snapshot.lists
            self.snapshot = Snapshot(snapshot.dim, snapshot.segments, snapshot.alive, lists)

    def _needs_lists(self, snapshot: Snapshot[Key]) -> bool:
        return snapshot.alive > self._exact_up_to and snapshot.unlisted > _UNLISTED_SHARE

    def _list_aside(self) -> None:
        try:
            self._list()
        except Exception:  # noqa: BLE001 - seam: memory may be short; nobody waits for this thread
            self._exact_up_to = sys.maxsize
            _log.warning("lists for faster searches could not be made; every row is looked at", exc_info=True)
        finally:
            self._listing.release()

    def _list(self) -> None:
        with self._publishing:
            packed, seen = self._packed, self.snapshot
        if not self._needs_lists(seen):
            return
        lists = build_lists([segment.buffer[: segment.length] for segment in seen.segments])
        with self._publishing:
            if packed == self._packed:
                now = self.snapshot
                self.snapshot = Snapshot(now.dim, now.segments, now.alive, lists)

    def _append(
        self,
        segments: tuple[Segment[Key], ...],
        keys: Sequence[Key],
        rows: FloatMatrix,
        *,
        are_units: bool = False,
    ) -> tuple[Segment[Key], ...]:
        """`are_units`: the rows have been scaled; doing it again could change the last bit of a score."""
        grown = list(segments)
        start = 0
        while start < len(keys):
            if not grown or grown[-1].length == SEGMENT_ROWS:
                grown.append(Segment(np.empty((0, rows.shape[1]), np.float32), [], 0))
            count = min(len(keys) - start, SEGMENT_ROWS - grown[-1].length)
            taken = keys[start : start + count]
            row = (len(grown) - 1) * SEGMENT_ROWS + grown[-1].length
            self._rows.update(zip(taken, range(row, row + count), strict=True))
            grown[-1] = _extended(grown[-1], taken, rows[start : start + count], are_units=are_units)
            start += count
        return tuple(grown)

    def _compacted(self, segments: tuple[Segment[Key], ...]) -> tuple[Segment[Key], ...]:
        self._rows = {}
        packed: tuple[Segment[Key], ...] = ()
        for segment in segments:
            packed = self._append(packed, segment.living_keys(), segment.living_rows(), are_units=True)
        return packed


def _extended(
    segment: Segment[Key], keys: Sequence[Key], rows: FloatMatrix, *, are_units: bool
) -> Segment[Key]:
    """The segment with more rows, scaled. Readers of the old one never look past its length."""
    length = segment.length + len(rows)
    buffer = segment.buffer
    if length > len(buffer):
        # past a few thousand rows a whole segment is asked for: its pages cost nothing until they are written
        grown = max(length, 2 * len(buffer), _FIRST_ROWS)
        capacity = SEGMENT_ROWS if grown > _LAST_DOUBLING else min(grown, SEGMENT_ROWS)
        buffer = np.empty((capacity, rows.shape[1]), np.float32)
        buffer[: segment.length] = segment.buffer[: segment.length]
    if are_units:
        buffer[segment.length : length] = rows
    else:
        unit_rows(rows, out=buffer[segment.length : length])
    segment.keys.extend(keys)
    dead = segment.dead
    if dead is not None:
        dead = np.concatenate([dead, np.zeros(len(rows), np.bool_)])
    return Segment(buffer, segment.keys, length, dead)


def _bury(segments: tuple[Segment[Key], ...], places: Sequence[int]) -> tuple[Segment[Key], ...]:
    marked = list(segments)
    rows_of: dict[int, list[int]] = {}
    for place in places:
        rows_of.setdefault(place // SEGMENT_ROWS, []).append(place % SEGMENT_ROWS)
    for index, rows in rows_of.items():
        old = marked[index]
        dead = np.zeros(old.length, np.bool_) if old.dead is None else old.dead.copy()
        dead[rows] = True
        marked[index] = Segment(old.buffer, old.keys, old.length, dead)
    return tuple(marked)
