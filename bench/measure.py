"""Taking figures: several contenders turn by turn, so that a noisy machine disturbs all of them alike."""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping


class Turns:
    """The figures of contenders. Iterating names each in turn, round by round; `note` takes the figure.

    The first round fills caches and does not count.
    """

    def __init__(self, names: Iterable[str], rounds: int) -> None:
        self._taken: dict[str, list[float]] = {name: [] for name in names}
        self._rounds = rounds

    def __iter__(self) -> Iterator[str]:
        for _ in range(self._rounds + 1):
            yield from self._taken

    def note(self, name: str, figure: float) -> None:
        self._taken[name].append(figure)

    def medians(self) -> dict[str, float]:
        return {name: statistics.median(figures[1:]) for name, figures in self._taken.items()}


def medians(measures: Mapping[str, Callable[[], float]], *, rounds: int) -> dict[str, float]:
    """Return the median figure of each measure."""
    turns = Turns(measures, rounds)
    for name in turns:
        turns.note(name, measures[name]())
    return turns.medians()


def interleaved(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    rounds: int = 9,
    clock: Callable[[], float] = time.process_time,
) -> tuple[float, float]:
    """Return the median milliseconds of both by `clock`, from the first round on."""
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for times, work in zip(taken, (ours, theirs), strict=True):
            times.append(seconds_of(work, clock))
    return 1000 * statistics.median(taken[0]), 1000 * statistics.median(taken[1])


def seconds_of(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Return the seconds that doing `work` once takes by `clock`."""
    began = clock()
    work()
    return clock() - began


def process_cpu(code: str) -> float:
    """Return the CPU seconds of an interpreter that runs `code`, from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
