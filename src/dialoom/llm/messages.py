"""What a model reads and writes: a role and its parts. Values only; sending them is a wire's business."""

from typing import Literal, Self

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.llm.files import FilePart
from dialoom.llm.given import expect_text
from dialoom.llm.usage import Usage

Role = Literal["system", "user", "assistant", "tool"]
CallProblem = Literal["truncated", "invalid_json", "not_object"]
Mark = Literal["skill", "summary"]


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model's wish to run a tool.

    `raw` is the arguments text exactly as it came. `arguments` is that text decoded, or None when it
    must not be run, and then `problem` says why. `id` is unique in its conversation; when the server's
    own id was not, `provider_id` keeps it.
    """

    id: str
    name: str
    arguments: dict[str, object] | None = None
    raw: str = ""
    problem: CallProblem | None = None
    provider_id: str | None = None


class Origin(msgspec.Struct, frozen=True):
    """Which model wrote a message."""

    provider: str
    model: str


class TextPart(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """Words to read."""

    text: str


class ReasoningPart(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="reasoning"):
    """What a model thought first; not part of the answer. `signature` proves it to its provider."""

    text: str
    signature: str | None = None


class SourcePart(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="source"):
    """A numbered passage handed to a model, cited as `[index]`; numbers start at 1."""

    index: int
    id: str
    title: str
    text: str


class ToolCallPart(msgspec.Struct, frozen=True, tag_field="type", tag="tool_call"):
    """One tool call of an assistant message."""

    call: ToolCall


class ToolResultPart(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="tool_result"
):
    """What a tool answered to the call named by `call_id`.

    `files` are for models that can see them; `content` is what everybody reads.
    """

    call_id: str
    content: str
    name: str | None = None
    is_error: bool = False
    files: tuple[FilePart, ...] = ()


class RefusalPart(msgspec.Struct, frozen=True, tag_field="type", tag="refusal"):
    """A model's words for not answering."""

    text: str


class OpaquePart(msgspec.Struct, frozen=True, tag_field="type", tag="opaque"):
    """A provider's own block, kept as its exact JSON text and returned to that provider only."""

    provider: str
    block: str


Part = (
    TextPart
    | FilePart
    | ReasoningPart
    | SourcePart
    | ToolCallPart
    | ToolResultPart
    | RefusalPart
    | OpaquePart
)


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing said to or by a model.

    `id` and `created` (seconds since the epoch) are set by whoever stores the message, `origin` and
    `usage` by the provider that received it. One with a `mark` stays however short a history is cut: the
    words of an activated skill, or the summary of what was cut. Equal messages compare equal.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    name: str | None = None
    id: str | None = None
    created: float | None = None
    origin: Origin | None = None
    usage: Usage | None = None
    mark: Mark | None = None

    @property
    def text(self) -> str:
        """The words of the message, without reasoning, sources, calls and results."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def reasoning(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, ReasoningPart))

    @property
    def refusal(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, RefusalPart))

    @property
    def sources(self) -> tuple[SourcePart, ...]:
        return tuple(part for part in self.parts if isinstance(part, SourcePart))

    @property
    def files(self) -> tuple[FilePart, ...]:
        """The files of the message; of a tool's message those of its results."""
        if self.role == "tool":
            return tuple(file for result in self.tool_results for file in result.files)
        return tuple(part for part in self.parts if isinstance(part, FilePart))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple([part.call for part in self.parts if isinstance(part, ToolCallPart)])

    @property
    def tool_results(self) -> tuple[ToolResultPart, ...]:
        return tuple([part for part in self.parts if isinstance(part, ToolResultPart)])

    def to_dict(self) -> dict[str, object]:
        """Return the message as plain JSON values; what has its default value is left out."""
        return msgspec.to_builtins(self)

    @classmethod
    def from_dict(cls, fields: dict[str, object]) -> Self:
        """Read `to_dict` back. Unknown fields are skipped; raises `UsageError` on anything else."""
        try:
            return msgspec.convert(fields, cls)
        except msgspec.ValidationError as error:
            raise _not_a_message(error) from error

    def to_json(self) -> str:
        """Return the message as one line of JSON. Raises `UsageError` on text that no encoding can hold."""
        try:
            return msgspec.json.encode(self).decode()
        except UnicodeEncodeError as error:
            raise UsageError(
                "a message holds half a character (a lone surrogate); clean it with `replace_surrogates`"
            ) from error

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read `to_json` back; errors as in `from_dict`."""
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise _not_a_message(error) from error


def system(text: str) -> Message:
    """Return instructions for the model. Raises `UsageError` for what is no text."""
    return Message(role="system", parts=(TextPart(expect_text(text, "a message", "system('...')")),))


def user(text: str, *, sources: tuple[SourcePart, ...] = (), files: tuple[FilePart, ...] = ()) -> Message:
    """Return what a person says, after the passages it may be answered from and the files it is about.

    Raises `UsageError` for what is no text.
    """
    said = TextPart(expect_text(text, "a message", "user('...')"))
    return Message(role="user", parts=(*sources, *files, said))


def assistant(text: str, *, calls: tuple[ToolCall, ...] = ()) -> Message:
    """Return what a model said, and the tools it called."""
    words = (TextPart(text),) if text else ()
    return Message(role="assistant", parts=(*words, *(ToolCallPart(call) for call in calls)))


def tool_result(
    call_id: str,
    content: str,
    *,
    name: str | None = None,
    is_error: bool = False,
    files: tuple[FilePart, ...] = (),
) -> Message:
    """Return a tool's answer to the call `call_id`, with the pictures and documents that belong to it."""
    part = ToolResultPart(call_id=call_id, content=content, name=name, is_error=is_error, files=files)
    return Message(role="tool", parts=(part,))


def _not_a_message(error: Exception) -> UsageError:
    return UsageError(
        f"this is not a message: {one_line(str(error))}; write messages with `to_dict` or `to_json`"
    )
