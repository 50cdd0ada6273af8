"""A picture that a tool returns is kept as uploaded files are, and stands with the call in the log."""

import hashlib
import logging
from pathlib import Path
from typing import Any

import pytest

from dialoom.llm import FilePart, MockProvider
from dialoom.server import Parts
from dialoom.tools import Tool, ToolResult, tool
from tests.server.live import Live, following, served

PNG = b"\x89PNG\r\n\x1a\n and the picture"


@tool
async def shoot(name: str) -> ToolResult:
    """Take a picture."""
    return ToolResult(content="A desk.", files=(FilePart(data=PNG, media_type="image/png", name=name),))


@pytest.fixture
def tools() -> list[Tool]:
    return [shoot]


async def answered(live: Live, provider: MockProvider, name: str) -> dict[str, Any]:
    """Have a picture taken, and return what is shown of the call's answer."""
    provider.queue_tool_call("c1", "shoot", {"name": name}).queue_text("I see.")
    path = f"/api/v1/conversations/{await live.begin()}"
    async with following(live, f"{path}/events") as events:
        await live.client.post(f"{path}/messages", json={"text": "Look."})
        seen = await events.until("RUN_FINISHED")
    told = [event["value"]["entry"] for event in seen if event.get("name") == "entry.appended"]
    (entry,) = [each for each in told if each["role"] == "tool"]
    stored = (await live.client.get(f"{path}/entries")).json()["entries"]
    assert entry in stored
    return entry


@pytest.mark.parametrize(("name", "shown"), [("desk.png", "desk.png"), ("", "image.png")])
async def test_a_picture_of_a_tool_is_shown_with_its_call_and_can_be_fetched(
    parts: Parts, provider: MockProvider, tmp_path: Path, name: str, shown: str
) -> None:
    async with served(parts, tmp_path) as live:
        entry = await answered(live, provider, name)
        digest = hashlib.sha256(PNG).hexdigest()
        note = {"id": digest, "name": shown, "size": len(PNG), "mime": "image/png"}
        assert (entry["content"], entry["attachments"]) == ("A desk.", [note])
        fetched = await live.client.get(f"/api/v1/files/{digest}")
        assert (fetched.content, fetched.headers["content-type"]) == (PNG, "image/png")


async def test_a_picture_without_room_is_left_out_and_the_run_goes_on(
    parts: Parts, provider: MockProvider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(parts, tmp_path, max_files=5) as live:
        entry = await answered(live, provider, "desk.png")
    assert (entry["content"], "attachments" in entry) == ("A desk.", False)
    left = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert [each.message for each in left] == ["a file that a tool returned cannot be kept"]
