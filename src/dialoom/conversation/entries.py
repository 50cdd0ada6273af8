"""What a log holds: a line of text, or a card. Values that know nothing of storage, screens and models."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Literal, TypeAlias, cast, get_args

import msgspec
from msgspec.structs import force_setattr

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line, replace_surrogates
from dialoom.conversation.plain import json_object
from dialoom.conversation.yaml_text import load_yaml
from dialoom.llm.messages import CallProblem, Role, ToolCall

Status: TypeAlias = Literal["cancelled", "incomplete"]
"""Why a text ends early: someone stopped it, or its source broke."""

MAX_PAYLOAD_CHARS = 256 * 1024
MAX_JSON_CHARS = 32 * 1024 * 1024


class TextEntry(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="kind",
    tag="Text",
):
    """Something said.

    A tool's answer has role `tool` and the `tool_call_id` it answers. `meta` keeps what others want to
    remember with the entry: JSON values, shown to nobody. Half characters become U+FFFD; arguments of a
    tool call that no file can hold leave their raw text only. A value that could not be read back is a
    `UsageError`. A plain line is stored as exactly `{kind: Text, role, content}`.
    """

    role: Role
    content: str
    reasoning: str = ""
    status: Status | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    is_error: bool = False
    meta: dict[str, object] = {}

    def __post_init__(self) -> None:
        if self.role not in _ROLES or self.status not in _STATUSES or _kinds_of(self) != _USUAL_KINDS:
            _check_text(self)
        force_setattr(self, "content", replace_surrogates(self.content))
        force_setattr(self, "reasoning", replace_surrogates(self.reasoning))
        if self.tool_call_id:
            force_setattr(self, "tool_call_id", replace_surrogates(self.tool_call_id))
        if self.tool_name:
            force_setattr(self, "tool_name", replace_surrogates(self.tool_name))
        if self.tool_calls:
            force_setattr(self, "tool_calls", tuple(_clean_call(call) for call in self.tool_calls))
        if self.meta:
            force_setattr(self, "meta", json_object(self.meta, "meta of a text entry"))


class CardEntry(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="kind",
    tag="Special",
):
    """Something shown: a card's type and its payload as YAML text.

    An entry with the card id of an earlier one is the new state of that card. Whether the payload can be
    read is not this entry's business: what cannot be read is kept as it came.
    """

    type: str
    payload: str
    meta: dict[str, object] = {}

    def __post_init__(self) -> None:
        _check_kinds(self, _CARD_KINDS)
        force_setattr(self, "type", replace_surrogates(self.type))
        force_setattr(self, "payload", replace_surrogates(self.payload))
        if self.meta:
            force_setattr(self, "meta", json_object(self.meta, "meta of a card entry"))

    @property
    def card_id(self) -> str | None:
        """The id inside the payload, or None when there is none to be read. Parses the payload."""
        try:
            payload = load_yaml(self.payload, max_chars=MAX_PAYLOAD_CHARS)
        except UsageError:
            return None
        card_id = payload.get("id") if isinstance(payload, dict) else None
        return card_id if isinstance(card_id, str) else None


Entry: TypeAlias = TextEntry | CardEntry

_DECODER = msgspec.json.Decoder(Entry)
_NOTHING = type(None)
_ROLES = get_args(Role)
_STATUSES = (None, *get_args(Status))
_PROBLEMS = (None, *get_args(CallProblem))
_TEXT_KINDS: dict[str, tuple[type, ...]] = {
    "content": (str,),
    "reasoning": (str,),
    "tool_calls": (tuple, list),
    "tool_call_id": (str, _NOTHING),
    "tool_name": (str, _NOTHING),
    "is_error": (bool,),
    "meta": (Mapping,),
}
_USUAL_KINDS = (str, str, tuple, _NOTHING, _NOTHING, bool, dict)
"""What most texts have; to compare with it is a third of the work of looking at each field."""
_CARD_KINDS: dict[str, tuple[type, ...]] = {"type": (str,), "payload": (str,), "meta": (Mapping,)}
_CALL_KINDS: dict[str, tuple[type, ...]] = {
    "id": (str,),
    "name": (str,),
    "raw": (str,),
    "arguments": (Mapping, _NOTHING),
    "provider_id": (str, _NOTHING),
}
_KNOWN: dict[str, frozenset[str]] = {
    "Text": frozenset(("kind", *(field.encode_name for field in msgspec.structs.fields(TextEntry)))),
    "Special": frozenset(("kind", *(field.encode_name for field in msgspec.structs.fields(CardEntry)))),
}


def entry_to_dict(entry: Entry) -> dict[str, object]:
    """Return the stored form of `entry`; what has its default value is left out."""
    return msgspec.to_builtins(entry)


def entry_from_dict(fields: Mapping[str, object]) -> Entry:
    """Read a stored entry. Fields it does not know stay with it, in `meta`; raises `UsageError`."""
    known = dict(fields)
    extra = {
        key: known.pop(key) for key in fields.keys() - _KNOWN.get(str(fields.get("kind")), fields.keys())
    }
    role = fields.get("role")
    if isinstance(role, str):
        known["role"] = role.lower()  # seed 003's product writes roles as `User` or `user`
    meta = fields.get("meta", {})
    if extra and isinstance(meta, dict):
        known["meta"] = cast("dict[str, object]", meta) | extra
    try:
        return msgspec.convert(known, Entry)
    except msgspec.ValidationError as error:
        raise UsageError(f"not an entry of a conversation: {one_line(str(error))}") from error


def entry_to_json(entry: Entry) -> str:
    """Return the stored form of `entry` as one line of JSON."""
    return msgspec.json.encode(entry).decode()


def entry_from_json(text: str) -> Entry:
    """Read `entry_to_json` back, errors as in `entry_from_dict`."""
    if len(text) <= MAX_JSON_CHARS:
        with suppress(msgspec.DecodeError, UnicodeError, RecursionError):  # also for fields it does not know
            return _DECODER.decode(text)
    return entry_from_dict(decode_object(text))


def decode_object(text: str) -> dict[str, object]:
    """Read JSON text that holds one object, at most 32 MiB; raises `UsageError`."""
    if len(text) > MAX_JSON_CHARS:
        raise UsageError(f"json of {len(text)} characters is over the limit of {MAX_JSON_CHARS}; shorten it")
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(f"not readable as json: {one_line(str(error))}") from error


def _kinds_of(entry: TextEntry) -> tuple[type, ...]:
    return (
        type(entry.content),
        type(entry.reasoning),
        type(entry.tool_calls),
        type(entry.tool_call_id),
        type(entry.tool_name),
        type(entry.is_error),
        type(entry.meta),
    )


def _check_text(entry: TextEntry) -> None:
    _check_kinds(entry, _TEXT_KINDS)
    _check_choice(entry, "role", _ROLES)
    _check_choice(entry, "status", _STATUSES)


def _check_kinds(value: object, kinds: Mapping[str, tuple[type, ...]]) -> None:
    """Raise `UsageError` for a field of another type: once in a log, nobody could read the log back."""
    for name, kind in kinds.items():
        field = getattr(value, name)
        if not isinstance(field, kind):
            owner, given = type(value).__name__, type(field).__name__
            raise UsageError(f"{name} of a {owner} is {kind[0].__name__}, and this is {given}")


def _check_choice(value: object, name: str, choices: tuple[object, ...]) -> None:
    field = getattr(value, name)
    if field not in choices:
        owner, words = type(value).__name__, ", ".join(str(each) for each in choices)
        raise UsageError(f"{name} of a {owner} is one of {words}; this is {one_line(repr(field), 40)}")


def _clean_call(call: ToolCall) -> ToolCall:
    """Return `call` as a log can hold it; arguments nested out of all bounds leave only their raw text."""
    if not isinstance(call, ToolCall):  # pyright: ignore[reportUnnecessaryIsInstance] - foreign callers
        raise UsageError(f"a call of a TextEntry is ToolCall, and this is {type(call).__name__}")
    _check_kinds(call, _CALL_KINDS)
    _check_choice(call, "problem", _PROBLEMS)
    arguments, problem = call.arguments, call.problem
    if arguments is not None:
        try:
            arguments = json_object(arguments, "arguments")
        except UsageError:
            arguments, problem = None, "invalid_json"
    return msgspec.structs.replace(
        call,
        id=replace_surrogates(call.id),
        name=replace_surrogates(call.name),
        raw=replace_surrogates(call.raw),
        provider_id=call.provider_id and replace_surrogates(call.provider_id),
        arguments=arguments,
        problem=problem,
    )
