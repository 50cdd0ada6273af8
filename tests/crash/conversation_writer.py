"""A program to be killed: it appends to one conversation and says what was acknowledged.

`python -m tests.crash.conversation_writer KIND PLACE ID ROUND [CALLS]` prints `ready` when the store is open,
waits for a line, then prints the name of a writer for each of its appends that returned. Two writers append
at once, two entries a call; each makes CALLS calls, or goes on for ever.
"""

import asyncio
import sys
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from dialoom.conversation import Append, TextEntry
from dialoom.conversation.store import ListedConversationStore
from dialoom.stores import SqliteConversationStore, YamlConversationStore

WRITERS = ("a", "b")


def open_store(kind: str, place: Path) -> SqliteConversationStore | YamlConversationStore:
    return SqliteConversationStore(place / "c.sqlite") if kind == "sqlite" else YamlConversationStore(place)


def texts_of(number: int, *, writer: str, at: str) -> list[str]:
    """What one call says: two entries, so that half a call could be seen."""
    return [f"{at} {writer} {number} {half}" for half in ("one", "two")]


async def write(
    store: ListedConversationStore, conversation_id: str, *, writer: str, at: str, numbers: Iterable[int]
) -> None:
    for number in numbers:
        texts = texts_of(number, writer=writer, at=at)
        pair = [Append(TextEntry(role="user", content=text), f"key of {text}") for text in texts]
        await store.append(conversation_id, pair)
        print(writer, flush=True)


async def main(kind: str, place: str, conversation_id: str, at: str, calls: str = "") -> None:
    with open_store(kind, Path(place)) as store:
        print("ready", flush=True)
        sys.stdin.readline()
        async with asyncio.TaskGroup() as group:
            for writer in WRITERS:
                numbers = range(int(calls)) if calls else count()
                group.create_task(write(store, conversation_id, writer=writer, at=at, numbers=numbers))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
