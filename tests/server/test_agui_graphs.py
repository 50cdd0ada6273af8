"""Graphs over AG-UI: their steps, their questions, who joins late, and how runs end."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dialoom.base.errors import UsageError
from dialoom.graph import (
    END,
    START,
    Graph,
    GraphBuilder,
    MemoryCheckpointStore,
    NodeContext,
    Reducers,
    RetryPolicy,
)
from dialoom.server import Parts, ServerSettings, Workbench
from dialoom.server.agui_stream import Followed, agui_response
from dialoom.server.hub import EventHub
from tests.server.conftest import TOKEN, URL
from tests.server.live import BOUND, Live, copied, kinds, served


class Steps:
    """What the nodes of the tests wait for."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go = asyncio.Event()

    async def wait(self, _ctx: NodeContext) -> dict[str, object]:
        self.begun.set()
        await self.go.wait()
        return {"said": ["waited"]}


def ask(ctx: NodeContext) -> dict[str, object]:
    ctx.emit({"words": "深"})
    return {"said": [str(ctx.interrupt("How deep?"))]}


def fail(_ctx: NodeContext) -> dict[str, object]:
    raise ValueError("no such well")


class Flaky:
    """Fails once."""

    def __init__(self) -> None:
        self._failed = False

    def work(self, _ctx: NodeContext) -> dict[str, object]:
        if not self._failed:
            self._failed = True
            raise ConnectionError("no line")
        return {"said": ["again"]}


@pytest.fixture
def steps() -> Steps:
    return Steps()


@pytest.fixture
def graphs(parts: Parts, steps: Steps) -> dict[str, Graph]:
    def one(name: str, node: Callable[[NodeContext], Any]) -> Graph:
        builder = GraphBuilder(name)
        builder.add_channel("said", Reducers.append)
        builder.add_node("work", node, retry=RetryPolicy(attempts=2, delay=0.0) if name == "flaky" else None)
        builder.add_edge(START, "work")
        builder.add_edge("work", END)
        return builder.build(store=parts.checkpoints)

    return {
        "flaky": one("flaky", Flaky().work),
        "ask": one("ask", ask),
        "fail": one("fail", fail),
        "wait": one("wait", steps.wait),
    }


