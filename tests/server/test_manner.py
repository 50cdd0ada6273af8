"""Saying something behind an older entry, to another model, or while an answer is under way; and tags."""

import asyncio
from pathlib import Path

import httpx2
import pytest
from starlette.testclient import TestClient

from dialoom.dialog import Center, Stores
from dialoom.llm import MockProvider, TextDelta
from dialoom.llm.mock import Gate
from dialoom.server import Parts, ServerSettings, Workbench, tags
from tests.server.conftest import TOKEN, URL
from tests.server.live import Events, Live, copied, following, served


async def said(live: Live, conversation: str) -> list[str]:
    entries = (await live.client.get(f"/api/v1/conversations/{conversation}/entries")).json()["entries"]
    return [each["content"] for each in entries]


async def say(live: Live, path: str, events: Events, text: str, **manner: object) -> httpx2.Response:
    """Say something and wait for the end of an answer here."""
    answer = await live.client.post(f"{path}/messages", json={"text": text, **manner})
    await events.until("RUN_FINISHED")
    return answer


async def test_what_is_said_behind_an_older_entry_begins_a_branch(
    parts: Parts, provider: MockProvider, tmp_path: Path
) -> None:
    provider.queue_text("one").queue_text("two").queue_text("three").queue_text("four")
    async with served(parts, tmp_path) as live:
        conversation = await live.begin()
        path = f"/api/v1/conversations/{conversation}"
        async with following(live, f"{path}/events") as events:
            await say(live, path, events, "First", parent=-1)
            here = await say(live, path, events, "Second", parent=1)
        assert (here.json()["index"], here.json()["conversationId"]) == (2, conversation)
        branched = (await live.client.post(f"{path}/messages", json={"text": "Other", "parent": 1})).json()
        branch = branched["conversationId"]
        origin = f"/api/v1/conversations/{branch}/events?after={live.workbench.hub.epoch}.0"
        async with following(live, origin) as events:
            await events.until("RUN_FINISHED")
        assert branched["index"] == 2
        assert await said(live, conversation) == ["First", "one", "Second", "two"]
        assert await said(live, branch) == ["First", "one", "Other", "three"]
        assert (await live.client.get(f"/api/v1/conversations/{branch}")).json()["branchFrom"] == conversation
        late = await live.client.post(f"{path}/messages", json={"text": "Too far", "parent": 4})
        assert (late.status_code, late.json()["code"]) == (422, "usage")
        assert "there is no entry 4 yet" in late.json()["detail"]


async def test_a_message_names_the_model_that_answers_from_then_on(
    parts: Parts, provider: MockProvider, tmp_path: Path
) -> None:
    other = MockProvider(id="other", model="clever")

    def center(stores: Stores) -> Center:
        return Center(stores).add_provider(provider).add_provider(other)

    other.queue_text("I am clever").queue_text("Still")
    async with served(copied(parts, center=center), tmp_path) as live:
        conversation = await live.begin()
        path = f"/api/v1/conversations/{conversation}"
        async with following(live, f"{path}/events") as events:
            await say(live, path, events, "Who?", model="other:clever")
            await say(live, path, events, "And now?")
        assert await said(live, conversation) == ["Who?", "I am clever", "And now?", "Still"]
        settings = (await live.client.get(path)).json()["settings"]
        assert settings == {"provider": "other", "model": "clever"}
        unknown = await live.client.post(f"{path}/messages", json={"text": "x", "model": "no:such"})
        assert (unknown.status_code, unknown.json()["code"]) == (404, "model_not_found")


async def test_a_message_can_wait_for_the_answer_under_way(
    parts: Parts, provider: MockProvider, tmp_path: Path
) -> None:
    gate = Gate()
    provider.queue_events(gate, TextDelta("one")).queue_text("two").queue_text("three")
    async with served(parts, tmp_path) as live:
        conversation = await live.begin()
        path = f"/api/v1/conversations/{conversation}"
        post = live.client.post
        async with following(live, f"{path}/events") as events, asyncio.TaskGroup() as group:
            await post(f"{path}/messages", json={"text": "First"})
            await gate.reached.wait()
            second = {"text": "Second", "policy": "queue", "key": "k2"}
            waiting = group.create_task(post(f"{path}/messages", json=second))
            await events.until("run.queued")
            again = group.create_task(post(f"{path}/messages", json=second))
            third = group.create_task(post(f"{path}/messages", json={"text": "Third", "policy": "queue"}))
            refused = await post(f"{path}/messages", json={"text": "Now"})
            assert (refused.status_code, refused.json()["code"]) == (409, "run_active")
            gate.opened.set()
            for _ in range(3):
                await events.until("RUN_FINISHED")
        assert (await waiting).json() == (await again).json()
        assert [(await each).json()["index"] for each in (waiting, third)] == [2, 4]
        assert await said(live, conversation) == ["First", "one", "Second", "two", "Third", "three"]


