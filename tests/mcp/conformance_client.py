"""The program that the official conformance harness starts for each scenario: our client.

Called as `python -m tests.mcp.conformance_client URL` with the scenario, its context as JSON and the
revision in environment variables. The harness judges what it saw on the wire; an exit status of 0 means that
the client ran to its end.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlparse

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata

from dialoom.llm import MockProvider
from dialoom.mcp import MCPAnswers, MCPClient, McpError, MCPOptions, MCPServerConfig, Sampling, Transport

REDIRECT = "http://localhost:3000/callback"
BLANKS: Mapping[str, object] = {
    "string": "x",
    "integer": 0,
    "number": 0,
    "boolean": False,
    "object": {},
    "array": [],
}
ROUND_TRIPS = (
    "test_mrtr_echo_state",
    "test_mrtr_unrelated",
    "test_mrtr_no_state",
    "test_mrtr_no_result_type",
)


class TokensInMemory:
    """What the SDK wants of a place for tokens; one scenario is one process."""

    def __init__(self, client: OAuthClientInformationFull | None = None) -> None:
        self._client = client
        self._tokens: Any = None

    async def get_tokens(self) -> Any:
        return self._tokens

    async def set_tokens(self, tokens: Any) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class Scenario:
    """One scenario: what the harness wants done."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.name = environ.get("MCP_CONFORMANCE_SCENARIO", "initialize")
        self.context: dict[str, Any] = json.loads(environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
        revision = environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
        # the mock server of the second only knows the handshake
        self.legacy = bool(revision and revision < "2026") or self.name == "json-schema-ref-no-deref"

    async def options(self, url: str) -> MCPOptions:
        asked = self.name.startswith(("elicitation", "sep-2322", "auth/", "request-metadata"))
        everything = self.name == "request-metadata"
        return MCPOptions(
            era="legacy" if self.legacy else "auto",
            auth=await self._login(url) if self.name.startswith("auth/") else None,
            answers=MCPAnswers(
                interactive=asked,
                elicit=accept_what_is_asked,
                sampling=Sampling(provider=MockProvider(), consent=consents) if everything else None,
                roots=() if everything else None,
            ),
        )

    def calls(self, tools: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        match self.name:
            case "http-custom-headers":
                asked = self.context.get("toolCalls", [])
                return [
                    (each["name"], each.get("arguments") or {}) for each in asked if each["name"] in tools
                ]
            case "json-schema-2020-12-preservation":
                return [("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})]
            case name if name.startswith("sep-2322"):
                return [(name, {}) for name in ROUND_TRIPS]
            case name if name.startswith("auth/"):
                return [(name, {}) for name in [*tools][:1]]
            case _:
                return [(name, arguments_for(name, tool.input_schema)) for name, tool in tools.items()]

    async def _login(self, url: str) -> httpx2.Auth:
        client_id, secret = self.context.get("client_id"), self.context.get("client_secret")
        match self.name:
            case "auth/client-credentials-jwt":
                signed = SignedJWTParameters(
                    issuer=client_id,
                    subject=client_id,
                    signing_key=self.context["private_key_pem"],
                    signing_algorithm=self.context.get("signing_algorithm", "ES256"),
                )
                return PrivateKeyJWTOAuthProvider(
                    server_url=url,
                    storage=TokensInMemory(),
                    client_id=client_id,
                    assertion_provider=signed.create_assertion_provider(),
                )
            case "auth/client-credentials-basic":
                return ClientCredentialsOAuthProvider(
                    server_url=url,
                    storage=TokensInMemory(),
                    client_id=client_id,
                    client_secret=secret,
                    token_endpoint_auth_method="client_secret_basic",
                )
            case "auth/enterprise-managed-authorization" | "auth/cross-app-access-complete-flow":
                return await self._enterprise_login(url)
            case _:
                return self._browser_login(url)

    async def _enterprise_login(self, url: str) -> httpx2.Auth:
        place = urlparse(url)
        about = f"{place.scheme}://{place.netloc}/.well-known/oauth-protected-resource{place.path}"
        async with httpx2.AsyncClient() as http:
            issuer = (await http.get(about)).json()["authorization_servers"][0]

        async def assertion(audience: str, resource: str) -> str:
            fields = {
                "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
                "subject_token": self.context["idp_id_token"],
                "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
                "audience": audience,
                "resource": resource,
                "client_id": self.context["idp_client_id"],
            }
            async with httpx2.AsyncClient() as http:
                answer = await http.post(self.context["idp_token_endpoint"], data=fields)
            return str(answer.json()["access_token"])

        return IdentityAssertionOAuthProvider(
            server_url=url,
            storage=TokensInMemory(),
            client_id=self.context.get("client_id"),
            client_secret=self.context.get("client_secret"),
            issuer=issuer,
            assertion_provider=assertion,
            token_endpoint_auth_method="client_secret_basic",
        )

    def _browser_login(self, url: str) -> httpx2.Auth:
        """Log in as a browser would that says yes to everything: the answer is in the redirect."""
        got: dict[str, str] = {}

        async def visit(address: str) -> None:
            async with httpx2.AsyncClient() as http:
                answer = await http.get(address, follow_redirects=False)
            query = parse_qs(urlparse(answer.headers["location"]).query)
            got.update({key: values[0] for key, values in query.items()})

        async def collect() -> AuthorizationCodeResult:
            return AuthorizationCodeResult(code=got["code"], state=got.get("state"), iss=got.get("iss"))

        known = None
        if self.context.get("client_id"):
            secret = self.context.get("client_secret")
            known = OAuthClientInformationFull(
                client_id=self.context["client_id"],
                client_secret=secret,
                redirect_uris=[REDIRECT],
                token_endpoint_auth_method="client_secret_basic" if secret else "none",
            )
        return OAuthClientProvider(
            server_url=url,
            storage=TokensInMemory(known),
            redirect_handler=visit,
            callback_handler=collect,
            client_metadata=OAuthClientMetadata(
                client_name="dialoom",
                redirect_uris=[REDIRECT],
                grant_types=["authorization_code", "refresh_token"],
                response_types=["code"],
            ),
            client_metadata_url="https://conformance-test.local/client-metadata.json",
        )


async def accept_what_is_asked(params: Mapping[str, Any]) -> Mapping[str, object]:
    """Accept, say yes to every question, and leave the rest to the defaults."""
    properties = params.get("requestedSchema", {}).get("properties", {})
    yes = {
        name: True
        for name, field in properties.items()
        if field.get("type") == "boolean" and "default" not in field
    }
    return {"action": "accept", "content": yes}


async def consents(_request: object) -> bool:
    return True


def arguments_for(name: str, schema: Mapping[str, Any]) -> dict[str, object]:
    if name == "add_numbers":
        return {"a": 5, "b": 3}
    properties = schema.get("properties", {})
    return {
        each: BLANKS.get(properties.get(each, {}).get("type"), "x") for each in schema.get("required", [])
    }


async def main(url: str) -> None:
    scenario = Scenario(os.environ)
    config = MCPServerConfig("server", transport=Transport.STREAMABLE_HTTP, url=url)
    async with MCPClient(config, await scenario.options(url)) as client:
        tools = {tool.name: tool for tool in await client.tools()}
        for name, arguments in scenario.calls(tools):
            try:
                print(name, "->", str(await client.call_tool(name, arguments))[:200], file=sys.stderr)
            except McpError as error:
                print(name, "!!", error, file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
