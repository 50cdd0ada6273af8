"""An append channel shows each reader what it had when the reader came."""

from operator import add
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.graph import AppendLog
from dialoom.graph.frozen import freeze

ITEMS = st.lists(st.integers(), max_size=6)


@given(st.lists(ITEMS, max_size=6))
def test_every_view_keeps_what_it_showed(batches: list[list[int]]) -> None:
    views, expected = [AppendLog.of()], [[]]
    for batch in batches:
        views.append(views[-1].extended(batch))
        expected.append([*expected[-1], *batch])
    assert [list(view) for view in views] == expected
    assert views == expected


@given(ITEMS, ITEMS, ITEMS)
def test_two_futures_of_one_view_do_not_meet(past: list[int], one: list[int], other: list[int]) -> None:
    view = AppendLog.of(past)
    first, second = view.extended(one), view.extended(other)
    assert (view, first, second) == (past, past + one, past + other)


@given(ITEMS, st.integers(-8, 8), st.integers(-8, 8))
def test_it_reads_like_a_list(items: list[int], low: int, high: int) -> None:
    log = AppendLog.of(items)
    log.extended([99])
    assert len(log) == len(items)
    assert log[low:high] == items[low:high]
    assert log[::-1] == items[::-1]
    assert list(reversed(log)) == items[::-1]
    assert (99 in log) == (99 in items)
    assert repr(log) == repr(items)
    for at in range(-len(items), len(items)):
        assert log[at] == items[at]


def test_a_slice_shows_only_what_the_view_does() -> None:
    log = AppendLog.of(["a", "b", "c"])
    log.extended(["d"])
    assert (log[1:], log[-1:], log[:9:2]) == (["b", "c"], ["c"], ["a", "c"])


@pytest.mark.parametrize("index", [2, -3])
def test_an_index_outside_is_an_error_even_when_the_list_behind_is_longer(index: int) -> None:
    log = AppendLog.of(["a", "b"])
    log.extended(["c"])
    with pytest.raises(IndexError, match="outside the 2 items"):
        log[index]


def test_adding_gives_a_plain_list_to_work_on() -> None:
    log = AppendLog.of([1])
    assert add(log, [2]) == [1, 2]
    assert add([0], log) == [0, 1]
    assert type(add(log, [])) is list


def test_it_has_nothing_to_change_it_with() -> None:
    log: Any = AppendLog.of([1])
    for change in ("append", "extend", "insert", "pop", "clear", "__setitem__", "__delitem__"):
        assert not hasattr(log, change)
    with pytest.raises(TypeError):
        hash(log)


def test_it_equals_lists_and_logs_and_nothing_else() -> None:
    assert AppendLog.of([1]) == AppendLog.of([1])
    assert AppendLog.of([1]) != AppendLog.of([1, 2])
    assert AppendLog.of([1]) == freeze([1])
    assert AppendLog.of([1]) != (1,)
