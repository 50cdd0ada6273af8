"""Pictures that servers return reach models, and those of our tools reach clients."""

from base64 import b64encode
from typing import Any

import pytest

from dialoom.llm.files import MAX_FILE_BYTES, FilePart
from dialoom.mcp.results import observation_of
from dialoom.mcp.server import Served
from dialoom.mcp.server.sdk_face import sdk_server
from dialoom.tools import ToolRegistry, ToolResult, tool
from mcp import Client

PNG = b"\x89PNG"
PICTURE = {"type": "image", "mimeType": "image/png", "data": b64encode(PNG).decode()}
PAPER = {"type": "resource", "resource": {"uri": "u:1", "mimeType": "application/pdf", "blob": "JVBERi0="}}


def files_of(*blocks: dict[str, Any]) -> tuple[FilePart, ...]:
    return observation_of({"content": list(blocks)}, tool="x").files


def test_pictures_sounds_and_documents_are_kept_for_models_that_can_see_them() -> None:
    sound = {"type": "audio", "mimeType": "audio/WAV", "data": "AAAA"}
    assert files_of({"type": "text", "text": "words"}, PICTURE, sound, PAPER) == (
        FilePart(data=PNG, media_type="image/png"),
        FilePart(data=b"\0\0\0", media_type="audio/wav"),
        FilePart(data=b"%PDF-", media_type="application/pdf"),
    )


@pytest.mark.parametrize(
    "block",
    [
        {**PICTURE, "data": "not base64!"},
        {**PICTURE, "data": "猫"},
        {**PICTURE, "data": ""},
        {**PICTURE, "mimeType": "png"},
        {**PICTURE, "mimeType": None},
        {**PICTURE, "annotations": {"audience": ["user"]}},
        {"type": "resource", "resource": {"uri": "u:1", "text": "words"}},
    ],
)
def test_what_is_no_picture_for_a_model_is_not_one(block: dict[str, Any]) -> None:
    assert files_of(block, PICTURE) == (FilePart(data=PNG, media_type="image/png"),)


def test_so_much_of_pictures_is_read_and_no_more() -> None:
    half = {**PICTURE, "data": b64encode(bytes(MAX_FILE_BYTES // 2 + 3)).decode()}
    assert len(files_of(half, half, PICTURE)) == 2


@tool
def show() -> list[object]:
    """Show one of each."""
    return [
        "one of each",
        FilePart(data=PNG, media_type="image/png"),
        FilePart(data=b"RIFF", media_type="audio/wav"),
        FilePart(data=b"%PDF-", media_type="application/pdf", name="my paper.pdf"),
    ]


@tool
def pass_on() -> ToolResult:
    """Pass on what another server sent."""
    link = {"type": "resource_link", "uri": "https://a.example/", "name": "page"}
    return observation_of({"content": [PICTURE, link]}, tool="x")


async def test_clients_get_the_pictures_that_our_tools_return() -> None:
    async with Client(sdk_server(Served(tools=ToolRegistry([show, pass_on])))) as client:
        shown = (await client.call_tool("show", {})).content
        passed = (await client.call_tool("pass_on", {})).content
    assert [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in shown[1:]] == [
        PICTURE,
        {"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="},
        {
            "type": "resource",
            "resource": {
                "uri": "attachment:my%20paper.pdf",
                "mimeType": "application/pdf",
                "blob": "JVBERi0=",
            },
        },
    ]
    assert [block.type for block in passed] == ["text", "image", "resource_link"]
