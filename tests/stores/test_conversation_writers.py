"""Threads and processes append at once: nothing is lost, and each writer's order is kept."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from dialoom.base.errors import ConflictError
from dialoom.conversation import Append, Conversation, HeaderChange, TextEntry
from dialoom.stores import SqliteConversationStore, YamlConversationStore, folder_lock
from tests.crash.conversation_kills import read_texts, release_writers, start_writer
from tests.crash.conversation_writer import WRITERS, open_store, texts_of

CALLS = {"sqlite": 25, "yaml": 4}
THREADS, PROCESSES = 8, 4
Store = SqliteConversationStore | YamlConversationStore


def write(store: Store, conversation_id: str, *, name: str, calls: int, start: Barrier) -> None:
    """Append from a thread with an event loop of its own."""

    async def append() -> None:
        for number in range(calls):
            texts = texts_of(number, writer="t", at=name)
            await store.append(conversation_id, [Append(TextEntry(role="user", content=t)) for t in texts])

    start.wait(30)
    asyncio.run(append())


@pytest.mark.slow
@pytest.mark.parametrize("kind", CALLS)
def test_eight_threads_and_four_processes_append_at_once(kind: str, tmp_path: Path) -> None:
    conversation, calls = Conversation(), CALLS[kind]
    start = Barrier(THREADS + 1)
    with open_store(kind, tmp_path) as store, ThreadPoolExecutor(THREADS) as threads:
        asyncio.run(store.create(conversation))
        children = [
            start_writer([kind, str(tmp_path), conversation.id, f"process{at}", str(calls)])
            for at in range(PROCESSES)
        ]
        waiting = [
            threads.submit(write, store, conversation.id, name=f"thread{at}", calls=calls, start=start)
            for at in range(THREADS)
        ]
        release_writers(*children)
        start.wait(30)
        for future in waiting:
            future.result(60)
        said = [child.communicate(timeout=60)[0].splitlines() for child in children]
    assert [child.returncode for child in children] == [0] * PROCESSES
    assert [sorted(lines) for lines in said] == [sorted(WRITERS * calls)] * PROCESSES
    texts = read_texts(kind, tmp_path, conversation.id)
    names = [(f"process{at}", writer) for at in range(PROCESSES) for writer in WRITERS]
    names += [(f"thread{at}", "t") for at in range(THREADS)]
    for at, writer in names:
        own = [text for text in texts if text.startswith(f"{at} {writer} ")]
        assert own == [text for number in range(calls) for text in texts_of(number, writer=writer, at=at)]
    assert len(texts) == 2 * calls * len(names)


@pytest.mark.parametrize("kind", CALLS)
async def test_calls_of_one_task_happen_in_the_order_they_were_made(kind: str, tmp_path: Path) -> None:
    conversation = Conversation()
    with open_store(kind, tmp_path) as store:
        await store.create(conversation)
        entries = [TextEntry(role="user", content=str(at)) for at in range(20)]
        calls = [store.append(conversation.id, [Append(entry)]) for entry in entries]
        assert await asyncio.gather(*calls) == list(range(1, 21))
        assert (await store.load(conversation.id)).entries == tuple(entries)


@pytest.mark.parametrize("kind", CALLS)
async def test_two_stores_at_one_place_see_what_the_other_did(kind: str, tmp_path: Path) -> None:
    conversation = Conversation()
    once = Append(TextEntry(role="user", content="once"), "key")
    with open_store(kind, tmp_path) as one, open_store(kind, tmp_path) as other:
        await one.create(conversation)
        assert await other.append(conversation.id, [once]) == 1
        assert await one.append(conversation.id, [once]) == 1
        await one.update(conversation.id, HeaderChange(title="Wells"))
        assert (await other.page(query="wells")).headers == (await one.page()).headers
        await other.delete(conversation.id)
        assert (await one.page()).headers == ()


async def test_a_folder_that_stays_locked_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_lock, "WAIT_SECONDS", 0.02)
    conversation = Conversation()
    with YamlConversationStore(tmp_path) as store:
        await store.create(conversation)
        with (
            folder_lock.locked(tmp_path),
            pytest.raises(ConflictError, match=r"is being written by another process; try again$"),
        ):
            await store.append(conversation.id, [Append(TextEntry(role="user", content="x"))])
        assert await store.append(conversation.id, [Append(TextEntry(role="user", content="y"))]) == 1
