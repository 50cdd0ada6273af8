"""Going on from where a run stood, in a conversation of its own: also behind, before and at a question."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dialoom.llm import MockProvider
from dialoom.server import Parts
from dialoom.tools import Tool, tool
from tests.server.live import Live, following, served

QUESTION, CALL = ("user", "Erase a"), ("assistant", "")
ASKED, APPROVED, DENIED = ("Approval", "pending"), ("Approval", "approved"), ("Approval", "declined")
ERASED, DONE = ("tool", "erased a"), ("assistant", "Done.")


@dataclass
class Talk:
    """A conversation of a running server, as a page sees it."""

    live: Live
    id: str

    @property
    def path(self) -> str:
        return f"/api/v1/conversations/{self.id}"

    async def entries(self) -> list[dict[str, Any]]:
        return (await self.live.client.get(f"{self.path}/entries")).json()["entries"]

    async def shown(self) -> list[tuple[str, str]]:
        """Return what stands there: who said what, and how each card is decided."""
        return [
            (each["type"], each["card"].get("status") or "pending")
            if each["kind"] == "Special"
            else (each["role"], each["content"])
            for each in await self.entries()
        ]

    async def checkpoints(self) -> list[dict[str, Any]]:
        """Return where its run stood, oldest first."""
        return (await self.live.client.get(f"{self.path}/checkpoints")).json()["items"][::-1]

    async def ends(self, path: str, body: dict[str, Any], **headers: str) -> httpx2.Response:
        """Make a call that begins a run, and wait for its end."""
        async with following(self.live, f"{self.path}/events") as events:
            answer = await self.live.client.post(self.path + path, json=body, headers=headers)
            assert answer.status_code in {200, 202}, answer.text
            await events.until("RUN_FINISHED")
        return answer

    async def decide(self, *, approved: bool = True) -> None:
        card = [each for each in await self.entries() if each["kind"] == "Special"][-1]
        path = f"/cards/{card['cardId']}/actions/decide"
        await self.ends(path, {"approved": approved}, **{"If-Match": str(card["rev"])})

    async def forked(self, checkpoint: dict[str, Any]) -> "Talk":
        answer = await self.live.client.post(f"/api/v1/checkpoints/{checkpoint['id']}/fork", json={})
        assert answer.status_code == 201, answer.text
        return Talk(self.live, answer.json()["conversationId"])


@pytest.fixture
def erased() -> list[str]:
    return []


@pytest.fixture
def tools(erased: list[str]) -> list[Tool]:
    @tool(requires_approval=True)
    async def erase(name: str) -> str:
        """Erase a file."""
        erased.append(name)
        return f"erased {name}"

    return [erase]


@pytest.fixture
def provider() -> MockProvider:
    return MockProvider().queue_tool_call("c1", "erase", {"name": "a"}).queue_text("Done.")


@asynccontextmanager
async def asked(parts: Parts, folder: Path) -> AsyncGenerator[Talk]:
    """Have a run wait for an approval."""
    async with served(parts, folder) as live:
        talk = Talk(live, await live.begin())
        await talk.ends("/messages", {"text": "Erase a"})
        yield talk


async def test_a_fork_of_a_finished_run_has_all_of_it_and_takes_the_next_message(
    parts: Parts, provider: MockProvider, erased: list[str], tmp_path: Path
) -> None:
    async with asked(parts, tmp_path) as talk:
        await talk.decide()
        fork = await talk.forked((await talk.checkpoints())[-1])
        whole = [QUESTION, CALL, APPROVED, ERASED, DONE]
        assert await fork.shown() == whole == await talk.shown()
        assert [each["next"] for each in await fork.checkpoints()] == [[]]
        provider.queue_text("You are welcome.")
        await fork.ends("/messages", {"text": "Thanks"})
        assert (await fork.shown())[5:] == [("user", "Thanks"), ("assistant", "You are welcome.")]
        told = provider.requests[-1].messages
        assert [each.content for message in told for each in message.tool_results] == ["erased a"]
        assert (await talk.shown(), erased) == (whole, ["a"])


async def test_a_fork_of_a_waiting_run_is_answered_there_and_the_original_on_its_own(
    parts: Parts, provider: MockProvider, erased: list[str], tmp_path: Path
) -> None:
    async with asked(parts, tmp_path) as talk:
        fork = await talk.forked((await talk.checkpoints())[-1])
        assert await fork.shown() == [QUESTION, CALL, ASKED]
        assert (await fork.entries())[-1]["locked"] is False
        await fork.decide()
        assert await fork.shown() == [QUESTION, CALL, APPROVED, ERASED, DONE]
        assert (await talk.shown(), erased) == ([QUESTION, CALL, ASKED], ["a"])
        provider.queue_text("Kept.")
        await talk.decide(approved=False)
        assert (await talk.shown())[2] == DENIED
        assert ((await talk.shown())[-1], erased) == (("assistant", "Kept."), ["a"])


async def test_a_fork_of_any_step_is_gone_on_with_to_the_same_end(
    parts: Parts, provider: MockProvider, erased: list[str], tmp_path: Path
) -> None:
    async with asked(parts, tmp_path) as talk:
        await talk.decide()
        seen, results = await gone_on_with(talk, provider, approved=True)
        assert seen == [
            [QUESTION],
            [QUESTION, CALL],
            [QUESTION, CALL, ASKED],
            [QUESTION, CALL, APPROVED],  # the answer came
            [QUESTION, CALL, APPROVED],  # the call began
            [QUESTION, CALL, APPROVED, ERASED],
        ]
        begun = results.pop(4)
        assert '"in_doubt"' in begun[1]  # what has an effect, and may have had it, is not done again
        assert (results, erased) == ([ERASED] * 5, ["a"] * 5)


async def test_a_fork_of_any_step_of_a_call_that_was_declined_is_gone_on_with_to_the_same_end(
    parts: Parts, provider: MockProvider, erased: list[str], tmp_path: Path
) -> None:
    async with asked(parts, tmp_path) as talk:
        await talk.decide(approved=False)
        seen, results = await gone_on_with(talk, provider, approved=False)
        declined = (await talk.shown())[3]
        assert (seen[:3], seen[-1]) == (
            [[QUESTION], [QUESTION, CALL], [QUESTION, CALL, ASKED]],
            [QUESTION, CALL, DENIED, declined],
        )
        assert all(each == [QUESTION, CALL, DENIED] for each in seen[3:-1])
        assert '"denied"' in declined[1]
        assert (set(results), len(results), erased) == ({declined}, len(seen), [])


async def gone_on_with(
    talk: Talk, provider: MockProvider, *, approved: bool
) -> tuple[list[list[tuple[str, str]]], list[tuple[str, str]]]:
    """Go on from every checkpoint but the last, each in a fork; return what those showed, and the results."""
    decided = APPROVED if approved else DENIED
    seen, results = list[list[tuple[str, str]]](), list[tuple[str, str]]()
    for checkpoint in (await talk.checkpoints())[:-1]:
        fork = await talk.forked(checkpoint)
        seen.append(await fork.shown())
        if seen[-1] == [QUESTION]:
            provider.queue_tool_call("c1", "erase", {"name": "a"})
        if len(seen[-1]) < 3:
            await fork.ends("/resume", {})
        provider.queue_text("Done.")
        await (fork.decide(approved=approved) if decided not in seen[-1] else fork.ends("/resume", {}))
        *before, result, answer = await fork.shown()
        assert (before, answer) == ([QUESTION, CALL, decided], DONE)
        results.append(result)
    return seen, results
