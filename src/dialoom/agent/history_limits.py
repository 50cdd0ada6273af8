"""How much of its history an agent's model gets. What was said stays whole; only the view is cut.

Exports for `dialoom.agent`: `HistoryLimits`, `trim`.
"""

from collections.abc import Sequence

from dialoom.llm.messages import Message
from dialoom.llm.trim import Bounds, TurnWindow


class HistoryLimits(Bounds, frozen=True, kw_only=True):
    """The most a model gets: `turns`, `messages`, `characters`, `tokens`; None is no limit.

    `count_tokens` gives the tokens of a message; without it they are estimated, rather too many. Raises
    `UsageError` on a limit that is no whole number from 1 on.
    """

    def window(self) -> TurnWindow:
        """Return what fits a growing history into these limits at a cost that does not grow with it."""
        return TurnWindow(self)


def trim(messages: Sequence[Message], limits: HistoryLimits) -> tuple[Message, ...]:
    """Return the view of `messages` within `limits`.

    Whole turns are left out, oldest first. System messages, messages with a `mark` and the newest turn
    stay even when they alone are more than the limits; no call is parted from its result.
    """
    return limits.window().fit(messages)
