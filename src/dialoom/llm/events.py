"""The pieces of an answer, in the order they arrive. Together they add up to its message."""

from typing import Literal

import msgspec

from dialoom.llm.messages import ToolCall
from dialoom.llm.response import ChatResponse
from dialoom.llm.usage import Usage

WarningCode = Literal["finish_inferred", "finish_unknown", "prompt_truncated_by_server"]


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


class UsageUpdate(msgspec.Struct, frozen=True, tag_field="type", tag="usage.updated"):
    """Token counts so far."""

    usage: Usage


class Warned(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="response.warned"):
    """Something about the answer that a person should know; the answer goes on."""

    code: WarningCode
    message: str


class ResponseCompleted(msgspec.Struct, frozen=True, tag_field="type", tag="response.completed"):
    """The answer is whole. The last event of every stream that does not raise."""

    response: ChatResponse


StreamEvent = (
    ResponseStarted
    | TextDelta
    | ReasoningDelta
    | RefusalDelta
    | ToolCallStarted
    | ToolCallDelta
    | ToolCallReady
    | UsageUpdate
    | Warned
    | ResponseCompleted
)
