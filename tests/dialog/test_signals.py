"""Signals: plain functions are called in order, and one that fails breaks nothing."""

import logging

import pytest

from dialoom.base.errors import UsageError
from dialoom.dialog import Signal


def test_listeners_are_called_in_the_order_they_connected() -> None:
    heard: list[str] = []
    signal = Signal[[str]]("news")
    signal.connect(lambda text: heard.append(f"first {text}"))
    signal.connect(lambda text: heard.append(f"second {text}"))
    signal.emit("a")
    assert heard == ["first a", "second a"]


def test_a_connection_ends_once_and_leaves_the_others() -> None:
    heard: list[str] = []
    signal = Signal[[str]]("news")
    connection = signal.connect(heard.append)
    again = signal.connect(heard.append)
    connection.disconnect()
    connection()
    signal.emit("a")
    again.disconnect()
    signal.emit("b")
    assert heard == ["a"]


def test_a_listener_that_leaves_while_another_is_told_is_not_called() -> None:
    heard: list[str] = []
    signal = Signal[[str]]("news")
    signal.connect(lambda _: later.disconnect())
    later = signal.connect(heard.append)
    signal.emit("a")
    assert heard == []


def test_a_listener_that_fails_is_logged_and_the_next_is_told(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []
    signal = Signal[[str]]("news")
    signal.connect(lambda text: 1 / 0)
    signal.connect(heard.append)
    with caplog.at_level(logging.ERROR, logger="dialoom.dialog"):
        signal.emit("a")
    assert heard == ["a"]
    assert [record.message for record in caplog.records] == ["signal listener failed"]


def test_a_coroutine_function_is_refused_with_the_way_to_await() -> None:
    async def listen(text: str) -> None: ...

    with pytest.raises(UsageError, match="news calls plain functions, not async ones; to await, iterate"):
        Signal[[str]]("news").connect(listen)
