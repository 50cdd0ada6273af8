"""Logging in to a server: once, kept for the next program and from others, refreshed without anybody."""

import asyncio
import stat
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import StoreError
from dialoom.mcp import (
    FileTokenStore,
    Login,
    MCPClient,
    McpError,
    MCPOptions,
    McpTimeouts,
    MemoryTokenStore,
    OAuth,
    TokenStore,
)
from dialoom.mcp.login import LoopbackLogin, Redirected, Visit
from dialoom.mcp.sdk.oauth import oauth_login
from dialoom.testing import ManualClock
from tests.mcp.hostile import http
from tests.mcp.hostile_http import Refusal, hostile_http
from tests.mcp.oauth_server import ISSUER, RESOURCE, LoginServer

URL = f"{RESOURCE}/mcp"


class Browser:
    """Opens a page of the login server, and follows it back to this machine."""

    def __init__(self, server: LoginServer) -> None:
        self._server = server
        self.visited: list[str] = []

    async def __call__(self, url: str) -> None:
        self.visited.append(url)
        async with self._server.http() as remote, httpx2.AsyncClient(trust_env=False) as local:
            back = (await remote.get(url)).headers["location"]
            assert urlsplit(back).hostname == "127.0.0.1"
            assert (await local.get(back)).text == "You are logged in. You can close this page."


async def call(
    server: LoginServer,
    store: TokenStore,
    visit: Visit | None,
    *,
    clock: Clock = SYSTEM_CLOCK,
    settings: OAuth | None = None,
) -> int:
    """Ask the server for something as a fresh program would; return the status."""
    login = await oauth_login(URL, settings or OAuth(), store=store, visit=visit, clock=clock)
    async with asyncio.timeout(60), server.http(login) as client:
        return (await client.post(URL, json={})).status_code


async def test_a_login_is_asked_for_once_and_kept_for_the_next_program(tmp_path: Path) -> None:
    server, store = LoginServer(), FileTokenStore(tmp_path / "logins")
    browser = Browser(server)
    assert await call(server, store, browser) == 200
    assert server.log == ["call", "discovery", "register", "authorize", "authorization_code", "call access-1"]
    server.log.clear()
    assert await call(server, store, None) == 200
    assert server.log == ["call access-1"]
    assert len(browser.visited) == 1


async def test_a_token_that_ended_is_refreshed_where_it_came_from_and_nobody_is_asked() -> None:
    server, store = LoginServer(), MemoryTokenStore()
    clock = ManualClock(start=0.0)
    await call(server, store, Browser(server), clock=clock)
    kept = await store.load(URL)
    assert kept is not None
    assert kept.expires_at == 3600, "the moment, not how long it was from then on"
    server.log.clear()
    assert await call(server, store, None, clock=clock) == 200
    assert server.log == ["refresh_token", "call access-2"]


async def test_a_token_the_server_took_back_is_refreshed_before_anybody_is_asked() -> None:
    server, store = LoginServer(), MemoryTokenStore()
    server.expires_in = None
    await call(server, store, Browser(server))
    server.valid.clear()
    server.log.clear()
    assert await call(server, store, None) == 200
    assert server.log == ["call access-1", "refresh_token", "call access-2"]


async def test_a_login_is_asked_for_again_when_the_refresh_is_refused() -> None:
    server, store = LoginServer(), MemoryTokenStore()
    await call(server, store, Browser(server))
    server.valid.clear()
    server.refreshable.clear()
    server.log.clear()
    browser = Browser(server)
    assert await call(server, store, browser) == 200
    assert server.log == [
        *(
            "call access-1",
            "refresh_token",
            "call",
            "discovery",
            "authorize",
            "authorization_code",
            "call access-2",
        )
    ]
    assert "client_id=client-1" in browser.visited[0]
    assert urlsplit(server.redirect_uris[0]).port == urlsplit(server.redirect_uris[-1]).port


async def test_without_anybody_to_ask_the_server_is_told_no_in_plain_words() -> None:
    with pytest.raises(
        McpError, match="it wants a login in a browser, and this program opens none"
    ) as failed:
        await call(LoginServer(), MemoryTokenStore(), None)
    assert failed.value.kind == "auth"


async def test_a_client_id_of_one_s_own_needs_no_registration() -> None:
    server, store = LoginServer(), MemoryTokenStore()
    settings = OAuth(client_id="own-id", client_secret="own-secret", scopes=("read", "write"))
    browser = Browser(server)
    assert await call(server, store, browser, settings=settings) == 200
    assert await call(server, store, None, settings=settings) == 200
    assert "register" not in server.log
    assert "client_id=own-id" in browser.visited[0]


