"""A wire case: what a server has really sent, and what has to be made of it."""

import base64
from collections.abc import Iterator, Mapping
from email.utils import formatdate
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.llm.json_values import fields_of, items_of, text_of
from dialoom.llm.messages import (
    Message,
    Origin,
    ReasoningPart,
    ToolCall,
    assistant,
    system,
    tool_result,
    user,
)
from dialoom.llm.options import ToolSpec
from dialoom.llm.profile import WireProfile
from dialoom.llm.usage import Usage
from dialoom.testing.wire import WireReply, split_bytes

MAX_CASE_BYTES = 16 * 1024 * 1024
Node: TypeAlias = Mapping[str, object]
"""An object of JSON."""


class RecordedReply(msgspec.Struct, frozen=True, kw_only=True):
    """One response of a case; `abort` resets the connection behind its body."""

    status: int = 200
    headers: Mapping[str, str] = {}
    body_chunks: tuple[str, ...] = ()
    body_encoding: Literal["utf-8", "base64"] = "utf-8"
    abort: bool = False

    @property
    def pieces(self) -> tuple[bytes, ...]:
        """The body, cut as it was recorded."""
        if self.body_encoding == "base64":
            return tuple(base64.b64decode(piece, validate=True) for piece in self.body_chunks)
        return tuple(piece.encode() for piece in self.body_chunks)

    def reply(self, pieces: tuple[bytes, ...], *, now: float) -> WireReply:
        """Return the response in `pieces`; a header `@HTTPDATE+n` is `now` and `n` seconds."""
        headers = {name: _dated(value, now) for name, value in self.headers.items()}
        end = "reset" if self.abort else "keep"
        return WireReply(status=self.status, headers=headers, body=pieces, end=end)


class AskedFor(msgspec.Struct, frozen=True, kw_only=True):
    """What a case asks a provider for."""

    stream: bool = True
    tools: tuple[str, ...] = ()
    history: tuple[dict[str, object], ...] = ()
    history_limits: Mapping[str, int] = {}
    profile: Mapping[str, object] = {}
    response_schema: dict[str, object] | None = None


class WireCase(RecordedReply, frozen=True, kw_only=True):
    """One recorded exchange. `expect`: what has to come of it; `then`: the responses to later requests."""

    id: str
    provider: str
    title: str = ""
    request: AskedFor = AskedFor()
    then: tuple[RecordedReply, ...] = ()
    expect: dict[str, object] = {}

    @property
    def profile(self) -> WireProfile:
        """How the server of this case speaks. Raises `UsageError` when the file says something else."""
        try:
            return msgspec.convert({**self.request.profile, "streaming": self.request.stream}, WireProfile)
        except msgspec.ValidationError as error:
            raise UsageError(f"case {self.id}: {one_line(str(error))}; correct its profile") from error

    def check(self) -> None:
        """Raise `ValueError` for a body that cannot be decoded, `UsageError` for a profile that cannot."""
        for each in (self, *self.then):
            _ = each.pieces
        _ = self.profile

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return tuple(ToolSpec(name=name) for name in self.request.tools)

    def history(self) -> list[Message]:
        """Return the conversation before the answer: its latest messages, where the case sets a limit."""
        messages = [_message(fields) for fields in self.request.history] or [user("hello")]
        limit = self.request.history_limits.get("max_messages", len(messages))
        first = [message for message in messages[:1] if message.role == "system"]
        return first + messages[len(first) :][-(limit - len(first)) :] if limit < len(messages) else messages

    def cuts(self, most: int | None = None) -> Iterator[tuple[str, tuple[bytes, ...]]]:
        """Give every way the body is cut, with its name: as recorded, whole, into bytes, and in two anywhere.

        `most` bounds the cuts in two; they are then spread evenly.
        """
        body = b"".join(self.pieces)
        yield "as recorded", self.pieces
        yield "whole", (body,)
        yield "byte by byte", split_bytes(body, range(len(body)))
        places = range(1, len(body))
        if most is not None and len(places) > most:
            places = [1 + number * len(places) // most for number in range(most)]
        for at in places:
            yield f"in two at {at}", split_bytes(body, (at,))


def read_cases(path: Path) -> list[WireCase]:
    """Read a JSONL file of cases. Raises `UsageError` that names the line."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path.name}: {error.strerror}; check the path") from error
    cases: list[WireCase] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            if len(line) > MAX_CASE_BYTES:
                raise UsageError(f"{path.name} line {number} is longer than {MAX_CASE_BYTES} bytes; split it")
            case = msgspec.json.decode(line, type=WireCase)
            case.check()
        except (ValueError, RecursionError) as error:
            said = one_line(str(error))
            raise UsageError(f"{path.name} line {number} is no wire case: {said}; correct it") from error
        cases.append(case)
    return cases


def _message(fields: Node) -> Message:
    content = _repeated(text_of(fields.get("content")))
    match fields.get("role"):
        case "system":
            return system(content)
        case "user":
            return user(content)
        case "tool":
            return tool_result(text_of(fields.get("tool_call_id")), content)
        case _:
            return _assistant(fields, content)


def _assistant(fields: Node, content: str) -> Message:
    made = tuple(_call(fields_of(call)) for call in items_of(fields.get("tool_calls")))
    said = assistant(content, calls=made)
    thought = text_of(fields.get("reasoning"))
    usage = msgspec.convert(fields["usage"], Usage) if "usage" in fields else None
    parts = (ReasoningPart(thought), *said.parts) if thought else said.parts
    origin = Origin(text_of(fields["reasoning_origin"]), "") if "reasoning_origin" in fields else None
    return msgspec.structs.replace(said, parts=parts, usage=usage, origin=origin)


def _call(fields: Node) -> ToolCall:
    arguments = fields_of(fields.get("arguments"))
    raw = msgspec.json.encode(arguments).decode()
    return ToolCall(
        id=text_of(fields.get("id")), name=text_of(fields.get("name")), arguments=arguments, raw=raw
    )


def _repeated(content: str) -> str:
    """Return the text that `@REPEAT(words,times)` stands for."""
    if not content.startswith("@REPEAT("):
        return content
    words, _, times = content.removeprefix("@REPEAT(").removesuffix(")").rpartition(",")
    return words * min(int(times), MAX_CASE_BYTES // max(1, len(words)))


def _dated(value: str, now: float) -> str:
    if not value.startswith("@HTTPDATE+"):
        return value
    return formatdate(now + int(value.removeprefix("@HTTPDATE+")), usegmt=True)
