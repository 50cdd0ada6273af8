"""Answers that break their own schema, mended as far as that is possible without guessing.

The SDK refuses an answer as a whole: one tool without a schema takes all tools of its server away. Here the
broken item is left out and reported, an unknown block becomes text, and the rest is as the server sent it.
"""

import json
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from mcp_types import (
    PROTOCOL_VERSION_META_KEY,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    methods,
)
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from dialoom.base.text import one_line
from dialoom.mcp.catalog import Skipped

MOST_PENDING: Final = 10_000
MOST_DROPPED: Final = 1_000
_FIRST_VERSION: Final = "2025-11-25"
_LISTS: Final = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
_FILLED: Final[Mapping[str, object]] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What the newest revision requires of every listing; a cautious value for a server that left it out."""

_WORDS_ONLY: Final = frozenset({"content", "isError", "resultType"})
_TEXT_BLOCK: Final = frozenset({"type", "text"})

Raw = dict[str, Any]
"""A JSON object as the SDK hands it over; it is read here and parsed there."""


class _Asked(NamedTuple):
    method: str
    version: str


class FrameRepair:
    """Watches the messages of one connection go by, and hands on the server's in mended form.

    `dropped` are the items left out since the last listing of their kind began.
    """

    def __init__(self) -> None:
        self.dropped: deque[Skipped] = deque(maxlen=MOST_DROPPED)
        self.capabilities: Raw | None = None
        """What the server said it can do, None before the handshake."""
        self._asked: dict[RequestId, _Asked] = {}
        self._version = _FIRST_VERSION

    @property
    def only_pending(self) -> RequestId | None:
        """The one request that waits for an answer, None when it is none or several."""
        return next(iter(self._asked)) if len(self._asked) == 1 else None

    def sent(self, message: JSONRPCMessage) -> None:
        """Note what goes out, so that its answer can be understood."""
        match message:
            case JSONRPCRequest():
                if len(self._asked) >= MOST_PENDING:  # answers that never came
                    self._asked.pop(next(iter(self._asked)))
                self._asked[message.id] = _Asked(message.method, self._version_of(message.params))
                if message.method in _LISTS and "cursor" not in (message.params or {}):
                    self._forget_dropped(_LISTS[message.method])
            case JSONRPCNotification(method="notifications/cancelled", params=dict() as params):
                self._asked.pop(cast("RequestId", params.get("requestId")), None)
            case _:
                return

    def received(self, message: JSONRPCMessage) -> JSONRPCMessage:
        """Return what came in, mended."""
        match message:
            case JSONRPCResponse():
                asked = self._answered(message.id)
                if asked is not None:
                    message.result = self._mended(asked, message.result)
            case JSONRPCError(id=int() | str() as request_id):
                self._answered(request_id)
            case _:
                pass
        return message

    def _answered(self, request_id: RequestId) -> _Asked | None:
        asked = self._asked.pop(request_id, None)
        if asked is None and isinstance(request_id, str) and request_id.isdecimal():
            # servers that send every id back as text
            return self._asked.pop(int(request_id), None)
        return asked

    def _mended(self, asked: _Asked, result: Raw) -> Raw:
        match asked.method:
            case "initialize":
                return self._initialized(result)
            case "server/discover":
                self.capabilities = _object(result.get("capabilities"))
                return result
            case "tools/call":
                fine = _is_plain(asked, result) or _is_valid(asked, result)
                return result if fine else _mended_call(asked, result)
            case method if method in _LISTS:
                return result if _is_valid(asked, result) else self._mended_list(asked, result)
            case _:
                return result

    def _initialized(self, result: Raw) -> Raw:
        result = {"serverInfo": {"name": "", "version": ""}, **result}
        result["capabilities"] = self.capabilities = _object(result.get("capabilities"))
        version = result.get("protocolVersion")
        if version in KNOWN_PROTOCOL_VERSIONS:
            self._version = version
        return result

    def _mended_list(self, asked: _Asked, result: Raw) -> Raw:
        key = _LISTS[asked.method]
        bare: Raw = {**_FILLED, key: []}
        if isinstance(cursor := result.get("nextCursor"), str):
            bare["nextCursor"] = cursor
        for name in (*_FILLED, "_meta"):
            if name in result and _is_valid(asked, {**bare, name: result[name]}):
                bare[name] = result[name]
        items = result.get(key)
        kept: list[object] = []
        for item in cast("list[object]", items) if isinstance(items, list) else []:
            reason = _problem(asked, {**bare, key: [item]})
            if reason is None:
                kept.append(item)
            else:
                self.dropped.append(Skipped(key, _name_of(item), reason))
        return {**bare, key: kept}

    def _forget_dropped(self, kind: str) -> None:
        kept = [each for each in self.dropped if each.kind != kind]
        self.dropped.clear()
        self.dropped.extend(kept)

    def _version_of(self, params: Mapping[str, Any] | None) -> str:
        meta = _object((params or {}).get("_meta"))
        version = meta.get(PROTOCOL_VERSION_META_KEY)
        return version if version in KNOWN_PROTOCOL_VERSIONS else self._version


def _is_plain(asked: _Asked, result: Raw) -> bool:
    """Whether a result is nothing but words, as most are: seen at a glance, without all of the schema."""
    if not _WORDS_ONLY.issuperset(result) or not isinstance(result.get("isError", False), bool):
        return False
    expected = "complete" if asked.version in MODERN_PROTOCOL_VERSIONS else None
    if result.get("resultType") != expected or not isinstance(result.get("content"), list):
        return False
    return all(
        _object(block).keys() == _TEXT_BLOCK and block["type"] == "text" and isinstance(block["text"], str)
        for block in cast("list[Raw]", result["content"])
    )


def _mended_call(asked: _Asked, result: Raw) -> Raw:
    mended: Raw = {"resultType": "complete", "content": _mended_blocks(asked, result.get("content"))}
    if isinstance(result.get("_meta"), dict):
        mended["_meta"] = result["_meta"]
    if result.get("isError"):
        mended["isError"] = True
    if "structuredContent" in result:
        structured: Raw = {**mended, "structuredContent": result["structuredContent"]}
        if _is_valid(asked, structured):
            return structured
        # older revisions allow objects only; the words are not lost
        mended["content"] = [*mended["content"], _as_text(result["structuredContent"])]
    return mended


def _mended_blocks(asked: _Asked, content: object) -> list[Raw]:
    match content:
        case None:
            return []
        case list():
            blocks = cast("list[object]", content)
        case _:
            blocks = [content]
    return [_mended_block(asked, block) for block in blocks]


def _mended_block(asked: _Asked, block: object) -> Raw:
    fields = _object(block)
    if fields and _is_valid(asked, {"resultType": "complete", "content": [fields]}):
        return fields
    if fields.get("type") == "text" and fields.get("text") is None:
        return {"type": "text", "text": ""}
    return _as_text(block)


def _as_text(value: object) -> Raw:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return {"type": "text", "text": text}


def _is_valid(asked: _Asked, result: Raw) -> bool:
    return _problem(asked, result) is None


def _problem(asked: _Asked, result: Raw) -> str | None:
    """Return what the SDK will have against `result`, in words that hold none of its values."""
    try:
        methods.parse_server_result(asked.method, asked.version, result)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return one_line(f"{place}: {first['msg']}")
    except KeyError:
        return None  # a method this revision does not know: the SDK asks no more of it
    return None


def _name_of(item: object) -> str:
    fields = _object(item)
    name = fields.get("name") or fields.get("uri") or fields.get("uriTemplate")
    return one_line(name, 128) if isinstance(name, str) else ""


def _object(value: object) -> Raw:
    return cast("Raw", value) if isinstance(value, dict) else {}