async def test_a_person_may_take_longer_to_log_in_than_connecting_may() -> None:
    server = LoginServer()
    browser = Browser(server)

    async def thinks(url: str) -> None:
        asyncio.get_running_loop().call_later(0.6, lambda: tasks.append(asyncio.ensure_future(browser(url))))

    tasks: list[asyncio.Future[None]] = []
    config = http(URL, auth=OAuth(), timeouts=McpTimeouts(connect=0.5), headers={"X-Tenant": "acme"})
    async with asyncio.timeout(60), server.http() as own:
        async with MCPClient(config, MCPOptions(http=own, visit=thinks, era="legacy")) as client:
            assert [tool.name for tool in await client.tools()] == ["echo"]
        await tasks[0]


async def test_why_a_login_failed_is_said_by_its_code_alone() -> None:
    server, store = LoginServer(), MemoryTokenStore()
    server.refuses_codes = True
    await store.save(URL, Login(client={"redirect_uris": "broken"}))
    config = http(URL, auth=OAuth())
    async with asyncio.timeout(60), server.http() as own:
        client = MCPClient(config, MCPOptions(http=own, visit=Browser(server), tokens=store))
        with pytest.raises(McpError) as failed:
            await client.initialize()
        await client.close()
    assert str(failed.value) == (
        "mcp server 'remote': the login failed (access_denied); log in, or check its headers and token"
    )
    assert server.log.count("authorize") == 1


async def test_a_failed_login_is_not_tried_again_by_itself() -> None:
    visits: list[str] = []

    async def closes_the_window(url: str) -> None:
        visits.append(url)
        raise McpError("the person closed the window", server="", kind="auth")

    async with hostile_http() as server:
        server.gets.extend(["404"] * 10)
        server.refusals.extend([Refusal(401, {"www-authenticate": "Bearer"})] * 10)
        config = http(server.url, auth=OAuth(client_id="own-id"))
        client = MCPClient(config, MCPOptions(visit=closes_the_window))
        async with asyncio.timeout(60):
            with pytest.raises(McpError) as failed:
                await client.initialize()
            with pytest.raises(McpError):
                await client.tools()
            await client.close()
    assert (failed.value.kind, failed.value.lasting, client.error is not None) == ("auth", True, True)
    assert len(visits) == 1


async def test_kept_logins_are_their_owner_s_alone(tmp_path: Path) -> None:
    store = FileTokenStore(tmp_path / "logins")
    assert await store.load(URL) is None
    login = Login(access_token="access-secret", refresh_token="refresh-secret", expires_at=7.0)
    await store.save(URL, login)
    await store.save("https://other.example/mcp", Login(access_token="other"))
    assert await store.load(URL) == login
    (path, _) = sorted(
        (tmp_path / "logins").iterdir(), key=lambda each: "access-secret" not in each.read_text()
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert "secret" not in repr(login)
    path.chmod(0o644)
    assert await store.load(URL) is None, "others may have read it"
    path.chmod(0o600)
    path.write_text("{broken", encoding="utf-8")
    assert await store.load(URL) is None


async def test_a_login_that_cannot_be_kept_says_where(tmp_path: Path) -> None:
    (tmp_path / "logins").write_text("a file where a folder should be", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot keep the login: "):
        await FileTokenStore(tmp_path / "logins").save(URL, Login(access_token="x"))


async def test_only_a_redirect_with_an_answer_ends_the_wait() -> None:
    async with LoopbackLogin() as login, httpx2.AsyncClient(trust_env=False) as browser:
        root = login.redirect_uri.removesuffix("/callback")
        waiting = asyncio.create_task(login.wait())
        for knock in ("/favicon.ico", "/callback", "/other?code=1"):
            await browser.get(root + knock)
        assert not waiting.done()
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(root).port)
        writer.write(b"x" * 100_000)
        writer.close()
        assert b"200" not in await reader.read()
        await browser.get(f"{root}/callback?code=c-1&state=s-1&iss={ISSUER}")
        await browser.get(f"{root}/callback?code=c-2")
        answer = await waiting
    assert answer == Redirected(code="c-1", state="s-1", issuer=ISSUER)
    assert "c-1" not in repr(answer)


async def test_a_refusal_or_nobody_coming_back_ends_the_wait_too() -> None:
    async with LoopbackLogin() as login, httpx2.AsyncClient(trust_env=False) as browser:
        waiting = asyncio.create_task(login.wait())
        await browser.get(f"{login.redirect_uri}?error=access_denied")
        with pytest.raises(McpError, match="the login was refused in the browser"):
            await waiting
    async with LoopbackLogin() as login:
        with pytest.raises(McpError, match="nobody logged in in time"):
            await login.wait(0.05)


async def test_a_login_page_that_is_none_is_not_opened() -> None:
    async def opens(url: str) -> None:
        raise AssertionError(url)

    login: Any = await oauth_login(URL, OAuth(), store=MemoryTokenStore(), visit=opens, clock=ManualClock())
    with pytest.raises(McpError, match="its login page has no http address"):
        await login._provider.context.redirect_handler("file:///etc/passwd")
