"""What a tool answered."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from dialoom.base.text import one_line
from dialoom.llm.files import FilePart


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Text for the model, and beside it what programs and people may use.

    An error is an observation like any other: the model reads `content` and may try something else.
    `files` are pictures and documents for models that can see them; `content` is for everybody else, too.
    `structured` is the answer as plain JSON values where there is one, `card` what a person is shown.
    """

    content: str = ""
    files: tuple[FilePart, ...] = ()
    structured: object = None
    is_error: bool = False
    timeout: bool = False
    cancelled: bool = False
    card: object = None


def failed(
    error: str,
    *,
    tool: str,
    more: Mapping[str, object] | None = None,
    flag: Literal["timeout", "cancelled"] | None = None,
) -> ToolResult:
    """Return the observation `{"error": error, "tool": tool, ...}`; `flag` is set in it and on the result."""
    flags = {flag: True} if flag else {}
    facts = {"error": one_line(error, 500), **flags, "tool": one_line(tool, 80), **(more or {})}
    return ToolResult(
        content=msgspec.json.encode(facts).decode(),
        structured=facts,
        is_error=True,
        timeout=flag == "timeout",
        cancelled=flag == "cancelled",
    )
