"""What one run does, told to all who listen: by signals, as events, and to the readers of its handle."""

from dialoom.base.errors import DialoomError
from dialoom.conversation import TextEntry
from dialoom.dialog.errors import TurnFailedError
from dialoom.dialog.events import (
    DialogEvent,
    MessageAppended,
    Noticed,
    RunFailed,
    RunFinished,
    RunStarted,
    StreamBegan,
    StreamDelta,
    StreamEnded,
    StreamReasoning,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
)
from dialoom.dialog.handle import RunHandle
from dialoom.dialog.live_stream import LiveStream, Signals
from dialoom.dialog.result import DialogResult
from dialoom.dialog.transcript import Transcript
from dialoom.llm import FilePart


class Announcer:
    """Tells what one run does: events are numbered from 1 and carry its id; its last one comes once."""

    def __init__(
        self, signals: Signals, stream: LiveStream, transcript: Transcript, *, handle: RunHandle
    ) -> None:
        self._signals = signals
        self._stream = stream
        self._transcript = transcript
        self._handle = handle
        self._run_id = handle.run_id
        self._seq = 0

    def started(self, dialog_id: str) -> None:
        self._tell(RunStarted(run_id=self._run_id, seq=self._next(), dialog_id=dialog_id))

    def round_began(self) -> None:
        self._stream.begin()
        self._tell(StreamBegan(run_id=self._run_id, seq=self._next()))

    def piece(self, text: str) -> None:
        self._stream.add(text)
        self._tell(StreamDelta(run_id=self._run_id, seq=self._next(), text=text))

    def thought(self, text: str) -> None:
        self._stream.add_reasoning(text)
        self._tell(StreamReasoning(run_id=self._run_id, seq=self._next(), text=text))

    def appended(self, indexes: tuple[int, ...]) -> None:
        """Tell of new messages; the model's own words end their round."""
        for index in indexes:
            self._signals.message_appended.emit(index)
            self._tell(MessageAppended(run_id=self._run_id, seq=self._next(), index=index))
            entry = self._transcript.entry(index)
            if isinstance(entry, TextEntry) and entry.role == "assistant" and self._stream.is_open:
                self._end_round(entry)

    def removed(self, left: int) -> None:
        """Tell that the messages behind the first `left` are not there any more."""
        self._signals.messages_removed.emit(left)

    def noticed(self, code: str, message: str) -> None:
        self._tell(Noticed(run_id=self._run_id, seq=self._next(), code=code, message=message))

    def tool_started(self, call_id: str, tool: str) -> None:
        self._tell(ToolStarted(run_id=self._run_id, seq=self._next(), call_id=call_id, tool=tool))

    def tool_progressed(self, call_id: str, tool: str, value: object) -> None:
        event = ToolProgressed(run_id=self._run_id, seq=self._next(), call_id=call_id, tool=tool, value=value)
        self._tell(event)

    def tool_finished(self, call_id: str, tool: str, *, is_error: bool, files: tuple[FilePart, ...]) -> None:
        event = ToolFinished(
            run_id=self._run_id,
            seq=self._next(),
            call_id=call_id,
            tool=tool,
            is_error=is_error,
            files=files,
        )
        self._tell(event)

    def ended(self, result: DialogResult) -> None:
        """Tell the end. Where it is a failure nothing more is said of a round that was under way."""
        if result.error is not None:
            self._stream.close()
            self.failed(result.error)
            return
        if self._stream.is_open:
            self._end_round(TextEntry(role="assistant", content=self._stream.text))
        self._signals.run_finished.emit(result)
        event = RunFinished(
            run_id=self._run_id,
            seq=self._next(),
            stop_reason=result.stop_reason,
            text=result.text,
            waiting=result.waiting,
        )
        self._tell(event)

    def failed(self, error: DialoomError) -> None:
        """Tell a failure as the last event."""
        code = error.reason if isinstance(error, TurnFailedError) else error.code
        self._signals.run_failed.emit(str(error))
        self._tell(RunFailed(run_id=self._run_id, seq=self._next(), code=code, message=str(error)))

    def _end_round(self, entry: TextEntry) -> None:
        if entry.status == "incomplete":
            self._stream.close()
            return
        self._stream.end(entry.content)
        self._tell(StreamEnded(run_id=self._run_id, seq=self._next(), text=entry.content))

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    def _tell(self, event: DialogEvent) -> None:
        self._signals.events.emit(event)
        self._handle.put(event)
