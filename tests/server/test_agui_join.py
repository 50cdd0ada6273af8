"""AG-UI clients that come in the middle of a run, leave and come back, at every kind of moment."""

import asyncio
import json
import os
import shutil
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.conversation import TextEntry
from dialoom.dialog import (
    RunFailed,
    RunFinished,
    RunStarted,
    StreamBegan,
    StreamDelta,
    StreamEnded,
    StreamReasoning,
    ToolFinished,
    ToolStarted,
)
from dialoom.llm import MockProvider, TextDelta, ToolCall
from dialoom.llm.events import ReasoningDelta, ToolCallReady
from dialoom.llm.mock import Gate
from dialoom.server import Parts
from dialoom.server.hub import Event
from dialoom.server.run_tale import RunTale
from dialoom.tools import Tool, tool
from tests.server.conftest import TOKEN
from tests.server.live import BOUND, Live, agui, served

PEERS = Path(__file__).resolve().parents[1] / "peers"
CALL = ToolCall(id="c1", name="weather", arguments={"city": "Oslo"}, raw='{"city":"Oslo"}')
LOG = [
    ["user", "Weather?"],
    ["reasoning", "Hm, so."],
    ["assistant", "I will look.", '{"city":"Oslo"}'],
    ["tool", "rain"],
    ["assistant", "It rains."],
]
"""What the conversation is in the end."""


class Moments:
    """Places at which a run stands still until it is told to go on."""

    def __init__(self) -> None:
        self.thinking, self.speaking, self.calling, self.telling = (Gate() for _ in range(4))

    def script(self, provider: MockProvider) -> Tool:
        provider.queue_events(
            ReasoningDelta("Hm,"), self.thinking, ReasoningDelta(" so."),
            TextDelta("I will"), self.speaking, TextDelta(" look."), ToolCallReady(index=0, call=CALL),
        )  # fmt: skip
        provider.queue_events(TextDelta("It"), self.telling, TextDelta(" rains."))

        @tool
        async def weather(city: str) -> str:
            """Weather of a city."""
            self.calling.reached.set()
            await self.calling.opened.wait()
            return "rain"

        return weather


