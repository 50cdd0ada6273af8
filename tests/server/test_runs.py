"""Runs over HTTP: they belong to no connection, and everybody who follows sees the same."""

import asyncio
from pathlib import Path

from dialoom.llm import MockProvider, ProviderError, ReasoningDelta, TextDelta
from dialoom.llm.mock import Gate
from dialoom.server import Parts
from dialoom.tools import Tool, tool
from tests.server.live import following, kinds, served


async def test_an_answer_streams_to_all_who_follow_and_is_in_the_log(
    parts: Parts, provider: MockProvider, tmp_path: Path
) -> None:
    provider.queue_events(ReasoningDelta("Hmm. "), TextDelta("25 m "), TextDelta("cells, 克里金."))
    async with served(parts, tmp_path) as live:
        conversation = await live.begin()
        window = (await live.client.get(f"/api/v1/conversations/{conversation}/entries")).json()
        path = f"/api/v1/conversations/{conversation}/events?after={window['cursor']}"
        async with following(live, path) as one, following(live, path) as other:
            answer = await live.client.post(
                f"/api/v1/conversations/{conversation}/messages", json={"text": "Which cells?"}
            )
            assert answer.status_code == 202
            run_id = answer.json()["runId"]
            seen = await one.until("RUN_FINISHED")
            assert await other.until("RUN_FINISHED") == seen
        own = [event for event in seen if event["metadata"]["dialoom"].get("conversation") == conversation]
        assert kinds(own) == [
            "RUN_STARTED", "entry.appended", "STEP_STARTED", "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END", "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT", "entry.appended",
            "TEXT_MESSAGE_END", "STEP_FINISHED", "RUN_FINISHED",
        ]  # fmt: skip
        assert own[-1]["outcome"] == {"type": "success"}
        assert {event["metadata"]["dialoom"].get("runId", run_id) for event in own} == {run_id}
        log = (await live.client.get(f"/api/v1/conversations/{conversation}/entries")).json()
        assert [(each["role"], each["content"]) for each in log["entries"]] == [
            ("user", "Which cells?"), ("assistant", "25 m cells, 克里金."),
        ]  # fmt: skip
        assert log["entries"][1]["reasoning"] == "Hmm. "
        assert log["run"] is None


async def test_a_page_that_joins_late_gets_what_was_said_so_far_and_then_the_rest(
    parts: Parts, provider: MockProvider, tmp_path: Path
) -> None:
    gate = Gate()
    provider.queue_events(TextDelta("one "), gate, TextDelta("two"))
    async with served(parts, tmp_path) as live:
        conversation = await live.begin()
        await live.client.post(f"/api/v1/conversations/{conversation}/messages", json={"text": "Count."})
        await gate.reached.wait()
        window = (await live.client.get(f"/api/v1/conversations/{conversation}/entries")).json()
        run = window["run"]
        assert (run["status"], run["text"], len(window["entries"])) == ("running", "one ", 1)
        header = (await live.client.get(f"/api/v1/conversations/{conversation}")).json()
        assert header["running"] == run["id"]
        path = f"/api/v1/events?conversations={conversation}&after={window['cursor']}"
        async with following(live, path) as events:
            gate.opened.set()
            seen = await events.until("RUN_FINISHED")
        assert "".join(each["delta"] for each in seen if each["type"] == "TEXT_MESSAGE_CONTENT") == "two"
        finished = (await live.client.get(f"/api/v1/runs/{run['id']}")).json()
        assert (finished["status"], finished["text"], finished["toolCalls"]) == ("finished", "", [])


async def test_leaving_stops_nothing_and_stopping_is_a_call_that_keeps_what_was_said(
    parts: Parts, provider: MockProvider, tmp_path: Path
) -> None:
    gate = Gate()
    provider.queue_events(TextDelta("The first half"), gate, TextDelta(" and more"))
    async with served(parts, tmp_path) as live:
        conversation = await live.begin()
        messages = f"/api/v1/conversations/{conversation}/messages"
        async with following(live, f"/api/v1/conversations/{conversation}/events"):
            run_id = (await live.client.post(messages, json={"text": "Go on."})).json()["runId"]
            await gate.reached.wait()
        assert (await live.client.get(f"/api/v1/runs/{run_id}")).json()["status"] == "running"
        refused = await live.client.post(messages, json={"text": "And?"})
        assert (refused.status_code, refused.json()["code"]) == (409, "run_active")
        assert refused.json()["params"] == {"runId": run_id}
        deleted = await live.client.delete(f"/api/v1/conversations/{conversation}")
        assert deleted.json()["code"] == "run_active"
        async with following(live, f"/api/v1/conversations/{conversation}/events") as events:
            stopped = await live.client.post(f"/api/v1/runs/{run_id}/cancel", json={})
            assert stopped.status_code == 202
            seen = await events.until("RUN_FINISHED")
        assert seen[-1]["outcome"] == {"type": "cancelled"}
        log = (await live.client.get(f"/api/v1/conversations/{conversation}/entries")).json()["entries"]
        assert [(each["content"], each.get("status")) for each in log] == [
            ("Go on.", None), ("The first half", "cancelled"),
        ]  # fmt: skip


async def test_the_same_key_says_the_same_thing_once(
    parts: Parts, provider: MockProvider, tmp_path: Path
) -> None:
    provider.queue_text("yes")
    async with served(parts, tmp_path) as live:
        conversation = await live.begin()
        messages = f"/api/v1/conversations/{conversation}/messages"
        async with following(live, f"/api/v1/conversations/{conversation}/events") as events:
            said = {"text": "Once?", "key": "k1"}
            first, again = await asyncio.gather(
                live.client.post(messages, json=said), live.client.post(messages, json=said)
            )
            assert first.json() == again.json()
            await events.until("RUN_FINISHED")
        assert (await live.client.post(messages, json=said)).json() == first.json()
        assert len(provider.requests) == 1


