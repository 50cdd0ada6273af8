"""Row 14 of the complaints: names and ids that want out of their place, in every spelling we know."""

import base64
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec
import pytest
from starlette.testclient import TestClient

from dialoom.server import Parts, RateLimit, ServerSettings, Workbench
from tests.server.conftest import TOKEN, URL

BYTES = "application/octet-stream"
LABEL = re.compile(r"attachment; filename=\"[A-Za-z0-9 ._-]*\"; filename\*=UTF-8''[A-Za-z0-9_.%~-]*")
NO_RUNS = ("/api/v1/threads/{thread}/checkpoints", b'{"items":[]}')
SECRET = "what nobody may read"
TARGETS = (
    "../secret.txt", "../../secret.txt", "../../../../../../etc/passwd", "/etc/passwd", "//etc/passwd",
    "..\\secret.txt", "..\\..\\secret.txt", "C:\\Windows\\win.ini", "C:secret.txt", "\\\\host\\share\\x",
    "\\\\?\\C:\\x", "....//....//secret.txt", "..././..././secret.txt", "./../secret.txt",
    "x/../../secret.txt",
    "secret.txt/..", "..;/secret.txt", "~/secret.txt", "~root/.bashrc", "file:///etc/passwd",
    "..", ".", "...", "/", "\\", "%", "..%2fsecret.txt", "..%5csecret.txt", "$HOME/x", "${jndi:ldap://x}",
)  # fmt: skip
DEVICES = (
    *("CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"),
    *(f"{port}{number}" for port in ("COM", "LPT") for number in range(1, 10)),
    *("nul.txt", "con.tar.gz", "aux.", "prn ", "CON:", "x::$DATA", "x:stream", "\\\\.\\PhysicalDrive0"),
)  # fmt: skip
ODD = (
    "a\0.png", "\0", "a\r\nset-cookie: x=1", "a\nb", "\t", "\x7f", "\x1b[2J", "\u202egnp.exe", "\u2028",
    "\ufeff",
    "\uff0e\uff0e\uff0fsecret.txt", "\u2025/secret.txt", "\u2215etc\u2215passwd", "e\u0301", "名前",
    "😀" * 40,
    "a" * 65, "a" * 255, "a" * 400, "a b", " a", "a ", "a.", ".a", "a.b", "-rf", "--help", "$(id)", "`id`",
    "a;b",
    "a|b", "a&b", "a*", "a?", "a#b", 'a"b', "a'b", "<svg onload=alert(1)>", "' OR 1=1 --", "{{7*7}}", "%s%n",
    "null", "undefined", "NaN", "__proto__", "0", "-1", "1e309",
)  # fmt: skip
NAMES = (*TARGETS, *DEVICES, *ODD)


def spellings(name: str) -> list[bytes]:
    """Return how a name may stand in an address: as it is, encoded once, twice, overlong, and in base64."""
    raw = name.encode()
    once = b"".join(b"%%%02x" % byte for byte in raw)
    plain = quote(name, safe="/\\:;$()*'!").encode()
    return [
        *{plain, once, once.upper(), once.replace(b"%", b"%25")},
        plain.replace(b".", b"%c0%ae").replace(b"/", b"%c0%af"),
        base64.urlsafe_b64encode(raw),
    ]


SPELLED = sorted({each for name in NAMES for each in spellings(name)})