class Clients:
    """AG-UI clients in one process of Node."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._say, self._said, self._warned = process.stdin, process.stdout, process.stderr

    async def join(self, name: str, *, until: str = "MESSAGES_SNAPSHOT", leaves: str = "") -> None:
        """Have a client join; it leaves when it gets an event of the type `leaves`."""
        self._say.write(f"{name} {leaves}\n".encode())
        await self.told(name, "left" if leaves else until)

    async def told(self, name: str, kind: str) -> None:
        while await self._line() != [name, kind]:
            pass

    async def end(self) -> dict[str, Any]:
        """Let no more join; return what each has of the conversation when its run is over."""
        self._say.close()
        while not isinstance(found := await self._line(), dict):
            pass
        return found

    async def _line(self) -> Any:
        async with asyncio.timeout(BOUND):
            line = await self._said.readline()
            assert line, (await self._warned.read()).decode()
            return json.loads(line)


@asynccontextmanager
async def clients(live: Live) -> AsyncGenerator[Clients]:
    environment = {**os.environ, "BASE": live.url, "TOKEN": TOKEN, "THREAD": "t1"}
    process = await asyncio.create_subprocess_exec(
        "node", "agui_join.mjs", cwd=PEERS, env=environment, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    try:
        yield Clients(process)
        assert process.stderr is not None
        assert (await process.stderr.read()).decode() == ""
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("node") is None or not (PEERS / "node_modules/@ag-ui/client").is_dir(),
    reason="NOTICE: no foreign clients: make .venv/peers.stamp (npm)",
)
async def test_the_agui_client_attaches_again_in_the_middle_of_a_run(
    parts: Parts, provider: MockProvider, tools: list[Tool], tmp_path: Path
) -> None:
    at = Moments()
    tools.append(at.script(provider))
    async with served(parts, tmp_path) as live:
        begun = live.client.stream(
            "POST",
            "/agui/dialog",
            json={
                "threadId": "t1",
                "runId": "r1",
                "messages": [{"id": "m1", "role": "user", "content": "Weather?"}],
            },
        )
        async with begun, clients(live) as crowd:
            for name, gate in vars(at).items():
                await gate.reached.wait()
                await crowd.join(name)
                await crowd.join("restless", leaves="MESSAGES_SNAPSHOT")
                gate.opened.set()
            await crowd.join("late", until="RUN_FINISHED")
            await crowd.join("restless", until="RUN_FINISHED")
            found = await crowd.end()
    assert found == dict.fromkeys([*vars(at), "restless", "late"], LOG)


async def test_who_joins_is_told_what_was_thought_and_said_and_what_is_open(
    parts: Parts, provider: MockProvider, tools: list[Tool], tmp_path: Path
) -> None:
    at = Moments()
    tools.append(at.script(provider))
    begun: list[list[str]] = []
    async with served(parts, tmp_path) as live:
        conversation = {"threadId": "t1", "runId": "r1"}
        question = {"id": "m1", "role": "user", "content": "Weather?"}
        first = live.client.stream("POST", "/agui/dialog", json={**conversation, "messages": [question]})
        async with first:
            for gate in vars(at).values():
                await gate.reached.wait()
                async with live.client.stream("POST", "/agui/dialog", json=conversation) as late:
                    begun.append(await told_first(late))
                gate.opened.set()
        whole = await agui(live)
    assert begun == [
        ["user", "reasoning", "model", "REASONING"],
        ["user", "reasoning", "assistant", "model", "TEXT"],
        ["user", "reasoning", "assistant", "tools"],
        ["user", "reasoning", "assistant", "tool", "assistant", "model", "TEXT"],
    ]
    assert [each["role"] for each in whole[1]["messages"]] == [role for role, *_ in LOG]


async def told_first(response: httpx2.Response) -> list[str]:
    """Return the roles of the messages that one who joins is told of, and what is opened again."""
    found: list[str] = []
    async for line in response.aiter_lines():
        event = json.loads(line[6:]) if line.startswith("data: ") else {"type": ""}
        if event["type"] == "MESSAGES_SNAPSHOT":
            found += [each["role"] for each in event["messages"]]
        elif event["type"] == "STEP_STARTED":
            found.append(event["stepName"])
            if found[-1] == "tools":
                break
        elif event["type"].endswith("_START"):
            found.append(event["type"].partition("_")[0])
            break
    return found


WORDS = st.sampled_from(
    [
        (StreamBegan, {}),
        (StreamDelta, {"text": "a"}),
        (StreamReasoning, {"text": "b"}),
        (StreamEnded, {"text": ""}),
        (ToolStarted, {"call_id": "c1", "tool": "weather"}),
        (ToolFinished, {"call_id": "c1", "tool": "weather"}),
    ]
)
ENDS = st.sampled_from(
    [
        (RunFinished, {"stop_reason": "finished"}),
        (RunFinished, {"stop_reason": "cancelled"}),
        (RunFinished, {"stop_reason": "needs_approval", "waiting": ("c",)}),
        (RunFailed, {"code": "unavailable", "message": "the model is down"}),
    ]
)


@settings(max_examples=200, deadline=None)
@given(words=st.lists(WORDS, max_size=12), end=ENDS, cut=st.integers(0, 12))
def test_wherever_a_client_comes_what_it_is_told_has_a_beginning_and_an_end(
    words: list[tuple[Any, dict[str, Any]]], end: tuple[Any, dict[str, Any]], cut: int
) -> None:
    tale = RunTale(
        "r", "t1", now=lambda: "now", entry=lambda index: TextEntry(role="user", content=str(index))
    )
    scenes = [(RunStarted, {"dialog_id": "t1"}), *words, end]
    first, late = list[Event](), list[Event]()
    for at, (kind, fields) in enumerate(scenes):
        if at == min(cut, len(words)) + 1:
            late = [{"type": "RUN_STARTED"}, *tale.opened()]
        told = list(tale.tell(kind(run_id="r", seq=at + 1, **fields)))
        first += told
        late += told if late else []
    assert_in_order(first)
    assert_in_order(late)


def assert_in_order(events: list[Event]) -> None:
    """What `@ag-ui/client` asks of a stream: what goes on or ends was begun, and what was begun ends."""
    opened: set[tuple[object, object]] = set()
    for event in events:
        kind = str(event["type"])
        name = (kind.partition("_")[0], event.get("messageId", event.get("stepName")))
        match kind.rpartition("_")[2]:
            case "STARTED" | "START" if kind.startswith(("STEP", "TEXT", "REASONING")):
                assert name not in opened, events
                opened.add(name)
            case "CONTENT":
                assert name in opened, events
            case "FINISHED" | "END" if kind.startswith(("STEP", "TEXT", "REASONING")):
                assert name in opened, events
                opened.remove(name)
            case _:
                pass
    kinds = [event["type"] for event in events]
    assert (kinds[0], kinds.count("RUN_STARTED"), opened) == ("RUN_STARTED", 1, set()), events
    assert kinds[-1] in {"RUN_FINISHED", "RUN_ERROR"}


async def test_a_call_that_a_client_knows_is_not_told_again_and_its_question_says_until_when(
    parts: Parts, provider: MockProvider, tools: list[Tool], tmp_path: Path
) -> None:
    @tool(requires_approval=True)
    async def erase(name: str) -> str:
        """Erase a file."""
        return f"erased {name}"

    tools.append(erase)
    provider.queue_tool_call("c1", "erase", {"name": "a"}).queue_text("Done.")
    async with served(parts, tmp_path, approval_seconds=60) as live:
        first = await agui(live, messages=[{"id": "m1", "role": "user", "content": "Erase a"}])
        joined = await agui(live)
        assert (first[-1]["outcome"], joined[-1]["outcome"]) == (first[-1]["outcome"],) * 2
        (question,) = joined[-1]["outcome"]["interrupts"]
        assert question["expiresAt"] == "2023-11-14T22:14:20.000Z"
        answer = {"interruptId": question["id"], "payload": {"approved": True}}
        brought = [each for each in joined[1]["messages"] if each["role"] == "assistant"]
        rest = await agui(live, resume=[answer], messages=brought)
    told = [each["type"] for each in rest if each["type"].startswith("TOOL")]
    assert (told, rest[-1]["outcome"]) == (["TOOL_CALL_RESULT"], {"type": "success"})
