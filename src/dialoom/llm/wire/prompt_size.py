"""How long a prompt is, to notice a server that reads only a part of it."""

from collections.abc import Sequence
from typing import Self

import msgspec

from dialoom.llm.messages import Message


class PromptSize(msgspec.Struct, frozen=True):
    """What is known of a prompt's length: bytes sent, and tokens reported for the turn before."""

    sent_bytes: int
    previous_tokens: int | None

    @classmethod
    def of(cls, body: bytes, messages: Sequence[Message]) -> Self:
        """Return the size of a request whose history tells what the latest answer in it was read from."""
        answered = (message.usage for message in reversed(messages) if message.role == "assistant")
        files = sum(len(part.data) for message in messages for part in message.files)
        return cls(
            len(body) - files * 4 // 3,
            next((usage.input_tokens for usage in answered if usage is not None), None),
        )

    def was_cut(self, reported: int | None) -> bool:
        """Whether a server that reports so few tokens must have dropped a part of the prompt."""
        if reported is None or self.previous_tokens is None:
            return False
        return reported < self.previous_tokens and reported < self.sent_bytes // 16
