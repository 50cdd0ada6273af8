"""What the model is to read next: the context, the turn, cut to the limits."""

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Final

from dialoom.agent.compaction import summarised
from dialoom.agent.history_limits import HistoryWindow
from dialoom.agent.spec import AgentSpec
from dialoom.graph.state import State
from dialoom.llm.messages import Message

_MAX_WINDOWS: Final = 256


class PromptView:
    """Makes prompts, and remembers of each run how far its history was measured already.

    What is remembered saves time and nothing else: of more than `_MAX_WINDOWS` runs the oldest start anew.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._windows: OrderedDict[tuple[str, str], HistoryWindow] = OrderedDict()

    def of(self, spec: AgentSpec, state: State, run_id: str) -> Sequence[Message]:
        """Return the prompt of the next request in `run_id`."""
        return self.fitted(summarised(said(spec, state), state["summary"]), spec, run_id)

    def fitted(self, messages: Sequence[Message], spec: AgentSpec, run_id: str) -> Sequence[Message]:
        """Return `messages` within the limits; what is old enough to be told in short is told before."""
        return messages if spec.settings.history is None else self._window(spec, run_id).fit(messages)

    def forget(self, spec: AgentSpec, run_id: str) -> None:
        """Let go of a run that is over."""
        with self._lock:
            self._windows.pop((run_id, spec.name), None)

    def _window(self, spec: AgentSpec, run_id: str) -> HistoryWindow:
        assert spec.settings.history is not None
        with self._lock:
            window = self._windows.get((run_id, spec.name))
            if window is None:
                window = self._windows[run_id, spec.name] = spec.settings.history.window()
                if len(self._windows) > _MAX_WINDOWS:
                    self._windows.popitem(last=False)
        return window


def said(spec: AgentSpec, state: State) -> list[Message]:
    """Return context and turn, without an answer that broke off just now: it is being asked for again."""
    before = spec.context(state) if callable(spec.context) else spec.context
    turn: Sequence[Message] = state["turn"]
    messages = [*before, *turn]
    broken: Sequence[tuple[int, str]] = state["broken"]
    if broken and broken[-1][0] == len(turn) - 1:
        messages.pop()
    return messages
