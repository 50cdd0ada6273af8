"""What every program here that kills takes: how often on each store, and a seed for the moments."""

import argparse
import random
from dataclasses import dataclass

KILLS = 300
"""How often each store is killed when nobody says otherwise."""


@dataclass(frozen=True)
class Chosen:
    """What to do: `kills` on each kind of store, at moments that follow from `seed`."""

    kills: int
    seed: int


def read_arguments(prog: str, about: str | None, words: list[str] | None = None) -> Chosen:
    """Read `words`, those of the command line when None; a seed that is not given is a fresh one."""
    parser = argparse.ArgumentParser(prog=prog, description=about)
    parser.add_argument("--kills", type=int, default=KILLS, help=f"how often on each store; {KILLS}")
    parser.add_argument("--seed", type=int, default=None, help="of the moments; a fresh one is printed")
    given = parser.parse_args(words)
    return Chosen(given.kills, random.SystemRandom().randrange(10**6) if given.seed is None else given.seed)
