"""Logging in to a server: the SDK's flow, with logins kept, and refreshed before a person is asked."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any, Final, cast
from urllib.parse import urlsplit

import httpx2
import msgspec
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError

from dialoom.base.clock import Clock
from dialoom.mcp.config_fields import OAuth
from dialoom.mcp.errors import McpError
from dialoom.mcp.login import LoopbackLogin, Visit
from dialoom.mcp.patience import person_asked
from dialoom.mcp.tokens import Login, TokenStore

_LONG_AGO: Final = 1.0


class KeptLogin:
    """The SDK's place for tokens, over a `TokenStore`.

    The SDK forgets when a token ends and where it is refreshed; both are given back to its context here.
    """

    def __init__(self, store: TokenStore, resource: str, *, clock: Clock) -> None:
        self._store = store
        self._resource = resource
        self._clock = clock
        self.provider: OAuthClientProvider | None = None

    async def login(self) -> Login:
        return await self._store.load(self._resource) or Login()

    async def get_tokens(self) -> OAuthToken | None:
        login = await self.login()
        if not login.access_token:
            return None
        assert self.provider is not None
        context = self.provider.context
        context.token_expiry_time = login.expires_at
        if login.issuer and context.oauth_metadata is None:
            context.oauth_metadata = OAuthMetadata.model_validate(login.issuer)
        return OAuthToken(
            access_token=login.access_token,
            refresh_token=login.refresh_token or None,
            scope=login.scope or None,
        )

    async def set_tokens(self, tokens: OAuthToken) -> None:
        assert self.provider is not None
        metadata = self.provider.context.oauth_metadata
        ends = None if tokens.expires_in is None else self._clock.now() + tokens.expires_in
        kept = msgspec.structs.replace(
            await self.login(),
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token or "",
            scope=tokens.scope or "",
            expires_at=ends,
            issuer=_json(metadata) if metadata else {},
        )
        await self._store.save(self._resource, kept)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        login = await self.login()
        try:
            return OAuthClientInformationFull.model_validate(login.client) if login.client else None
        except ValidationError:
            return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        kept = msgspec.structs.replace(await self.login(), client=_json(client_info))
        await self._store.save(self._resource, kept)


class BrowserLogin:
    """Sends a person to a page and waits for the answer; nobody to send raises `McpError`."""

    def __init__(self, visit: Visit | None, port: int) -> None:
        self._visit = visit
        self._waiting = LoopbackLogin(port)
        self._stack = AsyncExitStack()

    @property
    def redirect_uri(self) -> str:
        return self._waiting.redirect_uri

    async def open(self, url: str) -> None:
        if self._visit is None:
            raise McpError(
                "it wants a login in a browser, and this program opens none; log in where a person can",
                server="",
                kind="auth",
            )
        if urlsplit(url).scheme not in {"http", "https"}:
            raise McpError("its login page has no http address; report it", server="", kind="auth")
        await self._stack.enter_async_context(self._waiting)
        try:
            await self._visit(url)
        except BaseException:
            await self._stack.aclose()
            raise

    async def collect(self) -> AuthorizationCodeResult:
        async with self._stack:
            with person_asked():
                came = await self._waiting.wait()
        return AuthorizationCodeResult(code=came.code, state=came.state, iss=came.issuer)


class RefreshFirst(httpx2.Auth):
    """The SDK's flow, that tries the refresh token once before it sends a person to a login page."""

    requires_response_body = True

    def __init__(self, provider: OAuthClientProvider) -> None:
        self._provider = provider

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        flow = self._provider.async_auth_flow(request)
        context = self._provider.context
        refreshed = False
        try:
            outgoing = await anext(flow)
            while True:
                response = yield outgoing
                refreshed = refreshed or outgoing is not request
                if response.status_code == 401 and not refreshed and context.can_refresh_token():
                    refreshed = True
                    await flow.aclose()
                    context.token_expiry_time = _LONG_AGO  # the server says so, whatever the token says
                    request.headers.pop("Authorization", None)
                    flow = self._provider.async_auth_flow(request)
                    outgoing = await anext(flow)
                else:
                    outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()


async def oauth_login(
    url: str, settings: OAuth, *, store: TokenStore, visit: Visit | None, clock: Clock
) -> httpx2.Auth:
    """Return the login that `settings` describe, for the server at `url`."""
    kept = KeptLogin(store, url, clock=clock)
    known = await kept.get_client_info()
    browser = BrowserLogin(visit, settings.callback_port or _port_of(known) or await _free_port())
    if settings.client_id:
        await kept.set_client_info(_own_client(settings, browser.redirect_uri, known))
    kept.provider = OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="dialoom",
            redirect_uris=[AnyUrl(browser.redirect_uri)],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
            scope=" ".join(settings.scopes) or None,
        ),
        storage=kept,
        redirect_handler=browser.open,
        callback_handler=browser.collect,
        client_metadata_url=settings.client_metadata_url or None,
    )
    return RefreshFirst(kept.provider)


def _own_client(
    settings: OAuth, redirect_uri: str, known: OAuthClientInformationFull | None
) -> OAuthClientInformationFull:
    if known is not None and known.client_id == settings.client_id:
        return known
    return OAuthClientInformationFull(
        client_id=settings.client_id,
        client_secret=settings.client_secret or None,
        redirect_uris=[AnyUrl(redirect_uri)],
        token_endpoint_auth_method="client_secret_basic" if settings.client_secret else "none",
    )


def _port_of(known: OAuthClientInformationFull | None) -> int | None:
    """Return the port a client was registered with: servers compare the whole address."""
    addresses = known.redirect_uris if known and known.redirect_uris else []
    return next((address.port for address in addresses if address.host == "127.0.0.1"), None)


async def _free_port() -> int:
    async with LoopbackLogin() as login:
        return urlsplit(login.redirect_uri).port or 0


def _json(model: Any) -> dict[str, object]:
    return cast("dict[str, object]", model.model_dump(mode="json", exclude_none=True))