async def test_a_message_can_take_the_place_of_the_answer_under_way(
    parts: Parts, provider: MockProvider, tmp_path: Path
) -> None:
    provider.queue_events(TextDelta("The first half"), gate := Gate()).queue_text("two")
    async with served(parts, tmp_path) as live:
        conversation = await live.begin()
        path = f"/api/v1/conversations/{conversation}"
        async with following(live, f"{path}/events") as events:
            await live.client.post(f"{path}/messages", json={"text": "First"})
            await gate.reached.wait()
            await say(live, path, events, "Stop, second", policy="interrupt")
            await events.until("RUN_FINISHED")
        assert await said(live, conversation) == ["First", "The first half", "Stop, second", "two"]


async def test_only_so_many_messages_wait(
    parts: Parts, provider: MockProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialoom.server.talks.MAX_QUEUED", 1)
    gate = Gate()
    provider.queue_events(gate, TextDelta("one")).queue_text("two")
    async with served(parts, tmp_path) as live:
        path = f"/api/v1/conversations/{await live.begin()}"
        async with following(live, f"{path}/events") as events, asyncio.TaskGroup() as group:
            await live.client.post(f"{path}/messages", json={"text": "First"})
            await gate.reached.wait()
            queued = {"text": "Second", "policy": "queue"}
            group.create_task(live.client.post(f"{path}/messages", json=queued))
            await events.until("run.queued")
            assert (await live.client.post(f"{path}/messages", json=queued)).status_code == 409
            gate.opened.set()
            await events.until("RUN_FINISHED")
            await events.until("RUN_FINISHED")


def test_conversations_are_listed_by_their_tags(client: TestClient, begin) -> None:
    wells = begin(title="Wells", tags=["work", " work ", "wells"])
    begin(title="Cake")
    grid = begin(title="Grid", tags=["work"])
    listed = client.get("/api/v1/conversations", params={"tag": "work"}).json()
    assert {each["id"]: each["tags"] for each in listed["items"]} == {
        wells: ["work", "wells"],
        grid: ["work"],
    }
    first = client.get("/api/v1/conversations", params={"tag": "work", "limit": 1}).json()
    rest = client.get("/api/v1/conversations", params={"tag": "work", "cursor": first["cursor"]}).json()
    assert [each["id"] for page in (first, rest) for each in page["items"]] == [
        each["id"] for each in listed["items"]
    ]
    assert rest["cursor"] is None
    both = client.get("/api/v1/conversations", params={"tag": "work", "q": "grid"}).json()["items"]
    assert [each["id"] for each in both] == [grid]
    path = f"/api/v1/conversations/{wells}"
    client.patch(path, json={"settings": {"system": "Be short."}})
    changed = client.patch(path, json={"tags": ["done"], "title": "Old wells"}).json()
    assert (changed["tags"], changed["title"], changed["settings"]) == (
        ["done"], "Old wells", {"system": "Be short."},
    )  # fmt: skip
    assert client.patch(path, json={"settings": {"system": "Be brief."}}).json()["tags"] == ["done"]
    assert client.patch(path, json={"tags": []}).json()["tags"] == []
    assert client.get("/api/v1/conversations", params={"tag": "wells"}).json()["items"] == []
    for wrong in (["x" * 61], [""], ["t"] * 21):
        assert client.patch(path, json={"tags": wrong}).status_code == 422


def test_a_search_for_a_rare_tag_goes_on_page_by_page(
    settings: ServerSettings, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tags, "MAX_LOOKED_AT", 1)
    monkeypatch.setattr(tags, "MAX_PAGE", 1)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(Workbench(settings, parts).app, base_url=URL, headers=headers) as client:
        rare = client.post("/api/v1/conversations", json={"tags": ["rare"]}).json()["id"]
        for _ in range(2):
            client.post("/api/v1/conversations", json={})
        found, cursor, pages = list[str](), "", 0
        while cursor is not None:
            asked = {"tag": "rare", **({"cursor": cursor} if cursor else {})}
            page = client.get("/api/v1/conversations", params=asked).json()
            found += [each["id"] for each in page["items"]]
            cursor, pages = page["cursor"], pages + 1
    assert (found, pages) == ([rare], 3)
