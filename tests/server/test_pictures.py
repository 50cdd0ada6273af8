"""A picture elsewhere is fetched by the server when a person asks for it, and nothing else is."""

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dialoom.net.resolve import Resolver
from dialoom.server.files import Files, FileStore
from dialoom.server.pictures import Pictures
from dialoom.server.routes import serve_table
from tests.net.scripted import Hop, ScriptedFetcher

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 20
IMAGE = {"content-type": "image/png"}


class OneName(Resolver):
    """Knows the address of every name."""

    async def resolve(self, host: str) -> list[str]:
        return ["93.184.216.34"]


def serving(folder: Path, *hops: Hop) -> TestClient:
    files = FileStore(folder / "files", max_file=20_000_000, max_total=100_000_000)
    pictures = Pictures(files, fetcher=ScriptedFetcher(*hops), resolver=OneName())
    return TestClient(Starlette(routes=serve_table([*pictures.routes(), *Files(files).routes()], 10_000)))


def ask(client: TestClient, url: str) -> tuple[int, str]:
    answer = client.post("/api/v1/fetch-image", json={"url": url})
    return answer.status_code, answer.json().get("code") or answer.json()["id"]


def test_a_picture_becomes_a_file_of_ours(tmp_path: Path) -> None:
    client = serving(tmp_path, Hop(headers=IMAGE, body=(PNG,)))
    status, file_id = ask(client, "https://pictures.example/a.png")
    assert status == 201
    shown = client.get(f"/api/v1/files/{file_id}")
    assert (shown.content, shown.headers["content-type"]) == (PNG, "image/png")


@pytest.mark.parametrize(
    ("hop", "url", "refused"),
    [
        (Hop(headers=IMAGE, body=(b"<svg onload=alert(1)>",)), "https://p.example/a", (502, "no_picture")),
        (Hop(headers=IMAGE, status=404), "https://p.example/a", (502, "no_picture")),
        (Hop(headers={"content-type": "text/html"}), "https://p.example/a", (422, "url_refused")),
        (Hop(headers=IMAGE, body=(PNG,)), "http://127.0.0.1/a.png", (422, "url_refused")),
        (Hop(headers=IMAGE, body=(PNG,)), "file:///etc/passwd", (422, "url_refused")),
        (Hop(headers=IMAGE, body=(PNG,)), "http://169.254.169.254/latest", (422, "url_refused")),
    ],
)
def test_what_is_no_public_picture_is_refused(
    tmp_path: Path, hop: Hop, url: str, refused: tuple[int, str]
) -> None:
    assert ask(serving(tmp_path, hop), url) == refused
