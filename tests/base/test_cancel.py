"""Cancel scopes: one request, seen by all who watch, once."""

import threading

import pytest

from dialoom.base.cancel import Cancelled, CancelScope


def test_a_scope_starts_out_running() -> None:
    scope = CancelScope()
    assert (scope.cancelled, scope.reason) == (False, None)
    scope.raise_if_cancelled()


def test_cancelling_calls_each_watcher_once_and_keeps_the_first_reason() -> None:
    scope, seen = CancelScope(), []
    scope.add_callback(lambda: seen.append(scope.reason))
    scope.cancel("timeout")
    scope.cancel("cancelled")
    assert (seen, scope.reason) == (["timeout"], "timeout")


def test_a_late_watcher_is_called_at_once() -> None:
    scope, seen = CancelScope(), []
    scope.cancel()
    forget = scope.add_callback(lambda: seen.append("called"))
    forget()
    assert seen == ["called"]


def test_a_watcher_that_left_is_not_called() -> None:
    scope, seen = CancelScope(), []
    scope.add_callback(lambda: seen.append("left"))()
    scope.cancel()
    assert seen == []


def test_a_watcher_that_another_one_makes_leave_is_not_called() -> None:
    scope, seen = CancelScope(), []
    keys = list[int]()
    scope.watch(lambda: scope.unwatch(keys[0]))
    keys.append(scope.watch(lambda: seen.append("called")))
    scope.cancel()
    assert seen == []


@pytest.mark.parametrize("_", range(20))
def test_what_threads_watch_while_another_cancels_is_called_once(_: int) -> None:
    scope, seen, start = CancelScope(), list[int](), threading.Barrier(4)

    def watch(first: int) -> None:
        start.wait(10)
        for number in range(first, first + 20):
            scope.watch(lambda number=number: seen.append(number))

    watchers = [threading.Thread(target=watch, args=(20 * at,)) for at in range(3)]
    for each in watchers:
        each.start()
    start.wait(10)
    scope.cancel()
    for each in watchers:
        each.join(10)
    assert sorted(seen) == list(range(60))


def test_a_child_stops_with_its_parent_for_the_same_reason() -> None:
    parent = CancelScope()
    child = CancelScope(parent)
    parent.cancel("timeout")
    assert child.reason == "timeout"


def test_a_parent_outlives_its_child_and_a_closed_child_outlives_its_parent() -> None:
    parent = CancelScope()
    stopped, closed = CancelScope(parent), CancelScope(parent)
    stopped.cancel()
    closed.close()
    closed.close()
    assert not parent.cancelled
    parent.cancel()
    assert not closed.cancelled


def test_cancelled_passes_through_except_exception() -> None:
    scope = CancelScope()
    scope.cancel("timeout")
    with pytest.raises(Cancelled) as caught:
        try:
            scope.raise_if_cancelled()
        except Exception:  # noqa: BLE001 - the very thing that must not swallow it
            pytest.fail("swallowed")
    assert caught.value.reason == "timeout"
