"""What a served tool asks, and what it remembers until the answer comes back with the next request.

A client of 2026-07-28 gets the question together with all that the call has to remember, sealed, and sends
both back: nothing is kept here while a person thinks, and a restart under the same key loses nothing.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar, cast

import msgspec

from dialoom.base.errors import DialoomError
from dialoom.graph.errors import Interrupted
from dialoom.mcp.json_shapes import object_of

T = TypeVar("T")

MAX_STATE: Final = 256 * 1024
MAX_MESSAGE: Final = 2000
_PLAIN: Final = frozenset({"string", "number", "integer", "boolean", "array"})
"""Types of fields that a form may have; a list is a choice of several."""
_FREE_FORM: Final[dict[str, object]] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Answer"}},
    "required": ["answer"],
}

Reply = Mapping[str, object]
"""`{"action": "accept", "content": {...}}`, or another action without content."""


class Declined(BaseException):
    """The person did not answer. A tool must not take it for a failure of its own."""


class StateTooLargeError(DialoomError):
    """A call remembers more than can travel with a question."""

    code = "state_too_large"


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """One question for a person. A free one has a single text as its answer."""

    key: str
    message: str
    schema: dict[str, object]
    free: bool


class _Kept(msgspec.Struct, frozen=True):
    """What travels. Notes and replies are JSON values."""

    notes: dict[str, Any] = {}
    replies: dict[str, dict[str, Any]] = {}


class Questions:
    """The journal of one served call. `state` is what an earlier request was sent away with.

    Questions go to the client under their own keys; one that is asked again has the number of the time.
    """

    def __init__(self, state: str | None = None, replies: Mapping[str, Reply] | None = None) -> None:
        kept = _Kept() if state is None else msgspec.json.decode(state, type=_Kept)
        self._notes = dict(kept.notes)
        self._replies: dict[str, Reply] = {**kept.replies, **(replies or {})}
        self.open: Form | None = None
        """What stopped the call, once it did."""

    def reply(self, key: str, reply: Reply) -> None:
        """Take the answer to a question; the tool then runs again."""
        self._replies[key] = reply
        self.open = None

    def state(self) -> str:
        """Return what has to come back with the answer. Raises `StateTooLargeError`."""
        kept = _Kept(self._notes, {key: dict(reply) for key, reply in self._replies.items()})
        text = msgspec.json.encode(kept).decode()
        if len(text) > MAX_STATE:
            raise StateTooLargeError(f"the call remembers more than {MAX_STATE} characters; ask earlier")
        return text

    def once(self, key: str, effect: Callable[[], T]) -> T:
        if key not in self._notes:
            self._notes[key] = msgspec.to_builtins(effect())
        return cast("T", self._notes[key])

    async def aonce(self, key: str, effect: Callable[[], Awaitable[T]]) -> T:
        if key not in self._notes:
            self._notes[key] = msgspec.to_builtins(await effect())
        return cast("T", self._notes[key])

    def ask(self, payload: object, *, key: str, refused: str) -> Any:
        """Return the answer. Raises `Interrupted` without one, `Declined` when the person gave none."""
        form = form_of(payload, key.removesuffix("/1"))
        reply = self._replies.get(form.key)
        if reply is None:
            told = f"{form.message} ({refused})" if refused else form.message
            self.open = msgspec.structs.replace(form, message=told)
            raise Interrupted(key)
        if reply.get("action") != "accept":
            raise Declined
        fields = object_of(reply.get("content"))
        return _free_answer(fields) if form.free else fields


def form_of(payload: object, key: str) -> Form:
    """Return the question as a form: the payload's own `schema` where clients can show it, else one text.

    A form has plain fields only; that is what the protocol allows.
    """
    fields = object_of(payload)
    words, schema = fields.get("message"), object_of(fields.get("schema"))
    message = words if isinstance(words, str) else _told(payload)
    plain = _is_plain(schema)
    return Form(
        key=key, message=message[:MAX_MESSAGE], schema=schema if plain else _FREE_FORM, free=not plain
    )


def _is_plain(schema: dict[str, object]) -> bool:
    fields = object_of(schema.get("properties")).values()
    return bool(fields) and all(object_of(field).get("type") in _PLAIN for field in fields)


def _told(payload: object) -> str:
    if isinstance(payload, str):
        return payload
    return msgspec.json.encode(payload, enc_hook=repr).decode()


def _free_answer(fields: Mapping[str, object]) -> object:
    """Return the text, or the JSON value that it is."""
    text = str(fields.get("answer", ""))
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
