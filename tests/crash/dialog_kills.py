"""Kill a program in the middle of its turns: `python -m tests.crash.dialog_kills`.

After each kill -9 another process goes on. When a conversation has come to its end its log must have every
entry once and in order, each approval asked once, and each kill may have cost one more request to the model.
Prints counts per store; exits 1 on any problem.
"""

import asyncio
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.crash.arguments import read_arguments
from tests.crash.dialog_talk import REQUESTS_PER_TURN, TURNS, open_conversations, problems_of, read_log, talk

KINDS = ("sqlite", "yaml")
LONGEST = 0.3
"""Seconds a process lives at most before it is killed; a whole conversation takes longer."""


class Tally:
    """What the kills of one kind of store came to."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.kills = 0
        self.talks = 0
        self.more_requests = 0
        self.problems: list[str] = []

    def __str__(self) -> str:
        return (
            f"dialogs, {self.kind}: {self.kills} kills, {self.talks} conversations,"
            f" {self.more_requests} requests made again, {len(self.problems)} problems"
        )

    def check(self, folder: Path, kills: int) -> None:
        """Look at a conversation that came to its end after so many kills."""
        with open_conversations(self.kind, folder) as store:
            entries = asyncio.run(read_log(store))
        found = problems_of(entries)
        more = (folder / "requests").read_text().count("request") - TURNS * REQUESTS_PER_TURN
        if not 0 <= more <= kills:
            found.append(f"{more} more requests than needed after {kills} kills")
        self.problems += [f"{self.kind} {folder.name}: {problem}" for problem in found]
        self.more_requests += more
        self.talks += 1


def run_kills(kind: str, place: Path, kills: int, *, seed: int) -> Tally:
    """Kill so often, each time at a random moment, and end with a conversation that is through."""
    rng, tally = random.Random(seed), Tally(kind)
    warm = place / f"{kind}-warm"
    warm.mkdir()
    asyncio.run(talk(kind, warm))  # or every child would spend its life importing
    while tally.kills < kills and not tally.problems:
        folder = place / f"{kind}-{tally.talks}"
        folder.mkdir()
        before = tally.kills
        while not talk_until(kind, folder, rng.random() * LONGEST if tally.kills < kills else None):
            tally.kills += 1
            if tally.kills > kills:
                tally.problems.append(f"{kind} {folder.name}: the program ended badly; see above")
                return tally
        tally.check(folder, tally.kills - before)
    return tally


def talk_until(kind: str, folder: Path, seconds: float | None) -> bool:
    """Carry the conversation on in a child, killed after `seconds`. Whether it came to its end."""
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(talk(kind, folder))
            os._exit(0)
        except BaseException:  # noqa: BLE001 - the child must never return into the parent's code
            traceback.print_exc()
        finally:
            os._exit(1)
    if seconds is not None:
        time.sleep(seconds)  # the moment of the kill, not a wait for something
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0


def main() -> int:
    chosen = read_arguments("dialog_kills", __doc__)
    problems: list[str] = []
    for kind in KINDS:
        with tempfile.TemporaryDirectory(prefix="dialoom-kills-") as place:
            tally = run_kills(kind, Path(place), chosen.kills, seed=chosen.seed)
        print(tally, flush=True)
        problems += tally.problems
    print("\n".join([*problems, f"dialogs: seed {chosen.seed}"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
