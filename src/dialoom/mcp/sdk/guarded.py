"""HTTP to those addresses only that a policy lets be reached: for programs whose configs come from others."""

import httpx2

from dialoom.net.guard import UrlPolicy, check_url
from dialoom.net.resolve import Resolver, SystemResolver, resolve_target


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Looks each name up once, checks every answer, and connects to one that was checked, past any proxy.

    That holds for every request: those of a login, and those a redirect leads to. Raises `UrlRefusedError`.
    """

    def __init__(self, policy: UrlPolicy, *, resolver: Resolver | None = None) -> None:
        self._policy = policy
        self._resolver = resolver or SystemResolver()
        self._inner = httpx2.AsyncHTTPTransport(
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        target = check_url(str(request.url), self._policy)
        first, *_ = await resolve_target(target, self._policy, self._resolver)
        pinned = httpx2.Request(
            request.method,
            request.url.copy_with(host=first.address),
            headers=request.headers,  # with the name as `Host`
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": target.host},
        )
        return await self._inner.handle_async_request(pinned)

    async def aclose(self) -> None:
        await self._inner.aclose()
