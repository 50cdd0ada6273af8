"""A turn of fifteen rounds with three calls each, begun or gone on with.

`python -m tests.agent.killed FOLDER`: each call leaves a line in the file `effects` while it runs, and a dot
on standard output. In the end the results are printed as JSON.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from dialoom.agent import AGENT_TYPES, AgentLimits, AgentResult, AgentSettings, ReActAgent
from dialoom.graph import RunOptions
from dialoom.llm import ChatOptions, Message, MockProvider, ResponseStream
from dialoom.llm.options import DEFAULT_OPTIONS
from dialoom.stores import SqliteCheckpointStore
from dialoom.tools import tool
from tests.agent.tools import call

ROUNDS, CALLS = 15, 3


class Script(MockProvider):
    """Answers by what it is shown, so that it says the same in every process."""

    def stream(
        self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
    ) -> AbstractAsyncContextManager[ResponseStream]:
        number = sum(message.role == "assistant" for message in messages)
        if number < ROUNDS:
            self.queue_tool_calls(*(call(f"{number}.{at}", "act", n=number * 10 + at) for at in range(CALLS)))
        else:
            self.queue_text("Done.")
        return super().stream(messages, options)


async def turn(folder: Path, store: SqliteCheckpointStore) -> AgentResult:
    effects = os.open(folder / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    @tool
    async def act(n: int) -> str:
        await asyncio.sleep(0.005)
        os.write(effects, f"{n}\n".encode())
        os.write(1, b".")
        await asyncio.sleep(0.005)
        return f"done {n}"

    settings = AgentSettings(limits=AgentLimits(iterations=ROUNDS + 1))
    agent = ReActAgent(Script(), [act], settings=settings, store=store)
    if store.load("t") is None:
        return await agent.run("Go.", RunOptions(thread_id="t"))
    return await agent.resume("t")


def main() -> None:
    folder = Path(sys.argv[1])
    with SqliteCheckpointStore(folder / "threads", types=AGENT_TYPES) as store:
        result = asyncio.run(turn(folder, store))
    told = [(part.call_id, part.content) for message in result.history for part in message.tool_results]
    print(json.dumps({"stop_reason": result.stop_reason, "results": told}))


if __name__ == "__main__":
    main()
