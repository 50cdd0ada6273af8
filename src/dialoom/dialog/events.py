"""What a run of a dialog says while it goes on, each with the run's id. Its last event is one of two."""

from typing import TypeAlias

from dialoom.agent import AgentStopReason
from dialoom.base.events import Event
from dialoom.llm import FilePart


class RunStarted(Event, frozen=True, kw_only=True, tag="run.started", tag_field="type"):
    """A run begins. First event of every run."""

    dialog_id: str


class StreamBegan(Event, frozen=True, kw_only=True, tag="stream.began", tag_field="type"):
    """A round begins: its pieces come from now on. Again within a round: the pieces so far are void."""


class StreamDelta(Event, frozen=True, kw_only=True, tag="stream.delta", tag_field="type"):
    """More words of the answer."""

    text: str


class StreamReasoning(Event, frozen=True, kw_only=True, tag="stream.reasoning", tag_field="type"):
    """More of what the model thinks; no part of the answer."""

    text: str


class StreamEnded(Event, frozen=True, kw_only=True, tag="stream.ended", tag_field="type"):
    """The round's answer is whole. A round with tool calls is followed by another."""

    text: str


class ToolStarted(Event, frozen=True, kw_only=True, tag="tool.started", tag_field="type"):
    """A tool is called."""

    call_id: str
    tool: str


class ToolProgressed(Event, frozen=True, kw_only=True, tag="tool.progressed", tag_field="type"):
    """A tool shows how far it is; `value` is its own."""

    call_id: str
    tool: str
    value: object


class ToolFinished(Event, frozen=True, kw_only=True, tag="tool.finished", tag_field="type"):
    """A tool has answered, well or with an error the model reads; `files` are the pictures it returned."""

    call_id: str
    tool: str
    is_error: bool = False
    files: tuple[FilePart, ...] = ()


class MessageAppended(Event, frozen=True, kw_only=True, tag="message.appended", tag_field="type"):
    """A message stands at `index` of `dialog.messages`, and in the store."""

    index: int


class Noticed(Event, frozen=True, kw_only=True, tag="run.noticed", tag_field="type"):
    """Something people should know; the run goes on."""

    code: str
    message: str


class RunFinished(Event, frozen=True, kw_only=True, tag="run.finished", tag_field="type"):
    """The run is over without a failure. `waiting` are the ids of cards to be answered first."""

    stop_reason: AgentStopReason
    text: str = ""
    waiting: tuple[str, ...] = ()


class RunFailed(Event, frozen=True, kw_only=True, tag="run.failed", tag_field="type"):
    """The run failed, or was refused; `message` can be shown as it is."""

    code: str
    message: str


DialogEvent: TypeAlias = (
    RunStarted
    | StreamBegan
    | StreamDelta
    | StreamReasoning
    | StreamEnded
    | ToolStarted
    | ToolProgressed
    | ToolFinished
    | MessageAppended
    | Noticed
    | RunFinished
    | RunFailed
)
