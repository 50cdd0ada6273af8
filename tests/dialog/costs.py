"""What a dialog of 2,000 messages costs beside one of 20: `python -m tests.dialog.costs`.

Opens, appends and sends by turns on SQLite, and prints medians of CPU milliseconds and their ratio; exits 1
when a ratio is over 1.5.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path

from dialoom.agent import AGENT_TYPES
from dialoom.dialog import Center, Stores
from dialoom.stores import SqliteCheckpointStore, SqliteConversationStore
from tests.dialog.talk import Echo, add, long_dialog

LENGTHS = (20, 2000)
ROUNDS = 20
MOST = 1.5


async def milliseconds(work: Awaitable[object]) -> float:
    began = time.process_time()
    await work
    return 1000 * (time.process_time() - began)


async def measure(stores: Stores) -> dict[str, dict[int, list[float]]]:
    """Return what each thing cost at each length, round by round."""
    ids = {length: await long_dialog(stores, length) for length in LENGTHS}
    costs: dict[str, dict[int, list[float]]] = {
        work: {length: [] for length in LENGTHS} for work in ("open", "append", "send")
    }
    for _ in range(ROUNDS):
        for length, dialog_id in ids.items():
            async with Center(stores) as center:
                center.add_provider(Echo()).add_tool(add)
                costs["open"][length].append(await milliseconds(center.open(dialog_id)))
                dialog = center.dialog(dialog_id)
                costs["append"][length].append(await milliseconds(dialog.append_message("user", "1").save()))
                costs["send"][length].append(await milliseconds(dialog.send("1")))
                dialog.truncate_to(length)
    return costs


async def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="dialoom-costs-") as folder,
        SqliteConversationStore(Path(folder) / "conversations") as conversations,
        SqliteCheckpointStore(Path(folder) / "threads", types=AGENT_TYPES) as checkpoints,
    ):
        costs = await measure(Stores(conversations, checkpoints))
    worst = 0.0
    for work, by_length in costs.items():
        short, long = (statistics.median(by_length[length]) for length in LENGTHS)
        worst = max(worst, long / short)
        print(f"{work:<7} {short:6.2f} ms at 20, {long:6.2f} ms at 2,000: {long / short:.2f}")
    return 0 if worst <= MOST else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
