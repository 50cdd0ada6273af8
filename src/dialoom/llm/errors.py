"""Why a model did not answer. Kinds are closed, so that a caller can decide by them."""

from typing import Literal

import msgspec

from dialoom.base.errors import DialoomError
from dialoom.llm.messages import Message, Origin

ErrorKind = Literal[
    "rate_limit",
    "quota",
    "overloaded",
    "server_error",
    "timeout",
    "connection",
    "auth",
    "bad_request",
    "context_window",
    "content_filter",
    "invalid_response",
    "incomplete_stream",
    "empty_response",
]

_WORTH_REPEATING: frozenset[ErrorKind] = frozenset(
    (
        "rate_limit",
        "overloaded",
        "server_error",
        "timeout",
        "connection",
        "incomplete_stream",
        "empty_response",
    )
)


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What a server said when it did not answer. `retry_after` counts seconds from the reply."""

    status: int | None = None
    retry_after: float | None = None
    request_id: str | None = None


NO_REPLY = Reply()


class ProviderError(DialoomError):
    """A model did not answer, or not to the end.

    `kind` says what a caller can do about it, `retryable` whether the same request may succeed later.
    `partial` is what had arrived of the answer, None when nothing had. Neither `str` nor `repr` holds a
    key or the words of a conversation.
    """

    code = "provider"

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        origin: Origin | None = None,
        reply: Reply = NO_REPLY,
        retryable: bool | None = None,
        partial: Message | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.origin = origin
        self.reply = reply
        self.retryable = kind in _WORTH_REPEATING if retryable is None else retryable
        self.partial = partial

    @property
    def status(self) -> int | None:
        """The HTTP status, None when no reply came."""
        return self.reply.status

    @property
    def retry_after(self) -> float | None:
        """Seconds the server asks to wait before the next request."""
        return self.reply.retry_after

    @property
    def request_id(self) -> str | None:
        return self.reply.request_id

    @property
    def provider(self) -> str | None:
        return self.origin.provider if self.origin else None

    @property
    def model(self) -> str | None:
        return self.origin.model if self.origin else None

    def __repr__(self) -> str:
        return f"ProviderError(kind={self.kind!r}, status={self.status!r}, message={str(self)!r})"