@pytest.fixture
def desk(settings: ServerSettings, parts: Parts, graphs: dict[str, Graph]) -> Iterator[TestClient]:
    workbench = Workbench(settings, copied(parts, graphs=graphs))
    with TestClient(workbench.app, base_url=URL, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        yield client


def run(client: TestClient, graph: str, **asked: object) -> list[dict[str, Any]]:
    answer = client.post(f"/agui/{graph}", json={"threadId": "t1", "runId": "r1", **asked})
    assert answer.status_code == 200, answer.text
    return [
        json.loads(each.removeprefix("data: "))
        for each in answer.text.split("\n\n")
        if each.startswith("data: ")
    ]


def test_a_graph_tells_its_steps_asks_and_goes_on_with_the_answer(desk: TestClient) -> None:
    asked = run(desk, "ask", state={"said": ["begin"]})
    assert kinds(asked) == [
        "RUN_STARTED", "STEP_STARTED", "graph.chunk", "STEP_FINISHED", "graph.superstep", "STATE_SNAPSHOT",
        "RUN_FINISHED",
    ]  # fmt: skip
    assert {each["runId"] for each in asked if "runId" in each} == {"r1"}
    assert asked[2]["value"] == {"node": "work", "value": {"words": "深"}}
    question = asked[-1]["outcome"]["interrupts"][0]
    assert (question["reason"], question["message"]) == ("input_required", "How deep?")

    ended = run(desk, "ask", resume=[{"interruptId": question["id"], "payload": 25}])
    assert ended[-2]["snapshot"] == {"said": ["begin", "25"]}
    assert ended[-1]["outcome"] == {"type": "success"}
    step = next(
        each["value"] for each in ended if each.get("name") == "graph.superstep" and each["value"]["nodes"]
    )
    assert (step["nodes"], step["writes"]) == (["work"], ["said"])
    kept = desk.get(f"/api/v1/checkpoints/{step['checkpointId']}").json()
    assert kept["state"] == {"said": ["begin", "25"]}


def test_what_goes_wrong_in_a_graph_is_the_end_of_its_run(desk: TestClient) -> None:
    failed = run(desk, "fail")
    assert kinds(failed)[-2:] == ["STATE_SNAPSHOT", "RUN_ERROR"]
    assert (failed[-1]["code"], "no such well" in failed[-1]["message"]) == ("error", True)
    unknown = run(desk, "ask", state={"nothing": 1}, threadId="t2")
    assert kinds(unknown) == ["RUN_STARTED", "STATE_SNAPSHOT", "RUN_ERROR"]
    assert "nothing" in unknown[-1]["message"]
    never = run(desk, "ask", threadId="t3", resume=[{"interruptId": "x", "payload": 1}])
    assert (kinds(never), never[-1]["code"]) == (["RUN_STARTED", "RUN_ERROR"], "usage")


def test_a_step_that_is_tried_again_says_so(desk: TestClient) -> None:
    seen = run(desk, "flaky")
    assert kinds(seen)[1:4] == ["STEP_STARTED", "graph.retry", "STEP_FINISHED"]
    assert seen[2]["value"] == {"node": "work", "attempt": 1, "message": "ConnectionError: no line"}


def test_a_server_that_is_not_running_begins_no_graph(
    settings: ServerSettings, parts: Parts, graphs: dict[str, Graph]
) -> None:
    workbench = Workbench(settings, copied(parts, graphs=graphs))
    client = TestClient(workbench.app, base_url=URL, headers={"Authorization": f"Bearer {TOKEN}"})
    answer = client.post("/agui/ask", json={"threadId": "t1", "runId": "r1"})
    assert (answer.status_code, answer.json()["code"]) == (503, "too_many_jobs")


def test_a_graph_that_is_not_served_is_told(desk: TestClient, settings: ServerSettings, parts: Parts) -> None:
    for path in ("/agui/none", "/agui/ask/cancel"):
        answer = desk.post(path, json={"threadId": "t1", "runId": "r1"})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    builder = GraphBuilder("dialog")
    builder.add_node("work", lambda _ctx: None)
    builder.add_edge(START, "work")
    with pytest.raises(UsageError, match="no graph can be served as 'dialog'"):
        Workbench(settings, copied(parts, graphs={"dialog": builder.build(store=MemoryCheckpointStore())}))


@asynccontextmanager
async def reading(live: Live, **asked: object) -> AsyncGenerator[Callable[[str], Any]]:
    """Run `wait` and give what reads its events up to one of a kind."""
    body = {"threadId": "t1", "runId": "r1", **asked}
    async with live.client.stream("POST", "/agui/wait", json=body) as answer:
        lines = answer.aiter_lines()

        async def until(kind: str) -> list[str]:
            found: list[str] = []
            async with asyncio.timeout(BOUND):
                async for line in lines:
                    if line.startswith("data: "):
                        found += kinds([json.loads(line[6:])])
                        if found[-1] == kind:
                            break
            return found

        yield until


async def test_leaving_stops_no_graph_and_who_comes_late_joins_it(
    parts: Parts, graphs: dict[str, Graph], steps: Steps, tmp_path: Path
) -> None:
    async with served(copied(parts, graphs=graphs), tmp_path) as live:
        async with reading(live) as until:
            assert await until("STEP_STARTED") == ["RUN_STARTED", "STEP_STARTED"]
        async with reading(live, runId="r2") as until:
            assert await until("STEP_STARTED") == ["RUN_STARTED", "STEP_STARTED"]
            busy = {"threadId": "t1", "runId": "r3", "resume": [{"interruptId": "x"}]}
            assert (await live.client.post("/agui/wait", json=busy)).json()["code"] == "run_active"
            steps.go.set()
            assert await until("RUN_FINISHED") == [
                "STEP_FINISHED", "graph.superstep", "STATE_SNAPSHOT", "RUN_FINISHED",
            ]  # fmt: skip


async def test_clients_that_come_all_at_once_are_told_the_beginning_once_each(
    parts: Parts, graphs: dict[str, Graph], tmp_path: Path
) -> None:
    async with served(copied(parts, graphs=graphs), tmp_path) as live:
        asked = {"threadId": "t1", "runId": "r"}
        answers = await asyncio.gather(*(live.client.post("/agui/flaky", json=asked) for _ in range(8)))
    assert [answer.text.count("RUN_STARTED") for answer in answers] == [1] * 8


async def test_a_run_of_a_graph_is_stopped_by_a_call_and_by_the_end_of_the_server(
    parts: Parts, graphs: dict[str, Graph], steps: Steps, tmp_path: Path
) -> None:
    async with served(copied(parts, graphs=graphs), tmp_path) as live:
        async with reading(live) as until:
            await until("STEP_STARTED")
            assert (await live.client.post("/agui/wait/cancel", json={"threadId": "t1"})).status_code == 204
            assert (await until("RUN_FINISHED"))[-2:] == ["STATE_SNAPSHOT", "RUN_FINISHED"]
        async with reading(live, threadId="t2") as until:
            await until("STEP_STARTED")
            await live.end()


async def test_a_stream_that_fell_behind_is_told_to_join_again() -> None:
    hub = EventHub(max_events=2)
    subscription = hub.subscribe(["g/t1"])
    for step in range(5):
        hub.publish("g/t1", {"type": "STEP_STARTED", "stepName": str(step)}, runId="ours")
    followed = Followed(topic="g/t1", run_id="ours", name="theirs")
    lines = [line async for line in agui_response(hub, subscription, [], followed).body_iterator]
    assert [json.loads(bytes(line)[6:])["code"] for line in lines] == ["resync"]
