"""What tasks remember, when their superstep ends while one of them is about to keep it."""

from collections.abc import Iterable
from threading import Event, Thread

import pytest

from dialoom.base.cancel import Cancelled
from dialoom.graph.frontier import TaskNote
from dialoom.graph.memos import Memos

PATIENCE = 60


def test_what_a_closed_superstep_has_taken_is_not_kept_once_more() -> None:
    memos = Memos(())
    kept: list[list[TaskNote]] = []
    closed: list[TaskNote] = []

    def keep(notes: Iterable[TaskNote]) -> None:
        kept.append(list(notes))
        late.start()
        while not second.note().once:
            assert late.is_alive()
        closed.extend(memos.close())

    first = memos.of(("first", None), (), keep, blocking=True)
    second = memos.of(("second", None), (), keep, blocking=True)
    late = Thread(target=lambda: second.once("paid", lambda: 2), daemon=True)
    assert first.once("paid", lambda: 1) == 1
    late.join(PATIENCE)
    assert not late.is_alive()
    assert [(note.node, note.once) for (note, *_) in kept] == [("first", (("paid", 1),))]
    assert [(note.node, dict(note.once)) for note in closed] == [
        ("first", {"paid": 1}),
        ("second", {"paid": 2}),
    ]


def test_nothing_is_made_durable_once_the_run_is_over() -> None:
    kept: list[TaskNote] = []
    memos = Memos(())
    memo = memos.of(("node", None), (), kept.extend, blocking=True)
    memo.once("before", lambda: 1)
    memos.end()
    memo.once("after", lambda: 2)
    assert [note.once for note in kept] == [(("before", 1),)]


def test_the_end_waits_for_what_is_being_made_durable() -> None:
    memos, ended, early = Memos(()), Event(), list[bool]()

    def end() -> None:
        memos.end()
        ended.set()

    ending = Thread(target=end)

    def keep(_: Iterable[TaskNote]) -> None:
        ending.start()
        early.append(ended.wait(0.1))  # real time: that it does not come cannot be waited for otherwise

    memos.of(("node", None), (), keep, blocking=True).once("key", lambda: 1)
    ending.join(PATIENCE)
    assert (early, ended.is_set()) == ([False], True)


def test_an_effect_whose_superstep_is_over_when_it_ends_is_not_remembered() -> None:
    memo = Memos(()).of(("node", None), (), list, blocking=True)
    with pytest.raises(Cancelled):
        memo.once("key", memo.close)
    assert memo.note().once == ()
