"""A secret that is given to a server, or comes from it, appears in no log, error, event, repr or status."""

import logging
import traceback
from pathlib import Path

import pytest

from dialoom.mcp import (
    BearerAuth,
    FileTokenStore,
    Login,
    McpError,
    MCPHost,
    MCPOptions,
    MCPServerConfig,
    OAuth,
    Variables,
)
from tests.mcp.hostile import http, stdio
from tests.mcp.hostile_http import Refusal, hostile_http

MARKER = "MARKER-d41d8cd98f00"
ERROR = f'{{"jsonrpc": "2.0", "id": null, "error": {{"code": -1, "message": "bad key {MARKER}"}}}}'.encode()


def shown(*things: object) -> str:
    """All of it as people, logs and tests would see it, errors with their whole tracebacks."""
    errors = [thing for thing in things if isinstance(thing, BaseException)]
    traces = ["".join(traceback.format_exception(error)) for error in errors]
    return "\n".join([*(f"{thing} {thing!r}" for thing in things), *traces])


def everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Have every logger there is tell everything, those of the SDK, the HTTP client and asyncio too."""
    caplog.set_level(logging.DEBUG)
    for name in logging.root.manager.loggerDict:
        caplog.set_level(logging.DEBUG, name)


async def test_what_is_in_headers_tokens_and_addresses_stays_there(caplog: pytest.LogCaptureFixture) -> None:
    everything_is_logged(caplog)
    events: list[object] = []
    options = MCPOptions(
        variables=Variables(environment={"KEY": MARKER}),
        on_state=lambda *event: events.append(event),
    )
    async with hostile_http() as server:
        address = server.url.replace("http://", f"http://user:{MARKER}@") + f"?api_key={MARKER}"
        config = http(address, headers={"X-Key": "${KEY}"}, auth=BearerAuth(token=MARKER))
        errors: list[McpError] = []
        async with MCPHost([config], options) as host:
            client = host["remote"]
            await client.initialize()
            assert server.requests[0].headers["x-key"] == MARKER
            refusals = (Refusal(500, {}, ERROR), Refusal(401), Refusal(0, {}, None), Refusal(200, {}, b"<p>"))
            for refusal in refusals:
                server.refusals.append(refusal)
                with pytest.raises(McpError) as failed:
                    await client.call_tool("echo", {"password": MARKER})
                errors.append(failed.value)
            status = host.status()
        assert any(MARKER.encode() in request.body for request in server.requests)
    assert len(caplog.records) > 5
    assert MARKER not in shown(
        config, client, options, status, events, *errors, *(each.facts for each in errors)
    )
    assert MARKER not in "".join("".join(traceback.format_exception(each)) for each in errors)
    assert MARKER not in caplog.text
    assert "session-1-secret" not in caplog.text


async def test_what_is_in_a_child_s_environment_stays_there(caplog: pytest.LogCaptureFixture) -> None:
    everything_is_logged(caplog)
    config = stdio("dies-at-start").set_environment(
        {"HOSTILE_LOG": "/dev/null", "TOKEN": "sk-secret-0123456789abcdef"}
    )
    async with MCPHost([config]) as host:
        with pytest.raises(McpError) as failed:
            await host["hostile"].initialize()
        status = host.status()
    everything = shown(failed.value, failed.value.facts, config, status, *failed.value.facts.stderr_tail)
    assert "sk-secret" not in everything + caplog.text
    assert "token=***" in everything


async def test_what_a_login_gave_stays_in_its_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    everything_is_logged(caplog)
    store = FileTokenStore(tmp_path)
    login = Login(
        access_token=f"access-{MARKER}",
        refresh_token=f"refresh-{MARKER}",
        client={
            "client_id": "own-id",
            "client_secret": MARKER,
            "redirect_uris": ["http://127.0.0.1:1/callback"],
        },
    )
    async with hostile_http() as server:
        await store.save(server.url, login)
        server.gets.extend(["404"] * 10)
        server.refusals.extend([Refusal(401)] * 10)
        config = http(server.url, auth=OAuth(client_id="own-id", client_secret=MARKER))
        async with MCPHost([config], MCPOptions(tokens=store)) as host:
            with pytest.raises(McpError) as failed:
                await host["remote"].initialize()
        sent = b"".join(request.body for request in server.requests)
        assert server.requests[0].headers["authorization"] == f"Bearer access-{MARKER}"
    assert f"refresh-{MARKER}".encode() in sent
    assert failed.value.kind == "auth"
    assert MARKER not in shown(failed.value, config, login, store) + caplog.text


def test_the_names_of_secrets_are_shown_and_their_values_are_not() -> None:
    config = MCPServerConfig("x", command="y", environment={"TOKEN": MARKER}, headers={"X-Key": MARKER})
    assert "TOKEN" in repr(config)
    assert MARKER not in repr(config) + config.to_json(redact=True)
