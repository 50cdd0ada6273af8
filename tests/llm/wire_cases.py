"""The wire cases: what servers have really sent, and what an answer must be made of it."""

import base64
import random
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import msgspec

from dialoom.llm import Message, Origin, ReasoningPart, ToolCall, Usage, assistant, system, tool_result, user
from dialoom.testing.wire import WireReply, split_bytes

CASES_FILE = Path(__file__).with_name("wire_cases.jsonl")

# The cases that need a part which is not built yet, each with the part.
LEFT_FOR_LATER = frozenset(
    {
        "oai-j-fenced",  # structured output
        "oai-j-schema-repair",  # structured output
        "oai-r-orphan",  # history limits of the agent
    }
)


class LaterReply(msgspec.Struct, frozen=True):
    """What the server says when it is asked again."""

    status: int
    headers: dict[str, str]
    body_chunks: list[str]


class WireCase(msgspec.Struct, frozen=True):
    """One recorded exchange; fields as in the file."""

    id: str
    provider: str
    request: dict[str, Any]
    status: int
    headers: dict[str, str]
    body_chunks: list[str]
    expect: dict[str, Any]
    body_encoding: str = "utf-8"
    abort: bool = False
    then: list[LaterReply] = []

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def pieces(self) -> tuple[bytes, ...]:
        """The body, cut as it was recorded."""
        if self.body_encoding == "base64":
            return tuple(base64.b64decode(piece) for piece in self.body_chunks)
        return tuple(piece.encode() for piece in self.body_chunks)

    def replies(self, pieces: tuple[bytes, ...], *, now: float) -> list[WireReply]:
        """What the server says, request by request."""
        later = [
            WireReply(status=each.status, headers=each.headers, body=tuple(map(str.encode, each.body_chunks)))
            for each in self.then
        ]
        return [self._first(pieces, now=now), *later]

    def _first(self, pieces: tuple[bytes, ...], *, now: float) -> WireReply:
        headers = {name: _dated(value, now) for name, value in self.headers.items()}
        return WireReply(
            status=self.status, headers=headers, body=pieces, end="reset" if self.abort else "keep"
        )


def read_cases() -> list[WireCase]:
    lines = CASES_FILE.read_text(encoding="utf-8").splitlines()
    return [msgspec.json.decode(line, type=WireCase) for line in lines]


def two_way_cuts(case: WireCase) -> Iterator[tuple[bytes, ...]]:
    """Every way to cut the body in two."""
    return (split_bytes(case.body, [at]) for at in range(1, len(case.body)))


def ways_to_cut(case: WireCase) -> dict[str, tuple[bytes, ...]]:
    """The recorded pieces, one piece, single bytes, and three ways by chance that are the same each time."""
    chance = random.Random(case.id)
    body = case.body
    ways = {
        "recorded": case.pieces,
        "whole": (body,),
        "bytes": split_bytes(body, range(len(body))),
    }
    for number in range(3):
        cuts = [chance.randrange(1, len(body)) for _ in range(chance.randrange(1, 12))]
        ways[f"chance {number}"] = split_bytes(body, cuts)
    return ways


def history_of(case: WireCase) -> list[Message]:
    """What was said before, trimmed where the case says so in the worst way there is."""
    said = [_message(fields) for fields in case.request.get("history", [])] or [user("hello")]
    return said[-case.request.get("history_limits", {}).get("max_messages", len(said)) :]


def _message(fields: dict[str, Any]) -> Message:
    content = _repeated(fields.get("content", ""))
    match fields["role"]:
        case "system":
            return system(content)
        case "user":
            return user(content)
        case "tool":
            return tool_result(fields["tool_call_id"], content)
        case _:
            calls = tuple(_call(call) for call in fields.get("tool_calls", []))
            usage = msgspec.convert(fields["usage"], Usage) if "usage" in fields else None
            message = msgspec.structs.replace(assistant(content, calls=calls), usage=usage)
            return _thoughtful(message, fields)


def _thoughtful(message: Message, fields: dict[str, Any]) -> Message:
    if "reasoning" not in fields:
        return message
    origin = Origin(fields["reasoning_origin"], "demo")
    parts = (ReasoningPart(fields["reasoning"]), *message.parts)
    return msgspec.structs.replace(message, parts=parts, origin=origin)


def _call(fields: dict[str, Any]) -> ToolCall:
    raw = msgspec.json.encode(fields["arguments"]).decode()
    return ToolCall(id=fields["id"], name=fields["name"], arguments=fields["arguments"], raw=raw)


def _repeated(content: str) -> str:
    if not content.startswith("@REPEAT("):
        return content
    words, _, times = content.removeprefix("@REPEAT(").removesuffix(")").rpartition(",")
    return words * int(times)


def _dated(value: str, now: float) -> str:
    if not value.startswith("@HTTPDATE+"):
        return value
    return formatdate(now + int(value.removeprefix("@HTTPDATE+")), usegmt=True)
