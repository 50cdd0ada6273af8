"""What a long dialog costs beside a short one: opening it, adding to it, and a turn with a tool in it."""

import asyncio
import statistics
import time
from collections.abc import Awaitable
from pathlib import Path

from bench.report import Row
from dialoom.agent import AGENT_TYPES
from dialoom.dialog import Center, Stores
from dialoom.llm import MockProvider
from dialoom.stores import SqliteCheckpointStore, SqliteConversationStore
from dialoom.tools import tool

LONG, SHORT = 2_000, 20
ROUNDS = 20
WORK = {"open": "open", "append": "append to", "send": "a turn in"}

Costs = dict[str, dict[int, list[float]]]
"""CPU milliseconds by work and length, one for each round."""


@tool(idempotent=True)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def dialog_rows(folder: Path) -> list[Row]:
    """Return medians of CPU time on SQLite, taken by turns at both lengths."""
    costs = asyncio.run(_measure(folder))
    return [
        Row(
            f"{words} a dialog of {LONG}",
            "ms of CPU",
            statistics.median(costs[work][LONG]),
            f"one of {SHORT}",
            statistics.median(costs[work][SHORT]),
            must=1.5,
        )
        for work, words in WORK.items()
    ]


async def _measure(folder: Path) -> Costs:
    costs: Costs = {work: {LONG: [], SHORT: []} for work in WORK}
    with (
        SqliteConversationStore(folder / "dialogs.sqlite") as conversations,
        SqliteCheckpointStore(folder / "runs.sqlite", types=AGENT_TYPES) as checkpoints,
    ):
        stores = Stores(conversations, checkpoints)
        ids = {length: await _stored(stores, length) for length in (LONG, SHORT)}
        for _ in range(ROUNDS):
            for length, dialog_id in ids.items():
                await _one_round(stores, dialog_id, costs, length)
    return costs


async def _one_round(stores: Stores, dialog_id: str, costs: Costs, length: int) -> None:
    model = MockProvider().queue_tool_call("c1", "add", {"a": 1, "b": 1}).queue_text("it is 2", chunks=4)
    async with Center(stores) as center:
        center.add_provider(model).add_tool(add)
        costs["open"][length].append(await _milliseconds(center.open(dialog_id)))
        dialog = center.dialog(dialog_id)
        costs["append"][length].append(await _milliseconds(dialog.append_message("user", "more").save()))
        costs["send"][length].append(await _milliseconds(dialog.send("1")))
        dialog.truncate_to(length)  # stored when the center is left


async def _stored(stores: Stores, length: int) -> str:
    async with Center(stores) as center:
        dialog = center.new_dialog()
        for at in range(length):
            dialog.append_message("user" if at % 2 == 0 else "assistant", f"message {at} of a long talk")
        return dialog.id


async def _milliseconds(work: Awaitable[object]) -> float:
    began = time.process_time()
    await work
    return 1000 * (time.process_time() - began)
