"""What a server answered, as an observation for a model: everything it said, once, and readable.

Nothing here raises for what a server sends. A block of an unknown kind is shown as JSON, one for people
only goes to the card. Pictures, sounds and documents are named with their size, and kept as files for models
that can see them. Long texts are cut where every tool's
are: by the policy that runs the call, which can keep the whole.
"""

import binascii
import re
import unicodedata
from base64 import b64decode
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, cast

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line, printable
from dialoom.llm.files import MAX_FILE_BYTES, FilePart
from dialoom.llm.json_schema import JsonSchema
from dialoom.mcp.errors import McpError
from dialoom.mcp.inputs import Fields
from dialoom.mcp.json_shapes import list_of, object_of
from dialoom.tools.result import ToolResult, failed

MAX_DESCRIPTION: Final = 4096
MAX_BLOCKS: Final = 10_000
MAX_CARD_BYTES: Final = 240 * 1024
"""Pictures and the like that a card carries, together, so that an agent keeps it; the rest is named only."""

_RETRYABLE: Final = frozenset({"connect", "session", "timeout", "closed", "unavailable"})
_PROTOCOL: Final = frozenset({"status", "protocol", "too_large", "rpc"})
_TAG: Final = re.compile("[\U000e0100-\U000e01ef]")


def clean_text(text: str, limit: int = MAX_DESCRIPTION) -> str:
    """Return foreign words as they may stand in a prompt: nothing invisible, at most `limit` characters.

    Control codes, what turns the direction of text, zero-width characters and tags go: they hide orders
    from people that a model reads.
    """
    bounded = printable(text[: 4 * limit])
    seen = "".join(char for char in bounded if char in "\n\t" or unicodedata.category(char) != "Cf")
    seen = _TAG.sub("", seen)
    return seen if len(seen) <= limit else seen[: limit - 1] + "…"


def observation_of(result: Fields, *, tool: str, output: JsonSchema | None = None) -> ToolResult:
    """Return the observation for a `CallToolResult` as JSON values.

    With `output`, structured content that does not match is an error, told together with what was said.
    """
    blocks = _blocks(result.get("content"))
    texts = [_text_of(block) for block in blocks if not _for_people_only(block)]
    structured = result.get("structuredContent")
    if structured is not None and not any(_says(text, structured) for text in texts):
        texts.append(msgspec.json.encode(structured).decode())
    failure = result.get("isError") is True
    problem = None if failure or output is None else _mismatch(structured, output)
    if problem:
        texts.insert(0, f"the tool {one_line(tool, 80)} broke its own output schema: {problem}")
    said = "\n".join(text for text in texts if text)
    return ToolResult(
        content=said or ("the tool failed and said nothing" if failure else "the tool returned nothing"),
        files=_files_of(blocks),
        structured=structured,
        is_error=failure or bool(problem),
        card=_card(blocks),
    )


def observation_of_error(error: McpError, *, tool: str) -> ToolResult:
    """Return the observation for a call that did not get through, with what a model can decide by."""
    kind = "protocol_error" if error.kind in _PROTOCOL else error.kind
    if kind not in {"protocol_error", "timeout"}:
        kind = "unavailable"
    more = {"kind": kind, "retryable": error.kind in _RETRYABLE}
    return failed(str(error), tool=tool, more=more, flag="timeout" if kind == "timeout" else None)


def _blocks(content: object) -> list[Fields]:
    listed = list_of(content)[:MAX_BLOCKS]
    return [_without_nulls(cast("Fields", block)) for block in listed if isinstance(block, dict)]


def _without_nulls(block: Fields) -> Fields:
    """The official package writes what a server left out as null."""
    return {key: value for key, value in block.items() if value is not None}


def _for_people_only(block: Fields) -> bool:
    return object_of(block.get("annotations")).get("audience") == ["user"]


def _text_of(block: Fields) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return printable(text)
        case {"type": "image" | "audio" as kind, "data": str(data)}:
            return f"[{kind} {_named(block, 'mimeType')}, {_size(_bytes_of(data))}]"
        case {"type": "resource_link", "uri": str(uri)}:
            size = block.get("size")
            facts = [one_line(uri, 2000), _named(block, "mimeType")]
            facts += [_size(size)] if isinstance(size, int) else []
            return (
                f"[link {_named(block, 'title') or _named(block, 'name')}: {', '.join(filter(None, facts))}]"
            )
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
            return f"[resource {one_line(uri, 2000)}]\n{printable(text)}"
        case {"type": "resource", "resource": {"uri": str(uri), "blob": str(blob)} as resource}:
            kind = _named(cast("Fields", resource), "mimeType") or "binary"
            return f"[resource {one_line(uri, 2000)}, {kind}, {_size(_bytes_of(blob))}]"
        case _:
            return msgspec.json.encode(block).decode()


def _files_of(blocks: Sequence[Fields]) -> tuple[FilePart, ...]:
    """Return what the server sent for a model to see; what is no file after all is named only."""
    room, files = MAX_FILE_BYTES, list[FilePart]()
    for block in blocks:
        encoded, media_type = _encoded_file(block)
        if encoded and len(encoded) // 4 * 3 <= room and not _for_people_only(block):
            with suppress(binascii.Error, ValueError, UsageError):
                files.append(FilePart(data=b64decode(encoded, validate=True), media_type=media_type.lower()))
                room -= len(files[-1].data)
    return tuple(files)


def _encoded_file(block: Fields) -> tuple[str, str]:
    match block:
        case {"type": "image" | "audio", "data": str(data), "mimeType": str(media_type)}:
            return data, media_type
        case {"type": "resource", "resource": {"blob": str(data), "mimeType": str(media_type)}}:
            return data, media_type
        case _:
            return "", ""


def _named(block: Fields, key: str) -> str:
    value = block.get(key)
    return one_line(value) if isinstance(value, str) else ""


def _bytes_of(base64: str) -> int:
    return len(base64) * 3 // 4


def _size(count: int) -> str:
    return f"{count} bytes" if count < 1024 else f"{count // 1024} kB"


def _says(text: str, structured: object) -> bool:
    """Whether `text` is the same value, as JSON or as the only field of an object.

    Servers send it so for clients that read text only.
    """
    if list(object_of(structured).values()) == [text]:
        return True
    try:
        return msgspec.json.decode(text) == structured
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False


def _mismatch(structured: object, output: JsonSchema) -> str:
    if structured is None:
        return "there is no structured content"
    return "; ".join(f"{each.path}: {each.message}" for each in output.check(structured)[:3])


def _card(blocks: Sequence[Fields]) -> object:
    """Return what a person is shown besides the text: None when there is nothing more than text."""
    if all(block.get("type") == "text" and not _for_people_only(block) for block in blocks):
        return None
    room = MAX_CARD_BYTES
    shown: list[object] = []
    for block in blocks:
        size = len(msgspec.json.encode(block))
        room -= size
        shown.append(block if room >= 0 else {"type": "text", "text": _text_of(block)[:200]})
    return {"type": "mcp_result", "blocks": shown}
