"""Who waits is written by who writes: one write for all, each with an answer of its own."""

import time
from collections.abc import Sequence
from threading import Event, Thread

import pytest

from dialoom.stores.group_commit import GroupCommit
from tests.graph.graphs import PATIENCE, wait_for

BAD, DEADLY = 7, 13


class Desk:
    """Writes groups of numbers; a 0 holds the desk until `go`."""

    def __init__(self) -> None:
        self.busy, self.go = Event(), Event()
        self.groups: list[list[int]] = []
        self.told: dict[int, type[BaseException] | None] = {}
        self.commits: GroupCommit[int] = GroupCommit(self.write)

    def write(self, group: Sequence[int]) -> list[Exception | None]:
        self.groups.append(sorted(group))
        if 0 in group:
            self.busy.set()
            wait_for(self.go)
        if DEADLY in group:
            raise KeyboardInterrupt
        return [ValueError("bad") if each == BAD else None for each in group]

    def submit(self, item: int) -> None:
        try:
            self.commits.submit(item)
        except BaseException as error:  # noqa: BLE001 - the outcome is what the test looks at
            self.told[item] = type(error)
        else:
            self.told[item] = None

    def submit_behind(self, *items: int) -> None:
        """Submit 0, have `items` queue behind it, let go and wait for all."""
        threads = [Thread(target=self.submit, args=(item,)) for item in (0, *items)]
        threads[0].start()
        wait_for(self.busy)
        for thread in threads[1:]:
            thread.start()
        deadline = time.monotonic() + PATIENCE
        while len(self.commits._waiting) < len(items):
            assert time.monotonic() < deadline, "they did not queue"
        self.go.set()
        for thread in threads:
            thread.join(PATIENCE)


def test_those_who_wait_share_the_next_write_and_one_that_is_refused_fails_alone() -> None:
    desk = Desk()
    desk.submit_behind(1, BAD, 2)
    assert desk.groups == [[0], [1, 2, BAD]]
    assert desk.told == {0: None, 1: None, 2: None, BAD: ValueError}


def test_who_is_alone_writes_at_once() -> None:
    desk = Desk()
    desk.commits.submit(1)
    with pytest.raises(ValueError, match="bad"):
        desk.commits.submit(BAD)
    assert desk.groups == [[1], [BAD]]


def test_when_the_one_who_writes_is_interrupted_the_others_are_told() -> None:
    desk = Desk()
    desk.submit_behind(DEADLY, 3)
    assert sorted(each.__name__ for each in desk.told.values() if each) == [
        "KeyboardInterrupt",
        "StoreError",
    ]
    desk.commits.submit(4)
    assert desk.groups == [[0], [3, DEADLY], [4]]