async def called(app: Any, method: str, path: bytes, content: bytes = b"") -> tuple[int, bytes]:
    """Call the app below any client, which would tidy the address up."""
    told: list[dict[str, Any]] = []
    said = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return said.pop() if said else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        told.append(message)

    headers = {
        "host": "127.0.0.1:8321",
        "authorization": f"Bearer {TOKEN}",
        "content-type": "application/json",
    }
    scope = {
        "type": "http", "method": method, "path": unquote(path.decode("ascii")), "raw_path": path,
        "query_string": b"", "http_version": "1.1", "scheme": "http", "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    await app(scope, receive, send)
    return told[0]["status"], b"".join(each.get("body", b"") for each in told)


def tree(folder: Path) -> set[str]:
    """Return the files below a folder, but for those that SQLite has beside its own."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {each.relative_to(folder).as_posix() for each in files if not each.name.endswith(("-wal", "-shm"))}


def test_the_corpus_is_as_large_as_was_asked() -> None:
    assert len(set(NAMES)) > 100
    assert len(SPELLED) > 500


@pytest.fixture
def workbench(settings: ServerSettings, parts: Parts) -> Workbench:
    often = RateLimit(100_000, 100_000)
    return Workbench(msgspec.structs.replace(settings, calls=often, logins=often), parts)


@pytest.mark.parametrize(
    "place",
    ["/", "/assets/", "/c/", "/plain/", "/api/v1/", "/api/v1/files/", "/api/v1/conversations/",
     "/api/v1/datasets/", "/agui/", "/v1/", "/login/", "/mcp/"],
)  # fmt: skip
async def test_no_spelling_of_a_name_leads_out_of_its_place(
    workbench: Workbench, tmp_path: Path, place: str
) -> None:
    (tmp_path / "secret.txt").write_text(SECRET)
    before, statuses = tree(tmp_path), dict[bytes, int]()
    for name in SPELLED:
        statuses[name], content = await called(workbench.app, "GET", place.encode() + name)
        assert SECRET.encode() not in content, name
        assert b"root:" not in content, name
    # the page itself is shown for whatever conversation; all else is refused, and nothing breaks
    fine = {400, 404, 405, 422} | ({200, 303} if place == "/c/" else set())
    assert {name: status for name, status in statuses.items() if status not in fine} == {}
    assert tree(tmp_path) == before


async def test_no_call_takes_a_hostile_name_for_an_id(workbench: Workbench, tmp_path: Path) -> None:
    routes = [route for route in workbench.table if "{" in route.path]
    before = tree(tmp_path)
    for route in routes:
        parts = re.split(r"\{[^}]+\}", route.path)
        for name in SPELLED[:: len(routes) // 4]:
            path = name.join(part.encode() for part in parts)
            status, content = await called(workbench.app, route.method, path, b"{}")
            # a thread may have any name; of one that never ran there is nothing to list
            assert 400 <= status < 500 or (route.path, content) == NO_RUNS, (route.method, path)
    assert tree(tmp_path) == before


def test_an_uploaded_file_s_name_is_a_label_and_nothing_more(
    workbench: Workbench, settings: ServerSettings, tmp_path: Path
) -> None:
    with TestClient(workbench.app, base_url=URL, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        before = tree(tmp_path)
        for name in NAMES:
            headers = {"Content-Type": "text/plain", "X-Filename": quote(name, safe="")}
            file = client.post("/api/v1/files", content=b"some bytes", headers=headers).json()
            found = client.get(f"/api/v1/files/{file['id']}")
            told = found.headers["content-disposition"]
            assert (found.status_code, found.content) == (200, b"some bytes"), name
            assert LABEL.fullmatch(told), told
            assert (found.headers["content-type"], "set-cookie" in found.headers) == (BYTES, False)
        kept = f"{settings.data.relative_to(tmp_path)}/files/{file['id'][:2]}/{file['id']}"
        assert tree(tmp_path) - before == {kept, f"{kept}.json"}


def test_an_imported_conversation_s_id_is_one_of_ours(workbench: Workbench, tmp_path: Path) -> None:
    with TestClient(workbench.app, base_url=URL, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        made = client.post("/api/v1/conversations", json={"title": "Wells"}).json()["id"]
        exported = client.get(f"/api/v1/conversations/{made}/export", params={"format": "json"}).json()
        before = tree(tmp_path)
        for name in NAMES:
            exported["id"] = name
            answer = client.post("/api/v1/conversations/import", params={"format": "json"}, json=exported)
            assert answer.status_code in {201, 422}, (name, answer.text)
            if answer.status_code == 201:
                assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", answer.json()["id"]), name
        assert tree(tmp_path) == before
