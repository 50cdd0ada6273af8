"""A server that wants a login, and its authorization server on another host, as one ASGI program."""

from typing import Any
from urllib.parse import parse_qs

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.mcp.hostile_http import Message, initialized, result_of

RESOURCE = "https://tools.example"
ISSUER = "https://login.example"


class LoginServer:
    """Gives tokens `access-1`, `access-2`, ... that a test can take back; `log` is what it was asked."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.valid: set[str] = set()
        self.refreshable: set[str] = set()
        self.expires_in: int | None = 3600
        self.redirect_uris: list[str] = []
        self.refuses_codes = False
        self._count = 0
        self.app = Starlette(
            routes=[
                Route("/.well-known/oauth-protected-resource/mcp", self._about_resource),
                Route("/.well-known/oauth-authorization-server", self._about_issuer),
                Route("/register", self._register, methods=["POST"]),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/mcp", self._serve, methods=["POST"]),
            ]
        )

    def http(self, auth: httpx2.Auth | None = None) -> httpx2.AsyncClient:
        """A client that reaches this program under every name."""
        return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=self.app), auth=auth)

    async def _about_resource(self, _: Request) -> Response:
        return JSONResponse({"resource": f"{RESOURCE}/mcp", "authorization_servers": [ISSUER]})

    async def _about_issuer(self, _: Request) -> Response:
        self.log.append("discovery")
        return JSONResponse(
            {
                "issuer": ISSUER,
                "authorization_endpoint": f"{ISSUER}/authorize",
                "token_endpoint": f"{ISSUER}/token",
                "registration_endpoint": f"{ISSUER}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    async def _register(self, request: Request) -> Response:
        self.log.append("register")
        wanted = await request.json()
        self.redirect_uris = wanted["redirect_uris"]
        return JSONResponse({**wanted, "client_id": "client-1", "client_secret": "client-secret-1"}, 201)

    async def _authorize(self, request: Request) -> Response:
        self.log.append("authorize")
        query = request.query_params
        return RedirectResponse(f"{query['redirect_uri']}?code=code-1&state={query['state']}")

    async def _token(self, request: Request) -> Response:
        assert request.url.hostname == "login.example"
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        self.log.append(form["grant_type"])
        if form["grant_type"] == "refresh_token" and form["refresh_token"] not in self.refreshable:
            return JSONResponse({"error": "invalid_grant", "hint": form["refresh_token"]}, 400)
        if self.refuses_codes:
            return JSONResponse({"error": "access_denied", "hint": "secret"}, 400)
        self._count += 1
        access, refresh = f"access-{self._count}", f"refresh-{self._count}"
        self.valid.add(access)
        self.refreshable.add(refresh)
        granted: dict[str, Any] = {"access_token": access, "token_type": "Bearer", "refresh_token": refresh}
        if self.expires_in is not None:
            granted["expires_in"] = self.expires_in
        return JSONResponse(granted)

    def _answer(self, message: Message) -> Response:
        match message.get("method"):
            case "initialize":
                result = initialized(message, {"tools": {}})
            case "tools/list" | "tools/call":
                result = result_of(message)
            case _:
                return Response(status_code=202 if message else 200)
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def _serve(self, request: Request) -> Response:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        self.log.append(f"call {token}".strip())
        if token in self.valid:
            return self._answer(await request.json())
        about = f'Bearer resource_metadata="{RESOURCE}/.well-known/oauth-protected-resource/mcp"'
        return Response(status_code=401, headers={"www-authenticate": about})
