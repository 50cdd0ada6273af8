"""What tasks remember, when their superstep ends while one of them is about to keep it."""

from collections.abc import Iterable
from threading import Thread

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
