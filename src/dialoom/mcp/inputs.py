"""What a server may ask of us while it works: an answer of a person's, words of a model, our folders."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias, cast

import msgspec

from dialoom.mcp.sampling import Sampling

Fields: TypeAlias = Mapping[str, object]
"""An object of the protocol, as JSON values."""
Elicit: TypeAlias = Callable[[Fields], Awaitable[Fields]]
"""Asks a person. It is given the params of the protocol's `elicitation/create` as JSON values: the server's
`message`, and a `requestedSchema` for a form or a `url` to visit. It returns `{"action": "accept", "content":
{...}}`, `{"action": "decline"}` or `{"action": "cancel"}`. What it raises ends the call that led to the
question, and reaches that call's caller."""
OnProgress: TypeAlias = Callable[[float, float | None, str | None], None]
"""Told how far a call is: the progress, the total where it is known, and words."""
OnNotice: TypeAlias = Callable[[str, Fields], None]
"""Told the method and the params of each notice of the server, as JSON values; must not block."""


class MCPAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """Who answers a server's questions. A server is told only of what is given here."""

    interactive: bool = True
    """Tell servers that a person can be asked. A question is then put to `on_elicit` of the call that led to
    it, else to `elicit`, and where neither is there the answer is that the person cancelled."""
    elicit: Elicit | None = None
    sampling: Sampling | None = None
    roots: tuple[str, ...] | Callable[[], Sequence[str]] | None = None
    """Folders that the server may work in, as paths or `file://` URIs, or what returns those of now."""


def with_defaults(reply: Fields, schema: Fields | None) -> dict[str, object]:
    """Return an accepted form with the defaults of its schema for what was left out."""
    content = reply.get("content")
    if reply.get("action") != "accept" or schema is None:
        return {"action": reply.get("action")}
    given = cast("dict[str, object]", content) if isinstance(content, dict) else {}
    return {"action": "accept", "content": {**_defaults(schema), **given}}


def _defaults(schema: Fields) -> dict[str, object]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    fields = cast("dict[str, object]", properties)
    return {
        name: cast("dict[str, object]", field)["default"]
        for name, field in fields.items()
        if isinstance(field, dict) and "default" in field
    }
