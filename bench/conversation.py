"""What keeping a conversation costs: an append, a page of the list, opening and going on with a long one."""

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench.conversation_dialogs import dialog_rows
from bench.measure import interleaved
from bench.report import Row
from dialoom.conversation import Append, Conversation, Header, TextEntry
from dialoom.conversation.entries import entry_to_json
from dialoom.stores import SqliteConversationStore

PACKAGES: tuple[str, ...] = ("msgspec",)
LONG = 5_000
MANY, FEW = 100_000, 1_000
ROUNDS = 300
ENTRY = TextEntry(
    role="user", content="Grid the wells with 25 m cells, 用克里金法, and show me the contours. " * 4
)

in_turn = partial(interleaved, rounds=ROUNDS, clock=time.perf_counter)


def rows() -> list[Row]:
    """Return wall-clock medians: an append waits for the disk, which no CPU time shows."""
    with tempfile.TemporaryDirectory(prefix="dialoom-bench-") as folder:
        place = Path(folder)
        return [*_appending(place), _listing(place), *dialog_rows(place)]


def _appending(folder: Path) -> list[Row]:
    with _store(folder / "long.sqlite") as (store, run), _bare_table(folder / "bare.sqlite") as bare:
        long, short = _created(run, store, LONG), _created(run, store, 60)
        body = entry_to_json(ENTRY)

        def insert() -> None:
            bare.execute("INSERT INTO record (body) VALUES (?)", (body,))

        append, floor = in_turn(lambda: run(store.append(long, [Append(ENTRY)])), insert)
        opened, floor_opened = in_turn(lambda: run(store.window(long)), lambda: run(store.window(short)))
        return [
            Row(f"append to a conversation of {LONG}", "ms", append, "bare durable insert", floor, must=2.0),
            Row(f"open a conversation of {LONG}", "ms", opened, "one of 60", floor_opened, must=1.5),
        ]


def _listing(folder: Path) -> Row:
    with _store(folder / "many.sqlite") as (many, run), _store(folder / "few.sqlite") as (few, run_few):
        run(_fill(many, MANY))
        run_few(_fill(few, FEW))
        ours, floor = in_turn(lambda: run(many.page()), lambda: run_few(few.page()))
        return Row(f"a page of a list of {MANY}", "ms", ours, f"of {FEW}", floor, must=3.0)


def _created(run: Callable[[Awaitable[object]], object], store: SqliteConversationStore, length: int) -> str:
    conversation = Conversation(records=[Append(ENTRY)] * length)
    run(store.create(conversation))
    return conversation.id


async def _fill(store: SqliteConversationStore, count: int) -> None:
    for start in range(0, count, FEW):
        async with asyncio.TaskGroup() as group:
            for at in range(start, start + FEW):
                header = Header(id=f"c{at}", title=f"wells {at}", created=1e9 + at, updated=1e9 + at)
                group.create_task(store.create(Conversation(header)))


@contextmanager
def _store(path: Path) -> Generator[tuple[SqliteConversationStore, Callable[[Awaitable[object]], object]]]:
    with asyncio.Runner() as runner, SqliteConversationStore(path) as store:

        def run(call: Awaitable[object]) -> object:
            return runner.get_loop().run_until_complete(call)

        yield store, run


@contextmanager
def _bare_table(path: Path) -> Generator[sqlite3.Connection]:
    """The floor: one row in one table, durable, with nothing around it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE record (number INTEGER PRIMARY KEY, body TEXT)")
    yield connection
    connection.close()
