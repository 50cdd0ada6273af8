"""A program with an agent that is stopped and started again.

`python -m tests.agent.restarted FOLDER STORE STEP`: STORE is `sqlite`, `jsonl` or `result`, which keeps
nothing but the result's own JSON. STEP is `ask TOOL`, which has the model call one, or `resume [JSON]` with
answers by call id. What came of it is printed as JSON, what the tools did is a line each in `effects`.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dialoom.agent import AGENT_TYPES, AgentResult, ReActAgent
from dialoom.graph import CheckpointStore, RunOptions
from dialoom.llm import MockProvider
from dialoom.stores import JsonlCheckpointStore, SqliteCheckpointStore
from dialoom.tools import Tool, ToolContext, tool
from tests.agent.tools import call

STORES: dict[str, Callable[..., Any]] = {"sqlite": SqliteCheckpointStore, "jsonl": JsonlCheckpointStore}
ARGUMENTS: dict[str, dict[str, object]] = {"refund": {"order": 9, "amount": 30}}
PATIENCE = 60.0


class Ledger:
    """What was done, and whether the program has died already."""

    def __init__(self, folder: Path) -> None:
        self._effects = folder / "effects"
        self._died = folder / "died"

    def write(self, line: str) -> str:
        with self._effects.open("a") as file:
            file.write(f"{line}\n")
        return line

    def die_the_first_time(self) -> None:
        if not self._died.exists():
            self._died.touch()
            os.kill(os.getpid(), signal.SIGKILL)


def paying(ledger: Ledger) -> list[Tool]:
    """Tools with an effect, after which the program dies the first time."""

    @tool(idempotent=True)
    async def recount() -> str:
        line = ledger.write("counted")
        ledger.die_the_first_time()
        return line

    @tool
    async def pay() -> str:
        line = ledger.write("paid")
        ledger.die_the_first_time()
        return line

    @tool(idempotent=True)
    async def pay_once(ctx: ToolContext) -> str:
        async def do() -> str:
            return ledger.write("paid")

        line = await ctx.aonce("pay", do)
        ledger.die_the_first_time()
        return line

    @tool(idempotent=True)
    def pay_once_plainly(ctx: ToolContext) -> str:
        line = ctx.once("pay", lambda: ledger.write("paid"))
        ledger.die_the_first_time()
        return line

    return [recount, pay, pay_once, pay_once_plainly]


def others(ledger: Ledger, store: CheckpointStore | None) -> list[Tool]:
    @tool(requires_approval=True)
    async def refund(order: int, amount: int) -> str:
        return ledger.write(f"refunded {amount} for order {order}")

    @tool
    async def note() -> str:
        return ledger.write("noted")

    @tool
    def die_after_the_other() -> str:
        """Die once the end of the other call of the round is on the disk."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and not _has_ended_call(store):
            time.sleep(0.01)
        ledger.die_the_first_time()
        return "waited"

    return [refund, note, die_after_the_other]


def _has_ended_call(store: CheckpointStore | None) -> bool:
    newest = None if store is None else store.load("t")
    notes = () if newest is None else newest.frontier.notes
    return any(key == "end" for note in notes for key, _ in note.once)


async def step(folder: Path, store: CheckpointStore | None, words: list[str]) -> AgentResult:
    model, ledger = MockProvider(), Ledger(folder)
    agent = ReActAgent(model, [*paying(ledger), *others(ledger, store)], store=store)
    if words[0] == "ask":
        names = enumerate(words[1].split("+"), start=1)
        model.queue_tool_calls(*(call(f"c{at}", name, **ARGUMENTS.get(name, {})) for at, name in names))
        return await agent.run("Please.", RunOptions(thread_id="t"))
    model.queue_text("It is done.")
    kept = folder / "result"
    where = AgentResult.from_json(kept.read_text()) if kept.exists() else "t"
    return await agent.resume(where, json.loads(words[1]) if words[1:] else {})


def main() -> None:
    folder, kind, *words = sys.argv[1:]
    with ExitStack() as stack:
        store = None
        if kind in STORES:
            store = stack.enter_context(STORES[kind](Path(folder) / "threads", types=AGENT_TYPES))
        result = asyncio.run(step(Path(folder), store, words))
    (Path(folder) / "result").write_text(result.to_json())
    told = [(part.call_id, part.content) for message in result.history for part in message.tool_results]
    print(json.dumps({"stop_reason": result.stop_reason, "answer": result.answer, "results": told}))


if __name__ == "__main__":
    main()
