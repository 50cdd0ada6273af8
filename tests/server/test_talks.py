"""The dialogs of a server: many, at once, and when things go wrong; and a run as its events tell it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dialoom.base.errors import StoreError
from dialoom.conversation import (
    Append,
    CardEntry,
    Conversation,
    Entry,
    Header,
    MemoryConversationStore,
    Record,
    TextEntry,
)
from dialoom.conversation.cards import DEFAULT_CARDS, FormRegistry
from dialoom.dialog import (
    Center,
    DialogEvent,
    MessageAppended,
    Noticed,
    RunFailed,
    RunFinished,
    RunStarted,
    Stores,
    StreamBegan,
    StreamDelta,
    StreamReasoning,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
)
from dialoom.graph import MemoryCheckpointStore
from dialoom.llm import MockProvider, TextDelta
from dialoom.llm.messages import ToolCall
from dialoom.llm.mock import Gate
from dialoom.server import Parts, tales, talks
from dialoom.server.hub import EventHub, Subscription
from dialoom.server.problems import problem_of
from dialoom.server.run_tale import RunTale
from dialoom.server.shown import Shelf
from dialoom.server.talks import Talks
from dialoom.server.watched import WatchedStore
from dialoom.tools import Tool, tool
from tests.server.live import BOUND, following, served


def talking(
    provider: MockProvider,
    store: MemoryConversationStore | None = None,
    checkpoints: MemoryCheckpointStore | None = None,
    *tools: Tool,
) -> tuple[Talks, EventHub]:
    hub = EventHub()
    kept = store or MemoryConversationStore()
    shelf = Shelf(kept, DEFAULT_CARDS, FormRegistry(), lambda _id: None)
    watched = WatchedStore(kept, hub, shelf)
    center = Center(Stores(watched, checkpoints or MemoryCheckpointStore())).add_provider(provider)
    for each in tools:
        center.add_tool(each)
    return Talks(center, watched, hub), hub


async def test_dialogs_that_rested_longest_are_let_go_and_running_ones_are_not(
    provider: MockProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talks, "MAX_OPEN", 2)
    store = MemoryConversationStore()
    for name in "abcd":
        await store.create(Conversation(Header(id=name, created=1, updated=1)))
    desk, _ = talking(provider, store)
    gate = Gate()
    provider.queue_events(gate)
    await desk.send("a", "Go on.", attachments=[], key="")
    await gate.reached.wait()
    first = await desk.open("b")
    for name in "cd":
        await desk.open(name)
    assert (desk.runs.running("a") is not None, first.is_closed) == (True, True)
    assert (await desk.open("b")) is not first
    await desk.cancel(desk.runs.running("a") or "")
    await (await desk.open("a")).aclose()
    assert desk.runs.going == 0
    await desk.aclose()


async def test_runs_that_are_over_are_remembered_up_to_a_bound(
    provider: MockProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tales, "MAX_REMEMBERED", 2)
    monkeypatch.setattr(talks, "MAX_KEYS", 2)
    store = MemoryConversationStore()
    desk, hub = talking(provider, store)
    runs: list[str] = []
    for name in "abc":
        await store.create(Conversation(Header(id=name, created=1, updated=1)))
        provider.queue_text("ok")
        follower = hub.subscribe([name])
        runs.append((await desk.send(name, "Hi", attachments=[], key="k"))[1])
        while b"RUN_FINISHED" not in b"".join(await follower.wait()):
            pass
        follower.close()
    assert problem_of(await _failure(lambda: desk.runs.find(runs[0]))).status == 404
    assert (desk.runs.newest("a"), desk.runs.newest("c")) == (None, runs[2])
    assert desk.runs.find(runs[2]).status == "finished"
    provider.queue_text("again")
    assert (await desk.send("a", "Hi", attachments=[], key="k"))[1] != runs[0]  # its key is forgotten too
    await desk.aclose()


async def _failure(call: Any) -> Exception:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - which one is looked at by the caller
        call()
    return raised.value


async def test_a_change_that_cannot_be_told_is_kept_and_pages_load_again(
    provider: MockProvider, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(MemoryConversationStore):
        broken = False

        async def header(self, conversation_id: str) -> Header:
            if self.broken:
                raise StoreError("the disk is gone")
            return await super().header(conversation_id)

    store = Failing()
    await store.create(Conversation(Header(id="a", created=1, updated=1)))
    hub = EventHub()
    watched = WatchedStore(store, hub, Shelf(store, DEFAULT_CARDS, FormRegistry(), lambda _id: None))
    follower = hub.subscribe(["a"])
    store.broken = True
    assert await watched.append("a", [Append(TextEntry(role="user", content="kept"))]) == 1
    store.broken = False
    assert b"resync" in b"".join(follower.frames())
    assert [each.message for each in caplog.records] == ["a change could not be told"]
    assert len((await watched.load("a")).entries) == 1
    follower.close()


class Full(MemoryConversationStore):
    """A store whose disk is full when a test says so."""

    is_full = False

    async def append(self, conversation_id: str, records: Sequence[Record]) -> int:
        if self.is_full:
            raise StoreError("the disk is full; free some space, then try again")
        return await super().append(conversation_id, records)


async def test_what_could_not_be_stored_was_not_said_and_can_be_sent_again(provider: MockProvider) -> None:
    provider.queue_text("lost").queue_text("Hello")
    store = Full()
    await store.create(Conversation(Header(id="a", created=1, updated=1, title="t")))
    desk, hub = talking(provider, store)
    store.is_full = True
    with pytest.raises(StoreError, match="the disk is full"):
        await desk.send("a", "Hi", attachments=[], key="k1")
    with pytest.raises(StoreError, match="the disk is full"):
        await desk.show("a", CardEntry(type="Error", payload="type: Error\n"))
    store.is_full = False
    follower = hub.subscribe(["a"])
    index, *_ = await desk.send("a", "Hi", attachments=[], key="k1")
    async with asyncio.timeout(60):
        told = b""
        while b"RUN_FINISHED" not in told:
            told += b"".join(await follower.wait())
    follower.close()
    said = [each.content for each in (await store.load("a")).entries if isinstance(each, TextEntry)]
    assert (index, said[0], len(said)) == (0, "Hi", 2)
    await desk.aclose()


async def test_an_approval_asked_by_one_program_is_decided_in_another(provider: MockProvider) -> None:
    @tool(requires_approval=True)
    async def erase(name: str) -> str:
        """Erase a file."""
        return f"erased {name}"

    store, checkpoints = MemoryConversationStore(), MemoryCheckpointStore()
    await store.create(Conversation(Header(id="a", created=1, updated=1)))
    one, hub = talking(provider, store, checkpoints, erase)
    other, other_hub = talking(MockProvider().queue_text("Done."), store, checkpoints, erase)
    await other.open("a")  # before anything is said
    provider.queue_tool_call("c1", "erase", {"name": "x"})
    follower, second = hub.subscribe(["a"]), other_hub.subscribe(["a"])
    await one.send("a", "Erase x", attachments=[], key="")
    await told_end(follower)
    (card_id,) = (await one.open("a")).waiting
    await other.act("a", card_id, "decide", {"approved": True})
    await told_end(second)
    assert (await one.open("a")).waiting == ()
    assert one.runs.current("a") is None
    texts = [each for each in (await store.load("a")).entries if isinstance(each, TextEntry)]
    assert [each.content for each in texts] == ["Erase x", "", "erased x", "Done."]
    provider.queue_text("Yes?")
    assert (await one.send("a", "Thanks", attachments=[], key=""))[0] == 6
    await told_end(follower)
    follower.close()
    second.close()
    await one.aclose()
    await other.aclose()


async def told_end(follower: Subscription) -> None:
    """Follow until a run ends."""
    async with asyncio.timeout(BOUND):
        while b"RUN_FINISHED" not in b"".join(await follower.wait()):
            pass


def test_what_nobody_foresaw_is_told_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    problem = problem_of(RuntimeError("the password is hunter2"))
    assert (problem.status, problem.code) == (500, "internal")
    assert "hunter2" not in str(problem)
    assert caplog.records[0].exc_info is not None


async def test_calls_at_once_on_one_conversation_keep_their_order(
    parts: Parts, provider: MockProvider, tmp_path: Path
) -> None:
    gate = Gate()
    provider.queue_events(gate, TextDelta("done"))
    async with served(parts, tmp_path) as live:
        conversation = await live.begin()
        path = f"/api/v1/conversations/{conversation}"
        async with following(live, f"{path}/events") as events:
            sent = await asyncio.gather(
                *(live.client.post(f"{path}/messages", json={"text": f"{at}"}) for at in range(8))
            )
            assert sorted(each.status_code for each in sent) == [202, *[409] * 7]
            await gate.reached.wait()
            for call in ("resume", "branch"):
                refused = await live.client.post(f"{path}/{call}", json={"at": 0})
                assert refused.json()["code"] == "run_active"
            shown = await live.client.post(f"{path}/cards", json={"type": "Table", "payload": {"title": "T"}})
            assert shown.json()["code"] == "run_active"
            renamed = await live.client.patch(path, json={"title": "While it runs"})
            assert renamed.json()["title"] == "While it runs"
            mode = await live.client.patch(path, json={"workflowMode": "guided"})
            assert mode.json()["code"] == "run_active"
            gate.opened.set()
            await events.until("RUN_FINISHED")
            provider.queue_text("again")
            assert (await live.client.patch(path, json={"workflowMode": "guided"})).status_code == 200
            await live.client.post(f"{path}/messages", json={"text": "And now?"})
            seen = await events.until("RUN_FINISHED")
        headers = [each["value"] for each in seen if each.get("name") == "conversation.updated"]
        assert headers[-1]["workflowMode"] == "guided"
        assert len(provider.requests) == 2


def told(*events: Any, entries: tuple[Entry, ...] = ()) -> tuple[list[dict[str, Any]], RunTale]:
    tale = RunTale("r", "c", now=lambda: "now", entry=lambda index: entries[index])
    numbered: list[DialogEvent] = [
        kind(run_id="r", seq=at + 1, **fields) for at, (kind, fields) in enumerate(events)
    ]
    return [dict(each) for event in numbered for each in tale.tell(event)], tale


def test_a_round_of_tools_is_told_call_by_call() -> None:
    calls = (ToolCall(id="c1", name="add", arguments={}, raw="{}"), ToolCall(id="c2", name="add", raw="{"))
    entries = (
        TextEntry(role="assistant", content="", tool_calls=calls),
        TextEntry(role="tool", content="3", tool_call_id="c1"),
        TextEntry(role="tool", content="no", tool_call_id="c2", is_error=True),
        TextEntry(role="tool", content="stray"),
    )
    events, tale = told(
        (RunStarted, {"dialog_id": "c"}),
        (StreamBegan, {}),
        (MessageAppended, {"index": 0}),
        (ToolStarted, {"call_id": "c1", "tool": "add"}),
        (ToolStarted, {"call_id": "c9", "tool": "add"}),
        (ToolProgressed, {"call_id": "c1", "tool": "add", "value": 0.5}),
        (ToolFinished, {"call_id": "c1", "tool": "add"}),
        (ToolFinished, {"call_id": "c8", "tool": "add", "is_error": True}),
        (Noticed, {"code": "slow", "message": "it takes long"}),
        entries=entries,
    )
    assert [each.get("name", each["type"]) for each in events] == [
        "RUN_STARTED",
        "STEP_STARTED",
        "STEP_FINISHED",
        "STEP_STARTED",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "tool.progress",
        "tool.finished",
        "tool.finished",
        "run.noticed",
    ]
    view = tale.view()
    assert [(each.id, each.arguments, each.ended_at) for each in view.tool_calls] == [
        ("c1", "{}", "now"),
        ("c2", "{", None),
        ("c9", "", None),
    ]
    results, tale = told(
        *((MessageAppended, {"index": at}) for at in range(4)),
        (ToolStarted, {"call_id": "c3", "tool": "add"}),
        (StreamBegan, {}),
        entries=entries,
    )
    assert [
        (each["content"], each["metadata"]["isError"])
        for each in results
        if each["type"] == "TOOL_CALL_RESULT"
    ] == [
        ("3", False),
        ("no", True),
    ]
    assert results[-2:] == [
        {"type": "STEP_FINISHED", "stepName": "tools"},
        {"type": "STEP_STARTED", "stepName": "model"},
    ]


def test_words_that_are_taken_back_are_closed_and_begun_anew() -> None:
    events, tale = told(
        (StreamBegan, {}),
        (StreamReasoning, {"text": "Hm"}),
        (StreamDelta, {"text": "wro"}),
        (StreamBegan, {}),
        (StreamDelta, {"text": "right"}),
        (RunFailed, {"code": "error", "message": "gone"}),
    )
    assert [each["type"] for each in events if "MESSAGE" in each["type"]] == [
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
    ]
    ids = {each["messageId"] for each in events if each["type"] == "TEXT_MESSAGE_START"}
    assert (len(ids), tale.view().status, tale.view().error) == (2, "failed", "gone")


def test_a_run_that_ends_while_tools_run_closes_their_step() -> None:
    events, tale = told(
        (ToolStarted, {"call_id": "c1", "tool": "add"}), (RunFinished, {"stop_reason": "cancelled"})
    )
    assert [each["type"] for each in events[-2:]] == ["STEP_FINISHED", "RUN_FINISHED"]
    assert (tale.view().status, tale.is_going) == ("cancelled", False)
