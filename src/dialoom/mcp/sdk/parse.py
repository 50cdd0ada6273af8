"""A line of a server's output into messages: what is none is set aside, what is glued to one is cut off."""

import json
import re
from typing import Final, NamedTuple, cast

from mcp_types import JSONRPCMessage, jsonrpc_message_adapter
from pydantic import ValidationError

from dialoom.mcp.transport import Oversize

LONGEST_SALVAGE: Final = 1024 * 1024
"""Longer lines that are no message are noise as a whole."""
MOST_IN_A_LINE: Final = 100
_START: Final = re.compile(r'\{\s*"(?:jsonrpc|id|method|result|error)"|\[\s*\{')
_ID: Final = rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,200}")'
_VERSION: Final = rb'"jsonrpc"\s*:\s*"2\.0"'
_ID_FIRST: Final = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID)
_ID_LAST: Final = re.compile(_ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*$")
_decoder: Final = json.JSONDecoder()


class Parsed(NamedTuple):
    """The messages of one line, and the words around them."""

    messages: tuple[JSONRPCMessage, ...]
    noise: str = ""


def parse_line(line: bytes) -> Parsed:
    """Return what `line` says. Bytes that are no UTF-8 become U+FFFD; it never raises."""
    try:
        return Parsed((jsonrpc_message_adapter.validate_json(line, by_name=False),))
    except ValidationError:
        return _salvage(line)


def find_id(line: Oversize) -> int | str | None:
    """Return the id of a message that is too long to be read, None when its ends do not show it."""
    found = _ID_FIRST.match(line.head) or _ID_LAST.search(line.tail)
    return cast("int | str", json.loads(found[1])) if found else None


def _salvage(line: bytes) -> Parsed:
    if len(line) > LONGEST_SALVAGE:
        return Parsed((), f"{len(line)} bytes that are no message")
    text = line.decode("utf-8", "replace")
    messages: list[JSONRPCMessage] = []
    noise: list[str] = []
    position = 0
    while len(messages) < MOST_IN_A_LINE:
        start = _START.search(text, position)
        if start is None:
            break
        noise.append(text[position : start.start()])
        try:
            value, position = cast("tuple[object, int]", _decoder.raw_decode(text, start.start()))
        except (ValueError, RecursionError):
            noise.append(start[0])
            position = start.end()
            continue
        found = _messages(value)
        messages += found
        if not found:
            noise.append(text[start.start() : position])
    noise.append(text[position:])
    return Parsed(tuple(messages), "".join(noise).strip())


def _messages(value: object) -> list[JSONRPCMessage]:
    """Return `value` as messages: one, or the several of a batch."""
    values = cast("list[object]", value)[:MOST_IN_A_LINE] if isinstance(value, list) else [value]
    found: list[JSONRPCMessage] = []
    for each in values:
        try:
            found.append(jsonrpc_message_adapter.validate_python(each, by_name=False))
        except ValidationError:
            continue
    return found
