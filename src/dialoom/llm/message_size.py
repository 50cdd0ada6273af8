"""How large a message is: in characters, and in tokens as far as that can be told without a tokenizer."""

from typing import assert_never

import msgspec

from dialoom.llm.files import FilePart
from dialoom.llm.messages import (
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    RefusalPart,
    SourcePart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResultPart,
)

FILE_TOKENS = 1_500
"""What a picture takes, about; no wire tells before it was sent."""
_FRAME_TOKENS = 4
"""What the role and the ends of a message take, about."""


def character_count(message: Message) -> int:
    """Return the characters of a message that a model reads, the arguments of its calls among them."""
    return sum(len(_text(part)) for part in message.parts)


def token_estimate(message: Message) -> int:
    """Return about how many tokens a message is, rather too many than too few.

    One for three bytes of UTF-8: a third too many for English, about right for Chinese.
    """
    read = sum(_utf8_bytes(_text(part)) for part in message.parts)
    return _FRAME_TOKENS + FILE_TOKENS * len(message.files) + (read + 2) // 3


def _text(part: Part) -> str:
    match part:
        case TextPart() | SourcePart() | RefusalPart():
            return part.text
        case ToolResultPart():
            return part.content
        case ToolCallPart():
            return _arguments(part.call)
        case ReasoningPart():
            return part.text if part.signature else ""  # an unsigned thought is seldom sent back
        case OpaquePart():
            return part.block
        case FilePart():
            return ""
        case _:
            assert_never(part)


def _arguments(call: ToolCall) -> str:
    return call.raw or msgspec.json.encode(call.arguments).decode()


def _utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
