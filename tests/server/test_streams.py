"""Streams on a real server: followed by many, dropped, come back to, and ended with the server at once."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from dialoom.conversation import Append, Conversation, Header, HeaderChange, TextEntry, Truncate
from dialoom.llm import MockProvider, TextDelta
from dialoom.llm.mock import Gate
from dialoom.server import Parts, serving
from dialoom.server.hub import EventHub
from dialoom.server.sse import EventStream
from tests.server.conftest import TOKEN
from tests.server.elapsed import Elapsed, wait_for_end
from tests.server.live import BOUND, Events, Live, following, kinds, served


def said(content: str) -> Append:
    return Append(TextEntry(role="user", content=content))


async def test_a_stream_says_how_it_is_to_be_handled_and_goes_on_where_it_was_left(
    parts: Parts, tmp_path: Path
) -> None:
    async with served(parts, tmp_path) as live:
        conversation = await live.begin()
        path = f"/api/v1/events?conversations={conversation}"
        async with live.client.stream("GET", path) as response:
            assert response.headers["cache-control"] == "no-cache, no-transform"
            assert response.headers["x-accel-buffering"] == "no"
            events = Events(response)
            await live.workbench.store.append(conversation, [said("one")])
            await events.until("entry.appended")
        await live.workbench.store.append(conversation, [said("two")])
        async with following(live, path, **{"Last-Event-ID": events.last_id}) as again:
            missed = await again.until("entry.appended")
        assert missed[-1]["value"]["entry"]["content"] == "two"
        async with following(live, f"{path}&after={events.last_id}") as again:
            assert await again.until("entry.appended") == missed
        async with following(live, f"{path}&after=before-the-restart.7") as again:
            assert kinds(await again.until("resync")) == ["resync"]


async def test_a_quiet_stream_pings(parts: Parts, tmp_path: Path) -> None:
    sent: list[bytes] = []
    hub, gone = EventHub(), asyncio.Event()

    async def receive() -> dict[str, str]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, object]) -> None:
        sent.append(message.get("body", b""))  # pyright: ignore[reportArgumentType] - a body is bytes
        if b": ping" in sent[-1]:
            gone.set()

    stream = EventStream(hub, hub.subscribe([], quiet=0.01))
    async with asyncio.timeout(BOUND):
        await stream({"type": "http", "method": "GET"}, receive, send)
    assert b"".join(sent).startswith(b"retry: 1000\n\n: ping\n\n")
    assert hub.followers == 0


async def test_fifty_dropped_readers_are_gone_within_a_second_and_stop_nothing(
    parts: Parts, provider: MockProvider, tmp_path: Path
) -> None:
    gate = Gate()
    provider.queue_events(TextDelta("one "), gate, TextDelta("two"))
    async with served(parts, tmp_path) as live, contextlib.AsyncExitStack() as stack:
        conversation = await live.begin()
        path = f"/api/v1/conversations/{conversation}"
        limits = httpx2.Limits(max_connections=100)
        crowd = await stack.enter_async_context(
            httpx2.AsyncClient(base_url=live.url, headers=live.client.headers, limits=limits, timeout=BOUND)
        )
        readers, followed = contextlib.AsyncExitStack(), list[Events]()
        for _ in range(50):
            response = await readers.enter_async_context(crowd.stream("GET", f"{path}/events"))
            followed.append(Events(response))
            await anext(followed[-1]._lines)
        assert open_streams(live) == 50
        sent = await live.client.post(f"{path}/messages", json={"text": "Count"})
        await gate.reached.wait()
        leaving = Elapsed()
        await readers.aclose()
        async with asyncio.timeout(BOUND):
            while open_streams(live):
                await live.client.get("/healthz")
        assert leaving.seconds() < 1
        gate.opened.set()
        async with following(live, f"{path}/events?after={live.workbench.hub.epoch}.0") as events:
            await events.until("RUN_FINISHED")
        run = (await live.client.get(f"/api/v1/runs/{sent.json()['runId']}")).json()
        assert run["status"] == "finished"


def open_streams(live: Live) -> int:
    return live.workbench.hub.followers


async def test_only_so_many_streams_are_open_at_once(parts: Parts, tmp_path: Path) -> None:
    async with served(parts, tmp_path, max_streams=1) as live:
        async with live.client.stream("GET", "/api/v1/events"):
            refused = await live.client.get("/api/v1/events")
            assert (refused.status_code, refused.json()["code"]) == (503, "too_many_streams")
        wrong = await live.client.get("/api/v1/events", params={"conversations": "a b"})
        assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_input")
        missing = await live.client.get("/api/v1/conversations/nowhere/events")
        assert missing.status_code == 404
        head = await live.client.head("/api/v1/events")
        assert (head.status_code, head.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")


async def test_the_server_ends_within_a_second_with_streams_open_and_tells_readers_to_come_back(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "GRACE_SECONDS", 2 * BOUND)  # it is not waited for
    async with served(parts, tmp_path) as live:
        conversation = await live.begin()
        async with following(live, f"/api/v1/conversations/{conversation}/events") as events:
            await live.workbench.store.append(conversation, [said("last")])
            await events.until("entry.appended")
            ending = Elapsed()
            await live.end()
            assert ending.seconds() < 1
            rest = [event async for event in events]
        assert kinds(rest) == ["conversation.updated"]
        assert events.closed


async def test_what_changes_in_a_store_is_told_to_all_pages(parts: Parts, tmp_path: Path) -> None:
    async with served(parts, tmp_path) as live:
        store, conversation = live.workbench.store, await live.begin()
        async with following(live, f"/api/v1/events?conversations={conversation}") as events:
            await store.append(
                conversation, [said("one"), said("two"), Truncate(1), said("three"), Truncate(9)]
            )
            told = await events.until("conversation.updated")
            assert [(each["name"], each["value"].get("keep"), each["value"].get("entry", {}).get("content"))
                    for each in told[:-1]] == [
                ("entry.appended", None, "one"), ("entry.appended", None, "two"),
                ("entries.truncated", 1, None), ("entry.appended", None, "three"),
            ]  # fmt: skip
            guide = Append(TextEntry(role="system", content="Be brief."))
            await store.append(conversation, [guide])
            assert kinds(await events.until("conversation.updated")) == ["conversation.updated"]

            keyed = Append(TextEntry(role="user", content="once"), "k")
            await store.append(conversation, [keyed])
            await events.until("conversation.updated")
            await store.append(conversation, [keyed])  # nothing changed, nothing is told
            await store.append(conversation, [keyed, said("new")])  # which of them is new, a page finds out
            assert kinds(await events.until("conversation.updated")) == ["resync", "conversation.updated"]
            await store.update(conversation, HeaderChange(title="New title"))
            updated = await events.until("conversation.updated")
            assert updated[0]["value"]["title"] == "New title"
            await store.create(Conversation(Header(id="other", created=1, updated=1)))
            assert (await events.until("conversation.updated"))[-1]["value"]["id"] == "other"
            await store.delete("other")
            assert (await events.until("conversation.deleted"))[-1]["value"] == {"id": "other"}
        window = (await live.client.get(f"/api/v1/conversations/{conversation}/entries")).json()
        assert [each["content"] for each in window["entries"]] == ["one", "three", "once", "new"]
        assert (await store.load(conversation)).id == conversation
        assert (await store.page()).headers[0].id == conversation
        assert await store.branches(conversation) == ()


async def test_a_card_cut_off_shows_its_older_state_again(parts: Parts, tmp_path: Path) -> None:
    async with served(parts, tmp_path) as live:
        conversation = await live.begin()
        path = f"/api/v1/conversations/{conversation}"
        card = {"type": "Approval", "payload": {"id": "a1", "title": "May I?"}}
        await live.client.post(f"{path}/cards", json=card)
        await live.client.post(
            f"{path}/cards/a1/actions/decide", json={"approved": True}, headers={"If-Match": "0"}
        )
        await live.workbench.store.append(conversation, [Truncate(1)])
        shown = (await live.client.get(f"{path}/entries")).json()["entries"]
        assert (shown[0]["rev"], "status" in shown[0]["card"]) == (0, False)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "turns"), [(signal.SIGTERM, (1, 2)), (signal.SIGINT, (1,))])
def test_the_command_ends_within_a_second_of_a_signal_with_a_run_that_can_be_gone_on_with(
    tmp_path: Path, number: signal.Signals, turns: tuple[int, ...]
) -> None:
    script = tmp_path / "serve.py"
    script.write_text(COMMAND)
    environment = {**os.environ, "DIALOOM_SERVER_TOKEN": TOKEN, "XDG_CONFIG_HOME": str(tmp_path)}
    (tmp_path / "dialoom").mkdir()
    (tmp_path / "dialoom/center.json").write_text(OWN_KIT)
    conversation = ""
    for turn in turns:
        child = subprocess.Popen(
            [sys.executable, str(script), str(tmp_path)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
        )  # fmt: skip
        with child:
            assert child.stdout is not None
            link = next(line for line in child.stdout if "login?token=" in line).split()[1]
            url = link.split("/login")[0]
            with httpx2.Client(
                base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=BOUND
            ) as client:
                if turn == 1:
                    offered = [
                        client.get(f"/api/v1/{kind}").json()["items"] for kind in ("skills", "prompts")
                    ]
                    assert [[each["name"] for each in items] for items in offered] == [["brief"], ["ask"]]
                    conversation = client.post("/api/v1/conversations", json={}).json()["id"]
                    path = f"/api/v1/conversations/{conversation}"
                    client.post(f"{path}/messages", json={"text": "Count"})
                    with client.stream("GET", f"{path}/events") as stream:
                        next(stream.iter_lines())
                        assert next(line for line in child.stdout if "asked" in line)
                        ending = Elapsed(child.pid)
                        child.send_signal(number)
                        wait_for_end(child, BOUND)
                        assert ending.seconds() < 1
                        rest = child.communicate(timeout=BOUND)[0]
                    assert ("stopped" in rest, child.returncode) == (True, 0)
                else:
                    path = f"/api/v1/conversations/{conversation}"
                    assert client.get(f"{path}/entries").json()["total"] == 1
                    assert client.post(f"{path}/resume", json={}).status_code == 202
                    assert next(line for line in child.stdout if "asked" in line)
                    child.send_signal(number)
                    child.communicate(timeout=BOUND)


OWN_KIT = """{
    "skills": [{"name": "brief", "description": "Answers in one line.", "instructions": "Be brief."}],
    "prompts": [{"name": "ask", "template": "How deep is {{ well }}?"}]
}"""

COMMAND = """
import sys
from pathlib import Path

from dialoom.cli import model, serve
from dialoom.cli.flags import KnowledgeFlags, ModelFlags
from dialoom.cli.serve_flags import ServeFlags
from dialoom.llm.mock import Gate, MockProvider
from dialoom.server import serving

serving.GRACE_SECONDS = 1000  # streams that are open are not waited for


class Holding(MockProvider):
    def stream(self, messages, options=None):
        print("asked", flush=True)
        return super().stream(messages, options)


def hold(*_choice, **_settings):
    return Holding(id="offline", model="offline").queue_events(Gate())


model.open_provider = hold
folder = Path(sys.argv[1])
flags = ServeFlags(port=0, data=folder / "data")
sys.exit(serve.run_server(flags, KnowledgeFlags(index=folder / "none"), ModelFlags(offline=True)))
"""
