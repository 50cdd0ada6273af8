"""From a config to a connection: the ways the SDK's client is led to a server."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, cast

import httpx2
import msgspec
from mcp.client.streamable_http import streamable_http_client

import mcp
from dialoom.mcp.backoff import Backoff
from dialoom.mcp.config import MCPServerConfig
from dialoom.mcp.config_fields import BearerAuth, OAuth, Transport
from dialoom.mcp.errors import NO_FACTS, McpError, McpFacts
from dialoom.mcp.options import MCPOptions
from dialoom.mcp.redact import Redaction
from dialoom.mcp.sdk.guarded import GuardedTransport
from dialoom.mcp.sdk.notices import NoticeStream
from dialoom.mcp.sdk.oauth import oauth_login
from dialoom.mcp.sdk.outlet import Outlet
from dialoom.mcp.sdk.soft import HTTP, SoftClient, failure_of, refusal_of
from dialoom.mcp.sdk.sse import SseTransport
from dialoom.mcp.sdk.streams import LineStreams, Link, Reader, SdkStreams, Writer
from dialoom.mcp.stdio import StdioTransport, child_environment
from dialoom.mcp.transport import MAX_MESSAGE_BYTES
from dialoom.net.address import is_loopback, split_url

_NOTIFYING: Final = frozenset({"tools", "resources", "prompts", "logging"})

Callbacks = Mapping[str, Any]
"""What every `mcp.Client` of a connection is made with besides its transport and mode: the callbacks."""


class StdioRoute:
    """Starts the program of a config, anew for each connection."""

    def __init__(
        self, config: MCPServerConfig, callbacks: Callbacks, *, environment: Mapping[str, str]
    ) -> None:
        """`environment` is this process's; the child gets of it what the config lets it inherit."""
        self.redaction = Redaction.of_fields(config.to_dict())
        self._config = config
        self._callbacks = callbacks
        self._environment = child_environment(environment, config.environment, inherit=config.inherit_env)
        self._transport: StdioTransport | None = None

    def open(self, link: Link, *, mode: str) -> mcp.Client:
        self._transport = StdioTransport(
            self._config.command,
            self._config.arguments,
            environment=self._environment,
            cwd=self._config.cwd or None,
            grace=self._config.timeouts.grace,
        )
        return mcp.Client(LineStreams(self._transport, link), mode=mode, **self._callbacks)

    def child(self) -> McpFacts:
        if self._transport is None:
            return NO_FACTS
        return McpFacts(exit_code=self._transport.exit_code, stderr_tail=self._transport.stderr_tail)

    def fallback(self, error: McpError) -> None:  # noqa: ARG002 - of the protocol
        return None


class GivenRoute:
    """Leads to what the program gives for each link: streams of its own, or a server object of the SDK."""

    redaction = Redaction()

    def __init__(self, give: Callable[[Link], object], callbacks: Callbacks) -> None:
        self._give = give
        self._callbacks = callbacks

    def open(self, link: Link, *, mode: str) -> mcp.Client:
        return mcp.Client(cast("Any", self._give(link)), mode=mode, **self._callbacks)

    def child(self) -> McpFacts:
        return NO_FACTS

    def fallback(self, error: McpError) -> None:  # noqa: ARG002 - of the protocol
        return None


class HttpRoute:
    """Speaks HTTP to the address of a config: Streamable HTTP, or the older event stream."""

    def __init__(
        self,
        config: MCPServerConfig,
        callbacks: Callbacks,
        options: MCPOptions,
        *,
        on_gap: Callable[[], None],
    ) -> None:
        """`on_gap` is called when notices of the server may have been missed."""
        self.redaction = Redaction.of_fields(config.to_dict())
        self._config = config
        self._callbacks = callbacks
        self._options = options
        self._on_gap = on_gap

    def open(self, link: Link, *, mode: str) -> mcp.Client:
        if self._config.transport is Transport.SSE:
            return mcp.Client(self._sse(link), mode="legacy", **self._callbacks)
        return mcp.Client(self._streamable(link), mode=mode, **self._callbacks)

    def child(self) -> McpFacts:
        return NO_FACTS

    def fallback(self, error: McpError) -> "HttpRoute | None":
        """The older event stream, where a file did not say which it is and the newer way was refused."""
        status = error.facts.status
        if not self._config.sse_fallback or self._config.transport is Transport.SSE:
            return None
        if status is None or not 400 <= status < 500 or status in {401, 403, 429}:
            return None
        config = self._config.copy().set_transport(Transport.SSE)
        return HttpRoute(config, self._callbacks, self._options, on_gap=self._on_gap)

    @asynccontextmanager
    async def _streamable(self, link: Link) -> AsyncGenerator[tuple[Reader, Writer]]:
        async with self._client() as inner:
            soft = SoftClient(await self._outlet(inner), link, notices=partial(self._notices, link))
            transport = streamable_http_client(
                self._config.url, http_client=soft, max_sse_event_size=MAX_MESSAGE_BYTES
            )
            async with SdkStreams(transport, link) as streams:
                yield streams

    @asynccontextmanager
    async def _sse(self, link: Link) -> AsyncGenerator[tuple[Reader, Writer]]:
        async with self._client() as client:
            transport = SseTransport(self._config.url, await self._outlet(client), explain=_explain)
            async with LineStreams(transport, link) as streams:
                yield streams

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[httpx2.AsyncClient]:
        if self._options.http is not None:
            yield self._options.http
            return
        connect = self._config.timeouts.connect
        policy = self._options.url_policy
        async with httpx2.AsyncClient(
            transport=None if policy is None else GuardedTransport(policy),
            # how long an answer may take is for each request to say, so nothing here bounds reading
            timeout=httpx2.Timeout(None, connect=connect, pool=connect),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
            trust_env=not is_loopback(split_url(self._config.url).hostname or ""),
        ) as client:
            yield client

    async def _outlet(self, client: httpx2.AsyncClient) -> Outlet:
        return Outlet(client, headers=_headers(self._config), auth=await self._login())

    async def _login(self) -> httpx2.Auth | None:
        settings = self._config.auth
        if self._options.auth is not None or not isinstance(settings, OAuth):
            return self._options.auth
        options = self._options
        return await oauth_login(
            self._config.url, settings, store=options.tokens, visit=options.visit, clock=options.clock
        )

    def _notices(self, link: Link, soft: SoftClient, request: httpx2.Request) -> NoticeStream | None:
        """Return the stream of notices, None when the config or the server wants none."""
        able = link.repair.capabilities
        if not self._config.subscribe or (able and not _NOTIFYING & able.keys()):
            return None
        timeouts = self._config.timeouts
        return NoticeStream(
            partial(soft.open_notices, request),
            Backoff(timeouts.reconnect, timeouts.max_reconnect, rng=self._options.rng),
            on_gap=self._on_gap,
            on_lost=link.lost.set,
            clock=self._options.clock,
        )


def _headers(config: MCPServerConfig) -> dict[str, str]:
    headers = config.headers
    if isinstance(config.auth, BearerAuth) and "authorization" not in {name.lower() for name in headers}:
        headers["Authorization"] = f"Bearer {config.auth.token}"
    return headers


def _explain(failure: Exception | httpx2.Response) -> tuple[str, object]:
    found = refusal_of(failure) if isinstance(failure, httpx2.Response) else failure_of(failure)
    return found.words, {HTTP: msgspec.to_builtins(found)}
