"""How a run of a dialog ended."""

from typing import Self

import msgspec

from dialoom.agent import AgentStopReason
from dialoom.base.errors import DialoomError
from dialoom.llm import Usage


class DialogResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended. `finished` is a whole answer and nothing else; `text` is what was said last.

    `waiting` are the ids of cards a person has to answer, when `stop_reason` is `needs_approval`. `error` is
    why the run failed, None when it did not: a run that was cancelled, or waits, has not failed.
    """

    run_id: str
    stop_reason: AgentStopReason
    text: str = ""
    waiting: tuple[str, ...] = ()
    usage: Usage = Usage()
    error: DialoomError | None = None

    @property
    def finished(self) -> bool:
        return self.stop_reason == "finished"

    def raise_for_error(self) -> Self:
        """Return self, or raise why the run failed."""
        if self.error is not None:
            raise self.error
        return self
