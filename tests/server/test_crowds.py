"""Rows 2 and 4 of the complaints: many tabs write at once, and readers come and go at any moment."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from dialoom.conversation import MemoryConversationStore
from dialoom.llm import MockProvider, TextDelta
from dialoom.llm.mock import Gate
from dialoom.server import Parts, RateLimit
from dialoom.server.workbench import WorkbenchStore
from dialoom.stores import SqliteConversationStore
from tests.server.live import BOUND, Live, copied, following, served

TABS, APPENDS = 8, 200
OFTEN = RateLimit(100_000, 100_000)
PIECES = [f"{word} 井{at} " for at, word in enumerate(["one", "two", "three", "four"] * 25)]
WHOLE = "".join(PIECES)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WorkbenchStore]:
    if request.param == "memory":
        yield MemoryConversationStore()
        return
    with SqliteConversationStore(tmp_path / "c.sqlite") as opened:
        yield opened


@pytest.mark.slow
async def test_eight_tabs_append_two_hundred_times_each_and_nothing_is_lost(
    parts: Parts, store: WorkbenchStore, tmp_path: Path
) -> None:
    async with served(copied(parts, store=store), tmp_path, calls=OFTEN) as live:
        path = f"/api/v1/conversations/{await live.begin()}"

        async def write(tab: int) -> list[int]:
            """Append from one tab, one after another; return where it was told that they stand."""
            places: list[int] = []
            for at in range(APPENDS):
                card = {"type": "Table", "payload": {"id": f"t{tab}-{at}", "title": f"{tab} {at}"}}
                answer = await live.client.post(f"{path}/cards", json=card)
                assert answer.status_code == 201, answer.text
                places.append(answer.json()["index"])
            return places

        told = await asyncio.gather(*map(write, range(TABS)))
        kept = dict[int, str]()
        while len(kept) < TABS * APPENDS:
            before = {"before": min(kept)} if kept else {}
            window = (await live.client.get(f"{path}/entries", params={"limit": 200, **before})).json()
            kept |= {each["index"]: each["card"]["title"] for each in window["entries"]}
    assert sorted(kept) == list(range(TABS * APPENDS))
    for tab, places in enumerate(told):
        assert [kept[place] for place in places] == [f"{tab} {at}" for at in range(APPENDS)]
        assert places == sorted(places)


async def test_who_loads_an_answer_again_at_any_moment_reads_it_whole_and_nothing_twice(
    parts: Parts, provider: MockProvider, store: WorkbenchStore, tmp_path: Path
) -> None:
    gates = [Gate() for _ in PIECES[::4]]
    provider.queue_events(*(step for at, piece in enumerate(PIECES) for step in _paced(at, piece, gates)))
    steps: asyncio.Queue[None] = asyncio.Queue()
    async with (
        served(copied(parts, store=store), tmp_path, calls=OFTEN) as live,
        asyncio.TaskGroup() as group,
    ):
        path = f"/api/v1/conversations/{await live.begin()}"
        await live.client.post(f"{path}/messages", json={"text": "Count"})
        readers = [group.create_task(_read(live, path, random.Random(seed), steps)) for seed in range(6)]
        for gate in gates:
            async with asyncio.timeout(BOUND):
                await gate.reached.wait()
                for _ in range(3):
                    await steps.get()
            gate.opened.set()
        assert [await each for each in readers] == [WHOLE] * len(readers)


def _paced(at: int, piece: str, gates: list[Gate]) -> list[Gate | TextDelta]:
    """Hold the answer at every fourth piece, until readers have done some steps more."""
    return [gates[at // 4], TextDelta(piece)] if at % 4 == 0 else [TextDelta(piece)]


async def _read(live: Live, path: str, rng: random.Random, steps: asyncio.Queue[None]) -> str:
    """Read as a page does: load what is there, follow for a while, load again; until the answer is there."""
    while True:
        window = (await live.client.get(f"{path}/entries")).json()
        steps.put_nowait(None)
        if window["entries"][-1]["role"] == "assistant":
            return window["entries"][-1]["content"]
        text = window["run"]["text"]
        assert WHOLE.startswith(text)
        async with following(live, f"{path}/events?after={window['cursor']}") as events:
            for _ in range(rng.randint(0, 6)):
                steps.put_nowait(None)
                event = await anext(events)
                if event["type"] == "RUN_FINISHED":
                    break
                text += event["delta"] if event["type"] == "TEXT_MESSAGE_CONTENT" else ""
                assert WHOLE.startswith(text)
