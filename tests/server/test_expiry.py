"""Questions nobody waits for any more: shown as expired, refused with a code, told to every open page."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dialoom.base.errors import StoreError, UsageError
from dialoom.conversation import Truncate
from dialoom.llm import MockProvider
from dialoom.server import Parts, ServerSettings, Workbench
from dialoom.server.deadlines import MAX_DEADLINES, Deadlines
from dialoom.testing.clock import ManualClock, settle
from dialoom.tools import Tool, tool
from tests.server.live import BOUND, Events, Live, following, served


@tool(requires_approval=True)
async def erase(name: str) -> str:
    """Erase a file."""
    return f"erased {name}"


@pytest.fixture
def tools() -> list[Tool]:
    return [erase]


@dataclass
class Asked:
    """A conversation in which a run waits with an approval."""

    live: Live
    path: str
    run_id: str
    card: dict[str, Any]
    events: Events

    async def decide(self) -> httpx2.Response:
        address = f"{self.path}/cards/{self.card['cardId']}/actions/decide"
        rev = {"If-Match": str(self.card["rev"])}
        return await self.live.client.post(address, json={"approved": True}, headers=rev)

    async def entries(self) -> list[dict[str, Any]]:
        return (await self.live.client.get(f"{self.path}/entries")).json()["entries"]

    async def told(self) -> list[tuple[str, Any]]:
        """Return what pages are told up to the end of the run: its outcome, and states of the card."""
        found: list[tuple[str, Any]] = []
        for event in await self.events.until("RUN_FINISHED"):
            if event.get("name") == "entry.updated":
                found.append((event["name"], event["value"]["entry"]["card"]["status"]))
            elif event["type"] == "RUN_FINISHED":
                found.append((event["type"], event["outcome"]["type"]))
        return found


@asynccontextmanager
async def asked(parts: Parts, folder: Path, **choices: Any) -> AsyncGenerator[Asked]:
    async with served(parts, folder, **choices) as live:
        conversation = await live.begin()
        path = f"/api/v1/conversations/{conversation}"
        async with following(live, f"{path}/events") as events:
            sent = await live.client.post(f"{path}/messages", json={"text": "Erase a"})
            await events.until("RUN_FINISHED")
            card = (await live.client.get(f"{path}/entries")).json()["entries"][-1]
            yield Asked(live, path, sent.json()["runId"], card, events)


@pytest.fixture
def provider() -> MockProvider:
    return MockProvider().queue_tool_call("c1", "erase", {"name": "a"})


def refused(answer: httpx2.Response) -> tuple[int, str, str]:
    problem = answer.json()
    return answer.status_code, problem["code"], problem["params"]["status"]


EXPIRED = [("entry.updated", "expired"), ("RUN_FINISHED", "cancelled")]


async def test_cancelling_a_run_that_waits_expires_what_it_asked(parts: Parts, tmp_path: Path) -> None:
    async with asked(parts, tmp_path) as one:
        cancelled = await one.live.client.post(f"/api/v1/runs/{one.run_id}/cancel", json={})
        assert (cancelled.json()["status"], cancelled.json()["waiting"]) == ("cancelled", [])
        assert await one.told() == EXPIRED
        late = await one.decide()
        assert refused(late) == (409, "card_decided", "expired")
        assert late.json()["params"]["rev"] == 3
        (card,) = [each for each in await one.entries() if each["kind"] == "Special"]
        assert (card["index"], card["rev"], card["card"]["status"], card["locked"]) == (2, 3, "expired", True)
        again = await one.live.client.post(f"/api/v1/runs/{one.run_id}/cancel", json={})
        assert again.json()["status"] == "cancelled"


async def test_a_question_whose_thread_is_gone_is_expired_when_somebody_looks_at_it_or_answers(
    parts: Parts, tmp_path: Path
) -> None:
    async with asked(parts, tmp_path) as one:
        parts.checkpoints.erase_thread(one.card["cardId"])  # of another thread: nothing happens
        assert (await one.entries())[-1]["card"].get("status") is None
        parts.checkpoints.erase_thread(one.path.rpartition("/")[2])
        assert refused(await one.decide()) == (409, "card_decided", "expired")
        assert await one.told() == EXPIRED


async def test_a_reload_of_the_page_shows_that_a_question_is_lost(parts: Parts, tmp_path: Path) -> None:
    async with asked(parts, tmp_path) as one:
        form = {"type": "Form", "payload": {"id": "f", "title": "T", "inline": True, "fields": []}}
        await one.live.client.post(f"{one.path}/cards", json=form)
        parts.checkpoints.erase_thread(one.path.rpartition("/")[2])
        shown = [(each["type"], each["card"].get("status")) for each in (await one.entries())[2:]]
        assert shown == [("Approval", "expired"), ("Form", None)]  # the form waits for nobody's run


async def test_a_question_taken_back_with_its_messages_is_refused_as_expired(
    parts: Parts, tmp_path: Path
) -> None:
    async with asked(parts, tmp_path) as one:
        await one.live.workbench.store.append(one.path.rpartition("/")[2], [Truncate(1)])
        assert refused(await one.decide()) == (409, "card_decided", "expired")
        other = f"{one.path}/cards/other/actions/decide"
        unknown = await one.live.client.post(other, json={"approved": True}, headers={"If-Match": "2"})
        assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")


async def test_an_approval_that_nobody_decides_in_time_expires(
    parts: Parts, clock: ManualClock, tmp_path: Path
) -> None:
    async with asked(parts, tmp_path, approval_seconds=60.0) as one:
        assert one.card["card"]["expiresAt"] == "2023-11-14T22:14:20.000Z"
        await one.live.clock.advance(59)
        await clock.advance(59)
        assert (await one.entries())[-1]["card"].get("status") is None
        await clock.advance(1)
        await one.live.clock.advance(1)
        assert await one.told() == EXPIRED
        assert refused(await one.decide()) == (409, "card_decided", "expired")


async def test_an_approval_decided_in_time_goes_on(
    parts: Parts, provider: MockProvider, clock: ManualClock, tmp_path: Path
) -> None:
    provider.queue_text("Done.")
    async with asked(parts, tmp_path, approval_seconds=60.0) as one:
        await clock.advance(59)
        assert (await one.decide()).status_code == 200
        assert await one.told() == [("entry.updated", "approved"), ("RUN_FINISHED", "success")]
        asking = (await one.live.client.get(f"/api/v1/runs/{one.run_id}")).json()
        assert (asking["status"], asking["waiting"]) == ("finished", [])  # another run went on
        await clock.advance(60)
        await one.live.clock.advance(60)
        assert (await one.entries())[-1]["content"] == "Done."


def test_a_time_limit_that_is_none_is_refused(settings: ServerSettings, parts: Parts) -> None:
    wrong = ServerSettings(token=settings.token, data=settings.data, approval_seconds=0.0)
    with pytest.raises(UsageError, match=r"an approval cannot wait 0\.0 s; give more than 0"):
        Workbench(wrong, parts)


async def test_deadlines_come_in_their_order_and_a_failure_stops_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, come = ManualClock(start=0.0), list[tuple[str, float]]()
    deadlines = Deadlines(clock)

    async def note(name: str) -> None:
        come.append((name, clock.now()))
        if name == "fails":
            raise StoreError("the disk is full; free some space")

    async with asyncio.timeout(BOUND), asyncio.TaskGroup() as group:
        watching = group.create_task(deadlines.watch(note))
        await settle()
        deadlines.put("late", 10_000.0)
        deadlines.put("fails", 20.0)
        deadlines.put("moved", 30.0)
        deadlines.put("moved", 40.0)
        deadlines.put("dropped", 5.0)
        deadlines.put("dropped", None)
        await settle()
        await clock.advance(20_000)
        watching.cancel()
    assert come == [("fails", 20.0), ("moved", 40.0), ("late", 10_000.0)]
    assert [each.message for each in caplog.records] == ["an overdue question could not be closed"]


async def test_deadlines_are_bounded() -> None:
    clock, come = ManualClock(start=0.0), list[str]()
    deadlines = Deadlines(clock)
    for at in range(MAX_DEADLINES + 5):
        deadlines.put(f"{at}", 1.0)

    async def note(name: str) -> None:
        come.append(name)

    async with asyncio.timeout(BOUND), asyncio.TaskGroup() as group:
        watching = group.create_task(deadlines.watch(note))
        await settle()
        await clock.advance(2)
        watching.cancel()
    assert len(come) == MAX_DEADLINES
