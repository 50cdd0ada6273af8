"""The pieces of an answer, in the order they arrive. Together they add up to its message."""

from typing import Literal

import msgspec

from dialoom.llm.errors import ErrorKind
from dialoom.llm.messages import ToolCall
from dialoom.llm.response import ChatResponse
from dialoom.llm.usage import Usage

WarningCode = Literal[
    "files_refused", "finish_inferred", "finish_unknown", "prompt_truncated_by_server", "tool_mode_changed"
]


class ResponseStarted(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="response.started"):
    """The server began to answer. `model` is its own word for what answers, empty when it does not say."""

    model: str = ""
    response_id: str | None = None


class TextDelta(msgspec.Struct, frozen=True, tag_field="type", tag="text.delta"):
    """More words of the answer; never empty, cut anywhere between two characters."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, tag_field="type", tag="reasoning.delta"):
    """More of what the model thinks."""

    text: str


class ReasoningEnded(msgspec.Struct, frozen=True, tag_field="type", tag="reasoning.ended"):
    """A thought is whole. `signature` proves it to its provider, when that signs thoughts at all."""

    signature: str | None = None


class RefusalDelta(msgspec.Struct, frozen=True, tag_field="type", tag="refusal.delta"):
    """More of the model's words for not answering."""

    text: str


class ToolCallStarted(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="tool_call.started"):
    """The model began to call a tool. `index` counts the calls of this answer from 0."""

    index: int
    id: str
    name: str


class ToolCallDelta(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="tool_call.delta"):
    """More of the arguments text of call `index`; for display, not for running."""

    index: int
    arguments: str


class ToolCallReady(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="tool_call.ready"):
    """Call `index` is whole."""

    index: int
    call: ToolCall


class OpaqueBlock(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="opaque.block"):
    """A block for its provider only, as its exact JSON text: a sealed thought, a tool it ran itself."""

    provider: str
    block: str


class UsageUpdate(msgspec.Struct, frozen=True, tag_field="type", tag="usage.updated"):
    """Token counts so far."""

    usage: Usage


class Warned(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="response.warned"):
    """Something about the answer that a person should know; the answer goes on."""

    code: WarningCode
    message: str


class Retrying(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="response.retrying"):
    """The request failed and is made again in `wait` seconds, as number `attempt`; the answer starts anew.

    `restarts` says that words already streamed are taken back: whoever shows them clears them.
    """

    attempt: int
    wait: float
    kind: ErrorKind
    message: str
    restarts: bool = False


class FellBack(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="response.fell_back"):
    """A provider failed before its first words, and `provider` is asked instead."""

    provider: str
    kind: ErrorKind
    message: str


class ResponseCompleted(msgspec.Struct, frozen=True, tag_field="type", tag="response.completed"):
    """The answer is whole. The last event of every stream that does not raise."""

    response: ChatResponse


StreamEvent = (
    ResponseStarted
    | TextDelta
    | ReasoningDelta
    | ReasoningEnded
    | RefusalDelta
    | ToolCallStarted
    | ToolCallDelta
    | ToolCallReady
    | OpaqueBlock
    | UsageUpdate
    | Warned
    | Retrying
    | FellBack
    | ResponseCompleted
)