async def test_a_tool_that_needs_approval_waits_on_a_card_and_goes_on_when_it_is_decided(
    parts: Parts, provider: MockProvider, tools: list[Tool], tmp_path: Path
) -> None:
    ran: list[str] = []

    @tool(requires_approval=True)
    async def erase(name: str) -> str:
        """Erase a file."""
        ran.append(name)
        return f"erased {name}"

    tools.append(erase)
    provider.queue_tool_call("c1", "erase", {"name": "wells.xyz"}).queue_text("Done.")
    async with served(parts, tmp_path) as live:
        conversation = await live.begin()
        path = f"/api/v1/conversations/{conversation}"
        async with following(live, f"{path}/events") as events:
            await live.client.post(f"{path}/messages", json={"text": "Erase wells.xyz"})
            seen = await events.until("RUN_FINISHED")
            assert seen[-1]["outcome"]["type"] == "interrupt"
            window = (await live.client.get(f"{path}/entries")).json()
            card = window["entries"][-1]
            assert (window["run"]["status"], card["type"], ran) == ("waiting", "Approval", [])
            assert seen[-1]["outcome"]["interrupts"] == [{"id": card["cardId"], "reason": "input_required"}]

            decide = f"{path}/cards/{card['cardId']}/actions/decide"
            yes, rev = {"approved": True}, {"If-Match": f'"{card["rev"]}"'}
            first, second = await asyncio.gather(
                live.client.post(decide, json=yes, headers=rev),
                live.client.post(decide, json=yes, headers=rev),
            )
            assert sorted([first.status_code, second.status_code]) == [200, 409]
            refused = first if first.status_code == 409 else second
            assert (refused.json()["code"], refused.json()["params"]["status"]) == (
                "card_decided",
                "approved",
            )
            told = await events.until("RUN_FINISHED")
        assert ran == ["wells.xyz"]
        assert "TOOL_CALL_RESULT" in kinds(told)
        log = (await live.client.get(f"{path}/entries")).json()["entries"]
        assert [each.get("content", each.get("type")) for each in log] == [
            "Erase wells.xyz", "", "Approval", "erased wells.xyz", "Done.",
        ]  # fmt: skip
        assert log[2]["card"]["status"] == "approved"


async def test_an_answer_is_made_anew_and_a_message_edited_in_branches_one_can_page_through(
    parts: Parts, provider: MockProvider, tmp_path: Path
) -> None:
    provider.queue_text("one").queue_text("two").queue_text("three")
    async with served(parts, tmp_path) as live:
        first = await live.begin()
        path = f"/api/v1/conversations/{first}"
        async with following(live, f"{path}/events") as events:
            await live.client.post(f"{path}/messages", json={"text": "Say a number."})
            await events.until("RUN_FINISHED")
        second = (await live.client.post(f"{path}/regenerate", json={})).json()
        await ended(live, second["runId"])
        third = (await live.client.post(f"{path}/edit", json={"index": 0, "text": "Another."})).json()
        await ended(live, third["runId"])
        ids = [first, second["conversationId"], third["conversationId"]]
        said = [await texts(live, each) for each in ids]
        assert said == [["Say a number.", "one"], ["Say a number.", "two"], ["Another.", "three"]]
        branches = (await live.client.get(f"{path}/branches")).json()["items"]
        assert branches == [
            {"index": 0, "conversationIds": [ids[0], ids[2]]},
            {"index": 1, "conversationIds": [ids[0], ids[1]]},
        ]
        header = (await live.client.get(f"/api/v1/conversations/{ids[1]}")).json()
        assert header["branchFrom"] == first


async def texts(live, conversation: str) -> list[str]:
    log = (await live.client.get(f"/api/v1/conversations/{conversation}/entries")).json()["entries"]
    return [each["content"] for each in log]


async def ended(live, run_id: str) -> None:
    """Wait for a run whose beginning was missed."""
    view = (await live.client.get(f"/api/v1/runs/{run_id}")).json()
    path = f"/api/v1/conversations/{view['conversationId']}/events?after={live.workbench.hub.epoch}.0"
    async with following(live, path) as events:
        await events.until("RUN_FINISHED")


async def test_a_run_that_fails_says_why_and_can_be_gone_on_with(
    parts: Parts, provider: MockProvider, tmp_path: Path
) -> None:
    provider.queue_error(ProviderError("unavailable", "the server is down")).queue_text("here I am")
    async with served(parts, tmp_path) as live:
        conversation = await live.begin()
        path = f"/api/v1/conversations/{conversation}"
        async with following(live, f"{path}/events") as events:
            sent = (await live.client.post(f"{path}/messages", json={"text": "Hello?"})).json()
            seen = await events.until("RUN_ERROR")
            assert "the server is down" in seen[-1]["message"]
            view = (await live.client.get(f"/api/v1/runs/{sent['runId']}")).json()
            assert (view["status"], view["code"], view["error"]) == (
                "failed",
                seen[-1]["code"],
                seen[-1]["message"],
            )
            again = await live.client.post(f"/api/v1/runs/{sent['runId']}/resume", json={})
            assert again.status_code == 202
            await events.until("RUN_FINISHED")
        log = (await live.client.get(f"{path}/entries")).json()["entries"]
        assert [each["content"] for each in log] == ["Hello?", "here I am"]
