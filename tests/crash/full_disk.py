"""Fill a disk while conversations are written to it: `python -m tests.crash.full_disk`.

The disk is a tmpfs of 1 MiB, which only root may mount. When it is full the store must say so, and hold every
entry that was acknowledged, also when it is opened again. Prints counts; exits 1 on any loss.
"""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dialoom.base.errors import StoreError
from dialoom.conversation import Append, Conversation, TextEntry
from tests.crash.conversation_kills import KINDS
from tests.crash.conversation_writer import open_store

FULL = "is full; free some space, then try again"
MOST = 1000
"""More entries of 10,000 characters than the disk can hold."""


class NoDiskError(Exception):
    """A disk cannot be mounted here; the text says why."""


@dataclass
class Filled:
    """What was found when the disk was full."""

    acknowledged: int = 0
    problems: list[str] = field(default_factory=list[str])


@contextmanager
def small_disk(place: Path) -> Generator[Path]:
    """Mount a file system of 1 MiB in the folder `place`. Raises `NoDiskError`."""
    disk = place / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "dialoom", disk]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else str(error)
        raise NoDiskError(
            f"NOT TESTED: a full disk; mounting a tmpfs is not allowed here: {reason}"
        ) from error
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


async def fill(kind: str, disk: Path) -> Filled:
    """Append until the disk is full, then look at what is there, now and after opening again."""
    conversation, filled = Conversation(), Filled()
    entries: list[TextEntry] = []
    with open_store(kind, disk) as store:
        await store.create(conversation)
        try:
            for at in range(MOST):
                entry = TextEntry(role="user", content=f"{at} " + "x" * 10_000)
                await store.append(conversation.id, [Append(entry)])
                entries.append(entry)
            filled.problems.append(f"{kind}: the disk never was full")
        except StoreError as error:
            if FULL not in str(error):
                filled.problems.append(f"{kind}: a full disk is told as: {error}")
        if (await store.load(conversation.id)).entries != tuple(entries):
            filled.problems.append(f"{kind}: what was acknowledged is not what is there")
    with open_store(kind, disk) as store:
        if (await store.load(conversation.id)).entries != tuple(entries):
            filled.problems.append(f"{kind}: what was acknowledged is not there after opening again")
        if [header.id for header in (await store.page()).headers] != [conversation.id]:
            filled.problems.append(f"{kind}: the conversation is not listed")
    filled.acknowledged = len(entries)
    return filled


def main() -> int:
    problems: list[str] = []
    for kind in KINDS:
        try:
            with (
                tempfile.TemporaryDirectory(prefix="dialoom-full-") as place,
                small_disk(Path(place)) as disk,
            ):
                filled = asyncio.run(fill(kind, disk))
        except NoDiskError as error:
            print(error)
            return 0
        print(
            f"{kind}: full after {filled.acknowledged} acknowledged calls, problems: {len(filled.problems)}",
            flush=True,
        )
        problems += filled.problems
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
