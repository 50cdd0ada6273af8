"""A whole answer."""

from typing import Literal

import msgspec

from dialoom.llm.messages import Message, ToolCall
from dialoom.llm.usage import Usage

FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "pause"]


class ChatResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One answer and how it ended.

    `finish_reason` is ours and closed; `raw_finish_reason` is the server's word, None when it sent none.
    `warnings` are the codes of the `Warned` events on the way, `attempts` the requests it took.
    """

    message: Message
    finish_reason: FinishReason
    raw_finish_reason: str | None = None
    usage: Usage = Usage()
    model: str = ""
    response_id: str | None = None
    attempts: int = 1
    warnings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return self.message.text

    @property
    def reasoning(self) -> str:
        return self.message.reasoning

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return self.message.tool_calls
