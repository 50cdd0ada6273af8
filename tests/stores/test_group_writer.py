"""One thread writes for all: in order, together where they wait together, each whole or not at all."""

import logging
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from dialoom.base.errors import ConflictError, StoreError, UsageError
from dialoom.stores import group_writer
from dialoom.stores.group_writer import GroupWriter, Work


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.sqlite"


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with closing(opened):
        opened.execute("CREATE TABLE number (n INTEGER PRIMARY KEY)")
        yield opened


@pytest.fixture
def writer(connection: sqlite3.Connection, path: Path) -> Iterator[GroupWriter]:
    writer = GroupWriter(connection, path, tidy=lambda _: False)
    yield writer
    writer.close()


def insert(number: int) -> Callable[[], Work[int]]:
    def work(connection: sqlite3.Connection) -> int:
        connection.execute("INSERT INTO number VALUES (?)", (number,))
        return number

    return lambda: work


def numbers(connection: sqlite3.Connection) -> list[int]:
    return [number for (number,) in connection.execute("SELECT n FROM number ORDER BY rowid")]


class Hold:
    """Keeps the writer busy from `begun` on, until it is let go."""

    def __init__(self, writer: GroupWriter) -> None:
        self.begun, self.go = Event(), Event()
        self.future: Future[None] = writer.submit(self._plan)
        assert self.begun.wait(60)

    def _plan(self) -> Work[None]:
        self.begun.set()
        assert self.go.wait(60)
        return lambda _: None


def test_what_waits_together_is_one_transaction(writer: GroupWriter, connection: sqlite3.Connection) -> None:
    hold = Hold(writer)
    seen: list[bool] = []

    def look(connection: sqlite3.Connection) -> None:
        seen.append(connection.in_transaction and numbers(connection) == [1, 2])

    waiting = [writer.submit(insert(1)), writer.submit(insert(2)), writer.submit(lambda: look)]
    hold.go.set()
    assert [future.result(60) for future in waiting] == [1, 2, None]
    assert seen == [True]


def test_one_that_cannot_be_written_fails_nobody_else(
    writer: GroupWriter, connection: sqlite3.Connection
) -> None:
    hold = Hold(writer)
    waiting = [writer.submit(insert(number)) for number in (1, 2, 2, 3)]
    hold.go.set()
    assert [type(future.exception(10)) for future in waiting] == [
        type(None),
        type(None),
        StoreError,
        type(None),
    ]
    assert numbers(connection) == [1, 2, 3]


def test_a_file_that_others_hold_is_a_conflict_for_all_who_wait(
    writer: GroupWriter, connection: sqlite3.Connection, path: Path
) -> None:
    connection.execute("PRAGMA busy_timeout = 20")
    hold = Hold(writer)
    waiting = [writer.submit(insert(1)), writer.submit(insert(2))]
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        hold.go.set()
        assert [type(future.exception(10)) for future in waiting] == [ConflictError, ConflictError]
    assert writer.submit(insert(3)).result(60) == 3


def test_a_refusal_after_something_was_written_takes_it_back(
    writer: GroupWriter, connection: sqlite3.Connection
) -> None:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO number VALUES (7)")
        raise UsageError("too late")

    hold = Hold(writer)
    waiting = [writer.submit(insert(1)), writer.submit(lambda: work)]
    hold.go.set()
    assert waiting[0].result(60) == 1
    assert isinstance(waiting[1].exception(10), UsageError)
    assert numbers(connection) == [1]


def test_an_error_of_a_caller_is_the_callers(writer: GroupWriter, connection: sqlite3.Connection) -> None:
    def broken_work(_: sqlite3.Connection) -> None:
        raise ZeroDivisionError

    def broken_plan() -> Work[None]:
        raise KeyError("x")

    assert isinstance(writer.submit(lambda: broken_work).exception(10), ZeroDivisionError)
    assert isinstance(writer.submit(broken_plan).exception(10), KeyError)
    assert writer.submit(insert(1)).result(60) == 1


def test_a_call_withdrawn_before_its_turn_is_not_made(
    writer: GroupWriter, connection: sqlite3.Connection
) -> None:
    hold = Hold(writer)
    withdrawn, kept = writer.submit(insert(1)), writer.submit(insert(2))
    assert withdrawn.cancel()
    hold.go.set()
    assert kept.result(60) == 2
    with pytest.raises(CancelledError):
        withdrawn.result(60)
    assert numbers(connection) == [2]


def test_closing_writes_what_waits_and_then_refuses(connection: sqlite3.Connection, path: Path) -> None:
    writer = GroupWriter(connection, path, tidy=lambda _: False)
    waiting = [writer.submit(insert(number)) for number in range(1000)]
    writer.close()
    writer.close()
    assert [future.result(0) for future in waiting] == numbers(connection) == list(range(1000))
    with pytest.raises(StoreError, match=r"is closed; open it again$"):
        writer.submit(insert(1))


def test_what_waits_has_a_bound(writer: GroupWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_writer, "MAX_WAITING", 2)
    hold = Hold(writer)
    writer.submit(insert(1))
    last = writer.submit(insert(2))
    with pytest.raises(StoreError, match=r"^2 writes to .* wait already; await some of them$"):
        writer.submit(insert(3))
    hold.go.set()
    assert last.result(60) == 2


def test_tidying_goes_on_until_all_is_tidy_and_before_closing(
    connection: sqlite3.Connection, path: Path
) -> None:
    left = [3, 2, 1]

    def tidy(_: sqlite3.Connection) -> bool:
        left.pop()
        return bool(left)

    writer = GroupWriter(connection, path, tidy=tidy)
    writer.close()
    assert left == []


def test_a_busy_writer_tidies_too(
    connection: sqlite3.Connection, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_writer, "_MAX_UNTIDIED", 5)
    monkeypatch.setattr(group_writer, "_IDLE_SECONDS", 60.0)
    tidied = Event()

    def tidy(connection: sqlite3.Connection) -> bool:
        if numbers(connection):
            tidied.set()
        return False

    writer = GroupWriter(connection, path, tidy=tidy)
    for number in range(10):
        writer.submit(insert(number)).result(60)
    assert tidied.wait(60)
    writer.close()


@pytest.mark.parametrize("failure", [sqlite3.OperationalError("disk I/O error"), MemoryError()])
def test_tidying_that_fails_is_logged_and_stops_nothing(
    connection: sqlite3.Connection, path: Path, caplog: pytest.LogCaptureFixture, failure: Exception
) -> None:
    def tidy(connection: sqlite3.Connection) -> bool:
        connection.execute("BEGIN")
        raise failure

    with caplog.at_level(logging.WARNING):
        writer = GroupWriter(connection, path, tidy=tidy)
        assert writer.submit(insert(1)).result(60) == 1
        writer.close()
    assert {record.message for record in caplog.records} == {"tidying up conversations failed"}
    assert numbers(connection) == [1]
