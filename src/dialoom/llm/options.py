"""How one answer is asked for."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from dialoom.base.cancel import CancelScope
from dialoom.base.errors import UsageError
from dialoom.llm.given import expect_number, expect_texts, named
from dialoom.llm.retry import RetryPolicy


def _no_arguments() -> dict[str, object]:
    return {"type": "object", "properties": {}}


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as a model sees it; `parameters` is a JSON Schema object."""

    name: str
    description: str = ""
    parameters: Mapping[str, object] = msgspec.field(default_factory=_no_arguments)


def expect_tool(value: object) -> None:
    """Raise `UsageError` for anything but a `ToolSpec`."""
    if not isinstance(value, ToolSpec):
        raise UsageError(f"{named(value)} stands among the tools; give ToolSpec(name='...')")


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait, in seconds, for what. Past any of them the request ends with kind `timeout`."""

    connect: float = 10.0
    """To reach the server."""
    first_event: float = 300.0
    """From sending the request to the first piece of the answer; local models read long prompts slowly."""
    idle: float = 120.0
    """Between two reads once the answer has begun; keep-alive comments count as life."""
    total: float = 1800.0
    """For the whole answer."""


class ChatOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How one answer is asked for. None leaves a choice to the server. Raises `UsageError` for nonsense."""

    model: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    """Longest answer in tokens; one that reaches it ends with finish reason `length`."""
    stop: tuple[str, ...] = ()
    seed: int | None = None
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: Literal["auto", "none", "required"] | None = None
    parallel_tool_calls: bool | None = None
    response_schema: Mapping[str, object] | None = None
    """A JSON Schema for the answer, where the server can hold it to one; `chat_structured` checks it."""
    json_mode: bool = False
    """Have any JSON object, where the server can hold an answer to that; a schema goes first."""
    reasoning: Literal["off", "low", "medium", "high"] | None = None
    """How much a model that can reason is to think first."""
    cache: Literal["5m", "1h"] | None = None
    """Keep the beginning of the prompt ready for so long, on servers that must be asked to."""
    timeouts: Timeouts = Timeouts()
    retry: RetryPolicy = RetryPolicy()
    cancel: CancelScope | None = None
    """Cancelling it ends the stream with `Cancelled` and closes the connection."""
    extra_body: Mapping[str, object] = {}
    """Fields added to the request body as they are; they win over ours."""
    extra_headers: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        expect_texts(self.stop, "stop")
        expect_number(self.max_tokens, "max_tokens", least=1)
        expect_number(self.temperature, "temperature", least=0)
        expect_number(self.top_p, "top_p", least=0)
        for tool in self.tools:
            expect_tool(tool)

    def __repr__(self) -> str:
        return f"ChatOptions({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        # headers and fields of the caller's own may hold keys, so only their names are shown
        shown = msgspec.structs.replace(self, extra_headers={}, extra_body={})
        chosen = [(name, value) for name, value in _fields(shown) if value != getattr(DEFAULT_OPTIONS, name)]
        extras = {"extra_headers": self.extra_headers, "extra_body": self.extra_body}
        return [*chosen, *((name, sorted(extra)) for name, extra in extras.items() if extra)]


DEFAULT_OPTIONS = ChatOptions()


def _fields(options: ChatOptions) -> list[tuple[str, object]]:
    return [(name, getattr(options, name)) for name in options.__struct_fields__]
