"""Who is let in: the matrix of hosts, origins, content types, tokens, cookies and paths."""

import asyncio

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from dialoom.server import ServerSettings, Workbench, routes
from dialoom.server.guard import CSP
from dialoom.testing.clock import ManualClock
from tests.server.conftest import TOKEN, URL

LIST = "/api/v1/conversations"


def code_of(answer) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize("host", ["127.0.0.1:8321", "localhost:8321", "[::1]:8321", "LocalHost:8321"])
def test_this_machine_s_names_are_answered(client: TestClient, host: str) -> None:
    assert client.get(LIST, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:8321.evil.example", "evil.127.0.0.1:8321",
     "localhost:8321@evil.example", "", "127.0.0.1:8321,evil.example", "0.0.0.0:8321"],
)  # fmt: skip
def test_no_other_host_is_answered_so_that_no_name_can_be_rebound(client: TestClient, host: str) -> None:
    assert code_of(client.get(LIST, headers={"Host": host})) == (403, "host_not_allowed")
    assert client.get("/", headers={"Host": host}).status_code == 403
    assert client.get("/healthz", headers={"Host": host}).status_code == 403


def test_a_host_given_twice_or_not_at_all_is_refused(workbench: Workbench) -> None:
    for hosts in ([], [(b"host", b"127.0.0.1:8321"), (b"host", b"evil.example")]):
        assert status_of(workbench, hosts) in {400, 403}


def status_of(workbench: Workbench, headers: list[tuple[bytes, bytes]], method: str = "GET") -> int:
    """Call the app below any client, which would add or merge headers."""
    statuses: list[int] = []

    async def receive():
        await asyncio.Event().wait()  # a client that says nothing more

    async def send(message):
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http", "method": method, "path": LIST, "raw_path": LIST.encode(), "query_string": b"",
        "headers": headers, "http_version": "1.1", "scheme": "http",
    }  # fmt: skip
    asyncio.run(workbench.app(scope, receive, send))
    return statuses[0]


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:9999", "http://localhost:8321.evil.example",
               "https://127.0.0.1:8321"],
)  # fmt: skip
def test_a_page_of_another_origin_may_neither_read_nor_change(client: TestClient, origin: str) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        answer = client.request(method, LIST, headers={"Origin": origin}, json={})
        assert answer.status_code in {403, 405}
    assert client.get(LIST).json()["items"] == []


def test_a_cross_site_request_is_refused_and_a_link_to_the_page_is_not(client: TestClient) -> None:
    crossing = {"Sec-Fetch-Site": "cross-site"}
    assert code_of(client.get(LIST, headers=crossing)) == (403, "origin_not_allowed")
    assert client.get("/", headers=crossing).status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_a_body_that_a_form_could_send_is_refused(client: TestClient, kind: str) -> None:
    answer = client.post(LIST, content=b"{}", headers={"Content-Type": kind})
    assert code_of(answer) == (415, "json_needed")


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer \u00e9"]
)
def test_without_the_token_nothing_is_told(stranger: TestClient, header: str) -> None:
    answer = stranger.get(LIST, headers={"Authorization": header.encode("latin-1")})
    assert code_of(answer) == (401, "signed_out")
    assert answer.headers["www-authenticate"] == "Bearer"
    for path in ("/api/v1/card-types", "/metrics", "/v1/models", "/agui/x", "/api/v1/nothing"):
        assert stranger.get(path).status_code == 401


def test_a_program_may_send_the_token_as_a_key(stranger: TestClient) -> None:
    assert stranger.get(LIST, headers={"X-Api-Key": TOKEN}).status_code == 200
    assert stranger.get(LIST, headers={"X-Api-Key": "x" * 20}).status_code == 401


def test_a_link_signs_in_once_and_its_cookie_is_kept_from_scripts(
    workbench: Workbench, stranger: TestClient
) -> None:
    link = workbench.login_url.removeprefix(URL)
    answer = stranger.get(link)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("dialoom_8321=")
    for part in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=2592000"):
        assert part in cookie
    assert stranger.get(LIST).status_code == 200

    second = TestClient(workbench.app, base_url=URL, follow_redirects=False)
    again = second.get(link)
    assert (again.status_code, "set-cookie" in again.headers) == (410, False)
    assert second.get(LIST).status_code == 401


