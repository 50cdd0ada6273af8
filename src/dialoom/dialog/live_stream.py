"""What a dialog tells while it lives, and the answer that is coming in."""

from dialoom.dialog.events import DialogEvent
from dialoom.dialog.result import DialogResult
from dialoom.dialog.signals import Signal


class Signals:
    """What a dialog tells. Connect with `dialog.stream_delta.connect(function)`.

    `events` passes every event of every run, each with the id of its run; the others pass what they are
    called after. `messages_removed` says how many messages are left.
    """

    def __init__(self) -> None:
        self.message_appended = Signal[[int]]("message_appended")
        self.messages_removed = Signal[[int]]("messages_removed")
        self.stream_began = Signal[[]]("stream_began")
        self.stream_delta = Signal[[str]]("stream_delta")
        self.stream_reasoning = Signal[[str]]("stream_reasoning")
        self.stream_ended = Signal[[str]]("stream_ended")
        self.run_finished = Signal[[DialogResult]]("run_finished")
        self.run_failed = Signal[[str]]("run_failed")
        self.events = Signal[[DialogEvent]]("events")


class LiveStream:
    """The pieces of the answer that is coming in; each is told by the signals of its dialog.

    A piece may be cut in the middle of a character or of Markdown: only the whole text is ever parsed.
    """

    def __init__(self, signals: Signals) -> None:
        self.is_open = False
        self._signals = signals
        self._text: list[str] = []
        self._reasoning: list[str] = []

    @property
    def text(self) -> str:
        """What has come of the answer and is not closed."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """What the model thought; stays until the next answer begins."""
        return "".join(self._reasoning)

    def begin(self) -> None:
        self.is_open = True
        self._text, self._reasoning = [], []
        self._signals.stream_began.emit()

    def add(self, text: str) -> None:
        self._text.append(text)
        self._signals.stream_delta.emit(text)

    def add_reasoning(self, text: str) -> None:
        self._reasoning.append(text)
        self._signals.stream_reasoning.emit(text)

    def close(self) -> None:
        """Let go of the text without a word."""
        self.is_open, self._text = False, []

    def end(self, whole: str) -> None:
        """Close the answer, which is `whole`."""
        self.close()
        self._signals.stream_ended.emit(whole)
