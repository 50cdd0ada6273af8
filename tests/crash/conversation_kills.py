"""Kill a writing program again and again: `python -m tests.crash.conversation_kills`.

After each kill -9 the store must open, hold what it held before and every acknowledged entry once, in each
writer's order, and no half of a call. Prints counts; exits 1 on any loss.
"""

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from dialoom.base.errors import StoreError
from dialoom.conversation import Conversation, TextEntry
from tests.crash.arguments import read_arguments
from tests.crash.conversation_writer import WRITERS, open_store, texts_of

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("sqlite", "yaml")
PER_CONVERSATION = 10  # a yaml file is written whole, so a conversation must not grow for ever


@dataclass
class Counts:
    """What was found after the kills of one kind of store."""

    kills: int = 0
    acknowledged: int = 0
    unacknowledged: int = 0
    """Calls that were stored though the kill came before their acknowledgement; allowed."""
    problems: list[str] = field(default_factory=list[str])


def run_kills(kind: str, place: Path, kills: int, *, seed: int) -> Counts:
    """Kill a writer of one store so often, and look after each kill."""
    rng, counts = random.Random(seed), Counts()
    for start in range(0, kills, PER_CONVERSATION):
        conversation = Conversation()
        with open_store(kind, place) as store:
            asyncio.run(store.create(conversation))
        before: list[str] = []
        for at in range(start, min(kills, start + PER_CONVERSATION)):
            said = kill_one([kind, str(place), conversation.id, str(at)], rng)
            counts.kills += 1
            try:
                texts = read_texts(kind, place, conversation.id)
            except StoreError as error:
                counts.problems.append(f"{kind}, kill {at}: not readable: {error}")
                break
            compare(before, texts, said=said, at=str(at), counts=counts)
            before = texts
    return counts


def kill_one(arguments: list[str], rng: random.Random) -> list[str]:
    """Start a writer, kill it at a random moment; return the acknowledgements it printed."""
    with start_writer(arguments) as child:
        release_writers(child)
        assert child.stdout is not None
        # every other kill comes after an acknowledgement, also where the machine is busy
        said = child.stdout.readline() if rng.random() < 0.5 else ""
        time.sleep(rng.uniform(0, 0.06))  # the moment of the kill, not a wait for something
        child.kill()
        said += child.communicate(timeout=60)[0]
    return [line for line in said.splitlines() if line in WRITERS]


def start_writer(arguments: list[str]) -> subprocess.Popen[str]:
    """Start a writer, which opens its store and waits to be released."""
    command = [sys.executable, "-m", "tests.crash.conversation_writer", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def release_writers(*children: subprocess.Popen[str]) -> None:
    """Let writers go, when each of them has its store open."""
    for child in children:
        assert child.stdout is not None
        ready = child.stdout.readline()
        assert ready == "ready\n", "the writer did not start"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()


def read_texts(kind: str, place: Path, conversation_id: str) -> list[str]:
    with open_store(kind, place) as store:
        entries = asyncio.run(store.load(conversation_id)).entries
    return [entry.content for entry in entries if isinstance(entry, TextEntry)]


def compare(before: list[str], texts: list[str], *, said: list[str], at: str, counts: Counts) -> None:
    """Note what is missing, twice, halved or out of order."""
    if texts[: len(before)] != before:
        counts.problems.append(f"kill {at}: what was there before has changed")
    new = texts[len(before) :]
    for writer in WRITERS:
        own = [text for text in new if text.split()[1] == writer]
        calls, acknowledged = len(own) // 2, said.count(writer)
        if own != [text for number in range(calls) for text in texts_of(number, writer=writer, at=at)]:
            counts.problems.append(f"kill {at}: writer {writer} is twice, halved or out of order: {own}")
        if calls < acknowledged:
            counts.problems.append(f"kill {at}: writer {writer} lost {acknowledged - calls} calls")
        counts.acknowledged += acknowledged
        counts.unacknowledged += max(0, calls - acknowledged)


def main() -> int:
    chosen = read_arguments("conversation_kills", __doc__)
    problems: list[str] = []
    for kind in KINDS:
        with tempfile.TemporaryDirectory(prefix="dialoom-kills-") as place:
            counts = run_kills(kind, Path(place), chosen.kills, seed=chosen.seed)
        print(
            f"conversations, {kind}: {counts.kills} kills, {counts.acknowledged} calls acknowledged,"
            f" {counts.unacknowledged} stored unacknowledged, {len(counts.problems)} problems",
            flush=True,
        )
        problems += counts.problems
    print("\n".join([*problems, f"conversations: seed {chosen.seed}"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