@pytest.mark.parametrize(
    ("languages", "language", "told"),
    [
        ("", "en", "prints a new link"),
        ("de-CH, en;q=0.8", "en", "prints a new link"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh", "给出新的链接"),
    ],
)
def test_who_opens_a_used_link_is_told_what_to_do(
    workbench: Workbench, stranger: TestClient, languages: str, language: str, told: str
) -> None:
    link = workbench.login_url.removeprefix(URL)
    assert stranger.get(link).status_code == 303
    assert stranger.get(link).headers["location"] == "/"  # signed in already, it does no harm
    stranger.cookies.clear()
    page = stranger.get(link, headers={"Accept-Language": languages})
    assert (page.status_code, page.headers["content-language"]) == (410, language)
    assert f'<html lang="{language}">' in page.text
    assert told in page.text
    assert link.partition("=")[2] not in page.text
    assert stranger.get("/login").headers["location"] == "/"  # the page asks for the token


def test_the_token_signs_a_browser_in_and_logging_out_ends_it(stranger: TestClient) -> None:
    assert code_of(stranger.post("/login", json={"token": "x" * 20})) == (401, "wrong_token")
    assert code_of(stranger.post("/login", content=b"{}")) == (415, "json_needed")
    assert stranger.post("/login", json={"token": TOKEN}).status_code == 204
    assert stranger.get(LIST).status_code == 200
    assert stranger.post("/logout").status_code == 204
    assert stranger.get(LIST).status_code == 401


def test_a_change_with_a_cookie_needs_an_origin_of_ours(stranger: TestClient) -> None:
    stranger.post("/login", json={"token": TOKEN})
    assert code_of(stranger.post(LIST, json={})) == (403, "origin_missing")
    assert stranger.post(LIST, json={}, headers={"Origin": URL}).status_code == 201
    assert stranger.post(LIST, json={}, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 201


def test_a_cookie_that_was_changed_or_is_too_old_is_none(
    workbench: Workbench, stranger: TestClient, clock: ManualClock
) -> None:
    good = workbench.doorkeeper.new_cookie()
    until, nonce, signature = good.split(".")
    later = f"{int(until) + 1}.{nonce}.{signature}"
    for wrong in (later, good[:-1], "", "x", "..", f"{until}.{nonce}.", f"x.{signature}"):
        assert stranger.get(LIST, headers={"Cookie": f"dialoom_8321={wrong}"}).status_code == 401
    both = {"Cookie": f"other=1; dialoom_8321={later}; dialoom_8321={good}"}
    assert stranger.get(LIST, headers=both).status_code == 200
    asyncio.run(clock.advance(31 * 86_400))
    assert stranger.get(LIST, headers={"Cookie": f"dialoom_8321={good}"}).status_code == 401


HOSTILE_PATHS = (
    "/api/v1/conversations/..%2f..%2fetc%2fpasswd", "/api/v1/conversations/%2e%2e/x", "/%2e%2e/%2e%2e/etc/x",
    "/assets/..%5c..%5cwindows", "/api/v1/files/%00", "/api/v1/files/a%00b", "/api/v1/files/%252e%252e/x",
    "/api/v1/conversations/%c0%ae%c0%ae/x", "/a//b", "/api/v1/files/%0d%0aset-cookie:x", "/\\evil",
)  # fmt: skip


@pytest.mark.parametrize("path", HOSTILE_PATHS)
def test_a_path_that_could_leave_its_place_is_refused(client: TestClient, path: str) -> None:
    answer = client.get(URL + path)
    assert answer.status_code in {400, 404}


@pytest.mark.parametrize("name", ["CON", "nul", "a b", "名", "a" * 65, "a.b", "-" * 64 + "x", "x;y", "$(id)"])
def test_what_could_be_no_id_is_not_found(client: TestClient, name: str) -> None:
    for path in (
        f"{LIST}/{name}",
        f"{LIST}/{name}/entries",
        f"/api/v1/files/{name}",
        f"/api/v1/datasets/{name}",
    ):
        assert client.get(path).status_code in {404, 422}


def test_an_endless_address_is_refused(client: TestClient) -> None:
    assert code_of(client.get(f"{LIST}?q={'x' * 9000}")) == (400, "address_too_long")
    assert code_of(client.get(f"{LIST}/{'x' * 3000}")) == (400, "address_too_long")


def test_a_body_that_does_not_come_is_not_waited_for(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "PIECE_SECONDS", 0.01)
    headers = [
        (b"host", b"127.0.0.1:8321"),
        (b"authorization", f"Bearer {TOKEN}".encode()),
        (b"content-type", b"application/json"),
    ]
    assert status_of(workbench, headers, method="POST") == 408


def test_unknown_methods_and_paths_are_told_as_problems(client: TestClient) -> None:
    assert code_of(client.request("TRACE", LIST)) == (405, "method_not_allowed")
    answer = client.put(LIST, json={})
    assert (code_of(answer), answer.headers["allow"]) == ((405, "method_not_allowed"), "GET, POST")
    assert code_of(client.get("/api/v1/nothing")) == (404, "not_found")
    assert code_of(client.post("/nothing", json={})) == (404, "not_found")
    assert answer.headers["content-type"] == "application/problem+json"


def test_every_answer_has_the_headers_that_hold_a_page_in(client: TestClient, stranger: TestClient) -> None:
    for answer in (client.get("/"), client.get(LIST), stranger.get(LIST), client.get("/api/v1/nothing")):
        assert answer.headers["content-security-policy"] == CSP
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "same-origin"
    assert client.get(LIST).headers["cache-control"] == "no-store"


def test_too_many_calls_are_told_when_to_come_back(
    settings: ServerSettings, client: TestClient, clock: ManualClock
) -> None:
    for _ in range(settings.calls.burst):
        assert client.get("/api/v1/forms").status_code == 200
    answer = client.get("/api/v1/forms")
    assert code_of(answer) == (429, "too_many_calls")
    assert (answer.headers["retry-after"], answer.json()["params"]) == ("1", {"seconds": 1})
    asyncio.run(clock.advance(0.011))
    assert client.get("/api/v1/forms").status_code == 200


def test_guessing_tokens_is_slow(stranger: TestClient) -> None:
    codes = [stranger.post("/login", json={"token": f"guess {at:020}"}).status_code for at in range(11)]
    assert codes == [401] * 10 + [429]


def test_a_websocket_is_closed(client: TestClient) -> None:

    with pytest.raises(WebSocketDisconnect) as closed, client.websocket_connect("/api/v1/events"):
        pass
    assert closed.value.code == 1008
