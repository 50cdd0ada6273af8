"""One question and its answer as a line of a cassette."""

import json
from collections.abc import Sequence
from typing import Self

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line, replace_surrogates
from dialoom.llm.cassette.masking import without_named_secrets
from dialoom.llm.errors import ErrorKind, ProviderError, Reply
from dialoom.llm.events import StreamEvent
from dialoom.llm.messages import Message, Origin
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions

FORMAT = 1
_NOT_ASKED = {"timeouts", "retry", "cancel", "extra_headers"}
"""Options that say how to ask, not what; headers carry keys, so they are in no cassette."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A `ProviderError` as it is recorded; what had arrived follows from the events before it."""

    kind: ErrorKind
    message: str
    retryable: bool
    reply: Reply = Reply()
    origin: Origin | None = None

    @classmethod
    def of(cls, error: ProviderError) -> Self:
        return cls(
            kind=error.kind,
            message=str(error),
            retryable=error.retryable,
            reply=error.reply,
            origin=error.origin,
        )

    def error(self, partial: Message | None) -> ProviderError:
        """Return the error again."""
        return ProviderError(
            self.kind,
            self.message,
            origin=self.origin,
            reply=self.reply,
            retryable=self.retryable,
            partial=partial,
        )


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked, and how it was answered: events, and a failure when they ended with one."""

    format: int
    request: dict[str, object]
    events: tuple[StreamEvent, ...]
    error: Failure | None = None


def request_of(messages: Sequence[Message], options: ChatOptions) -> dict[str, object]:
    """Return what a request asks, as plain JSON values; ids, times and counts of messages are left out."""
    asked = {
        name: getattr(options, name)
        for name in options.__struct_fields__
        if name not in _NOT_ASKED and getattr(options, name) != getattr(DEFAULT_OPTIONS, name)
    }
    if "extra_body" in asked:
        asked["extra_body"] = without_named_secrets(dict(options.extra_body))
    said = [Message(role=each.role, parts=each.parts, name=each.name) for each in messages]
    try:
        text = json.dumps(msgspec.to_builtins({"messages": said, **asked}), ensure_ascii=False)
        return msgspec.json.decode(replace_surrogates(text), type=dict[str, object])
    except (TypeError, ValueError, RecursionError, msgspec.DecodeError) as error:
        raise UsageError(f"the request cannot be written as JSON: {one_line(str(error))}") from error


def read_recordings(text: bytes, place: str) -> list[Recording]:
    """Read the lines of a cassette. Raises `UsageError`, which names the line that is none."""
    decoder = msgspec.json.Decoder(Recording)
    found: list[Recording] = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            recording = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise _unreadable(place, number, str(error)) from error
        if recording.format != FORMAT:
            raise _unreadable(place, number, f"it has format {recording.format}, this reads {FORMAT}")
        found.append(recording)
    return found


def _unreadable(place: str, number: int, why: str) -> UsageError:
    return UsageError(
        f"line {number} of the cassette {place} cannot be read: {one_line(why)}; record it anew"
    )
