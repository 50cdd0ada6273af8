"""What can be asked of the service: one type per operation, parsed once, with every field checked."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated, get_args

import msgspec

from dialoom.base.errors import DialoomError
from dialoom.base.text import one_line
from dialoom.rag.errors import InvalidOptionsError
from dialoom.rag.filters import Condition

RequestId = str | int | None
Response = dict[str, object]
"""One line of the answer. The last one of a request has `ok`; with it false also `error` and `code`."""
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]
_Names = Annotated[list[_Name], msgspec.Meta(min_length=1, max_length=10_000)]
_LONGEST_ID = 200
_HEAD = 512
# What a line that is not read says its id is, when that comes first.
_EARLY_ID = re.compile(
    rb'\s{0,64}\{\s{0,64}"id"\s{0,64}:\s{0,64}(-?[0-9]{1,18}|"[^"\\\x00-\x1f]{1,200}")\s{0,64}[,}]'
)
_ABOUT_OP = "at `$.op`"  # a filter has an `op` too, further in
_LONGEST_NAME = 60


class RequestError(DialoomError):
    """A line that is not a request, or one that is refused. `id` is that of the request, where it has one."""

    def __init__(self, code: str, message: str, *, id: RequestId) -> None:  # noqa: A002 - its name on the wire
        super().__init__(message)
        vars(self)["code"] = code
        self.id = id


class Request(msgspec.Struct, frozen=True, kw_only=True, tag_field="op"):
    """Common to all: the id that every line of the answer carries."""

    id: RequestId = None


class Health(Request, frozen=True, kw_only=True, tag="health"):
    """Tell that the service is there, and how much it holds."""


class Stats(Request, frozen=True, kw_only=True, tag="stats"):
    """Tell what has been done, and what made the index."""


class Ingest(Request, frozen=True, kw_only=True, tag="ingest"):
    """Take in files, folders and web pages; `replace` puts each document in the place of its old self."""

    paths: _Names
    replace: bool = False


class Narrowed(Request, frozen=True, kw_only=True):
    """Common to both ways to look: only passages that `filter` lets through and `principals` may see."""

    query: str
    filter: Condition | None = None
    principals: Annotated[tuple[_Name, ...], msgspec.Meta(max_length=1_000)] | None = None


class Query(Narrowed, frozen=True, kw_only=True, tag="query"):
    """Answer a question, as one more turn of `session_id` when there is one."""

    session_id: Annotated[str, msgspec.Meta(min_length=1, max_length=512)] | None = None
    stream: bool = True


class SearchChunks(Narrowed, frozen=True, kw_only=True, tag="search"):
    """Find passages, and ask no model."""

    k: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 6
    min_score: float | None = None


class Sync(Request, frozen=True, kw_only=True, tag="sync"):
    """Bring the index to what a folder holds; `progress` tells of each file."""

    path: _Name
    progress: bool = False


class Delete(Request, frozen=True, kw_only=True, tag="delete"):
    """Take documents out by their ids."""

    documents: _Names


class Snapshot(Request, frozen=True, kw_only=True, tag="snapshot"):
    """Write a copy of the index to a new file."""

    path: _Name


class Cancel(Request, frozen=True, kw_only=True, tag="cancel"):
    """Stop the request with the id `target`."""

    target: str | int


class Shutdown(Request, frozen=True, kw_only=True, tag="shutdown"):
    """Finish what is running and end."""


AnyRequest = Health | Stats | Ingest | Query | SearchChunks | Sync | Delete | Snapshot | Cancel | Shutdown
_OPS = ", ".join(kind.__struct_config__.tag for kind in get_args(AnyRequest))


class Envelope(msgspec.Struct, frozen=True):
    """What is read of a line before anything else: whom to answer, and who asks."""

    id: RequestId
    auth: object


class _Outside(msgspec.Struct, frozen=True):
    id: object = None
    auth: object = None


_decode_outside = msgspec.json.Decoder(_Outside).decode
_decode_request = msgspec.json.Decoder(AnyRequest).decode
_decode_names = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def open_envelope(line: bytes) -> Envelope:
    """Read id and token of a line. Raises `RequestError("bad_json")` when it is no JSON object."""
    try:
        outside = _decode_outside(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"the line is no JSON object ({one_line(str(error), 120)})"
        raise RequestError("bad_json", message, id=early_id(line)) from error
    return Envelope(_known_id(outside.id), outside.auth)


def parse_request(line: bytes, envelope: Envelope) -> AnyRequest:
    """Read the whole of a line. Raises `RequestError` for an unknown `op`, unknown fields and wrong ones."""
    try:
        request = _decode_request(line)
        _check_names(request, _decode_names(line))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        why = one_line(str(error), 200)
        code = "bad_request"
        if why.endswith(_ABOUT_OP):
            code, why = "unknown_op", f"{why}; there are {_OPS}"
        raise RequestError(code, f"the request cannot be read: {why}", id=envelope.id) from error
    except InvalidOptionsError as error:
        raise RequestError(error.code, str(error), id=envelope.id) from error
    return msgspec.structs.replace(request, id=envelope.id)


def _check_names(request: AnyRequest, names: Iterable[str]) -> None:
    """Raise `ValidationError` for a field the request does not have: a typing error must not go unnoticed."""
    known = ("op", "auth", *type(request).__struct_fields__)
    for name in names:
        if name not in known:
            told = one_line(name, _LONGEST_NAME)
            near = get_close_matches(told, known, 1)
            meant = f"perhaps {near[0]} is meant" if near else f"there are {', '.join(known)}"
            raise msgspec.ValidationError(f"it has a field {told!r}, which is not known; {meant}")


def early_id(head: bytes) -> RequestId:
    """The id of a line that cannot be read, when it stands at its beginning."""
    found = _EARLY_ID.match(head[:_HEAD])
    if found is None:
        return None
    try:
        return _known_id(msgspec.json.decode(found[1]))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _known_id(value: object) -> RequestId:
    match value:
        case bool():
            return None
        case int():
            return value
        case str() if len(value) <= _LONGEST_ID:
            return value
        case _:
            return None
