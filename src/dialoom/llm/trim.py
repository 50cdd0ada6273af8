"""What a model gets of a history that is too long: the newest turns, whole. The history stays as it is."""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence

import msgspec

from dialoom.base.errors import UsageError
from dialoom.llm.given import is_count, named
from dialoom.llm.message_size import character_count, token_estimate
from dialoom.llm.messages import Message

_Measure = Callable[[Message], int]


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The most that is left of a history; None is no bound. System and marked messages count as well."""

    turns: int | None = None
    messages: int | None = None
    characters: int | None = None
    tokens: int | None = None
    count_tokens: _Measure = token_estimate

    def __post_init__(self) -> None:
        refuse_below_one(self, ("turns", "messages", "characters", "tokens"))
        if not callable(self.count_tokens):
            raise UsageError(
                f"count_tokens is {named(self.count_tokens)}; give a function of a message, or leave it out"
            )


def refuse_below_one(limits: msgspec.Struct, names: Sequence[str]) -> None:
    """Raise `UsageError` that names a limit which is no whole number, or would leave nothing."""
    for name in names:
        limit: object = getattr(limits, name)
        if limit is not None and not is_count(limit, least=1):
            raise UsageError(f"{name} is {limit!r:.40}; give 1 or more, or None for no limit")


class TurnWindow:
    """Fits a growing history into bounds, and looks at each of its messages once.

    A turn runs from one user message to the next, and further while a call made in it has a result behind
    that. Turns are left out whole, oldest first. System messages and the newest turn always stay, and so
    do marked messages, each with its call and the results beside it.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._start_anew()

    def fit(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the view of `messages`; of a history that has grown since, only what is new is read."""
        history = tuple(messages)
        if list(history[: len(self._seen)]) != self._seen:
            self._start_anew()
        for message in history[len(self._seen) :]:
            self._add(message)
        start = self._first_kept()
        kept = self.kept_before(start)
        return history if start == len(kept) else (*kept, *history[start:])

    def kept_before(self, start: int) -> list[Message]:
        """Return what stays of the history last given when all before `start` is left out."""
        return [self._seen[at] for at in self._kept[: bisect_left(self._kept, start)]]

    def _start_anew(self) -> None:
        self._seen: list[Message] = []
        self._turns: list[int] = []  # where each begins
        self._heads: list[int] = []  # for a result the place of its call, for all others their own
        self._asked: dict[str, int] = {}
        self._kept: list[int] = []  # what stays even out of turns that go, in order
        self._kept_heads: set[int] = set()
        self._gauges = _gauges(self._bounds)

    def _add(self, message: Message) -> None:
        sizes = [gauge.measure(message) for gauge in self._gauges]  # first: a foreign counter may raise
        at = head = len(self._seen)
        if message.role == "tool":
            head = min((self._join(result.call_id, at) for result in message.tool_results), default=at)
        if message.role == "user" or (not self._turns and message.role != "system"):
            self._turns.append(at)
        for call in message.tool_calls:
            self._asked[call.id] = at
        if message.role == "system" or message.mark is not None:
            self._keep(head)
        if head in self._kept_heads:
            self._kept.append(at)
        self._heads.append(head)
        for gauge, size in zip(self._gauges, sizes, strict=True):
            gauge.add(size)
        self._seen.append(message)

    def _join(self, call_id: str, at: int) -> int:
        """Return the place of the call that a result answers; all between them is one turn."""
        asked = self._asked.pop(call_id, at)
        while self._turns and self._turns[-1] > asked:
            self._turns.pop()
        return asked

    def _keep(self, head: int) -> None:
        if head not in self._kept_heads:
            self._kept_heads.add(head)
            for at in range(head, len(self._heads)):
                if self._heads[at] == head:
                    insort(self._kept, at)

    def _first_kept(self) -> int:
        """Return where the oldest turn that stays begins."""
        last = len(self._turns) - 1
        if last < 0:
            return len(self._seen)
        oldest = 0 if self._bounds.turns is None else max(0, last + 1 - self._bounds.turns)
        return self._turns[bisect_left(self._turns, 0, oldest, last, key=self._room)]

    def _room(self, start: int) -> int:
        """Return 0 or more when what stays from `start` on fits; it never shrinks from turn to turn."""
        kept = self._kept[: bisect_left(self._kept, start)]
        return min((gauge.most - gauge.of(kept, start) for gauge in self._gauges), default=0)


class _Gauge:
    """One bound, and what the messages add up to that are measured against it."""

    def __init__(self, most: int, measure: _Measure) -> None:
        self.most = most
        self.measure = measure
        self._totals = [0]

    def add(self, size: int) -> None:
        self._totals.append(self._totals[-1] + size)

    def of(self, kept: Sequence[int], start: int) -> int:
        """Return the size of the messages at `kept` and from `start` on."""
        totals = self._totals
        return totals[-1] - totals[start] + sum(totals[at + 1] - totals[at] for at in kept)


def _gauges(bounds: Bounds) -> list[_Gauge]:
    measured: tuple[tuple[int | None, _Measure], ...] = (
        (bounds.messages, lambda _: 1),
        (bounds.characters, character_count),
        (bounds.tokens, bounds.count_tokens),
    )
    return [_Gauge(most, measure) for most, measure in measured if most is not None]
