"""`dialoom mcp list`, `trust`, `test` and `call`: the tool servers of the usual files, from a terminal."""

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line, printable
from dialoom.cli.exits import ExitCode, complain
from dialoom.cli.mcp_servers import (
    cleared,
    client_options,
    found_server,
    found_servers,
    trust_store,
    user_file,
)
from dialoom.cli.progress import counted, print_json
from dialoom.mcp import MCPClient, McpError, MCPServerConfig, Transport
from dialoom.mcp.asking import fields_of
from dialoom.mcp.json_shapes import list_of, object_of, read_object
from dialoom.mcp.results import observation_of
from dialoom.mcp.trust import FoundServer, UntrustedServerError, what_runs
from dialoom.net.address import safe_url

MAX_ARGUMENTS = 1 << 20
MOST_NAMES = 100
"""Names of tools that a test prints."""


def list_servers(config: Path | None) -> ExitCode:
    """Print every server with its state and where it is listed. Starts nothing."""
    servers, notes = found_servers(config)
    for note in notes:
        complain(note)
    if not servers:
        complain(f"no mcp server is listed; put a file .mcp.json here, or {user_file()}")
        return ExitCode.OK
    trust = trust_store()
    rows = [
        (
            one_line(found.config.name, 40),
            _state(found.config, approved=trust.is_approved(found)),
            _target(found.config),
            str(found.origin or user_file()),
        )
        for found in servers
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        print("  ".join([*cells, row[3]]))
    return ExitCode.OK


def trust_server(name: str, config: Path | None, *, yes: bool, revoke: bool) -> ExitCode:
    """Show what a project's server would run, and approve that, or take the approval back."""
    found = found_server(name, config)
    store = trust_store()
    shown = one_line(name, 80)
    if found.origin is None:
        print(f"{shown} is one of your own servers and needs no approval")
        return ExitCode.OK
    if revoke:
        print(f"{shown} is {'no longer' if store.revoke(found) else 'not'} approved")
        return ExitCode.OK
    print(f"{shown} of {found.origin} would {what_runs(found)}")
    if not yes and not _confirmed():
        complain("not approved")
        return ExitCode.FAILED
    store.approve(found)
    print(f"{shown} is approved as it is now")
    return ExitCode.OK


async def test_servers(names: tuple[str, ...], config: Path | None) -> ExitCode:
    """Connect to the servers, all at the same time, and print one line about each."""
    servers = [found_server(name, config) for name in names] if names else found_servers(config)[0]
    tested = [found for found in servers if names or found.config.enabled]
    if not tested:
        raise UsageError("there is no mcp server to test; see dialoom mcp list")
    passed = await asyncio.gather(*map(_tested, tested))  # raises what a closed stdout does, as it is
    return ExitCode.OK if all(passed) else ExitCode.FAILED


async def call_tool(
    server: str, tool: str, arguments: str, *, config: Path | None, as_json: bool
) -> ExitCode:
    """Call one tool and print what it answers."""
    given = _arguments(arguments)
    found = cleared(found_server(server, config))
    async with MCPClient(found, client_options(interactive=False)) as client:
        try:
            result = fields_of(await client.call_tool(tool, given))
        except McpError as error:
            if error.kind == "rpc":
                await _tell_unknown(client, tool)
            raise
        if result.get("isError") is True:
            await _tell_unknown(client, tool)
    observed = observation_of(_for_reading(result), tool=tool)
    if as_json:
        print_json(result)
    else:
        print(printable(observed.content))
    return ExitCode.FAILED if observed.is_error else ExitCode.OK


def listed(names: Sequence[str]) -> str:
    """Return names in one line, the first hundred of many."""
    shown = ", ".join(one_line(name, 80) for name in names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


async def _tell_unknown(client: MCPClient, tool: str) -> None:
    """Name the tools of a server that failed because it has no such tool."""
    with suppress(McpError):  # what failed before is told in any case
        names = [each.name for each in await client.tools()]
        if tool not in names:
            shown = f"{one_line(client.name, 80)} lists no tool {one_line(tool, 80)!r}"
            complain(f"{shown}; it has: {listed(names) or 'none'}")


def _for_reading(result: Mapping[str, object]) -> Mapping[str, object]:
    """Return the result without the structure that says the same to programs, where it has words as well."""
    words = [block for block in list_of(result.get("content")) if object_of(block).get("type") == "text"]
    return {key: value for key, value in result.items() if key != "structuredContent" or not words}


async def _tested(found: FoundServer) -> bool:
    name = one_line(found.config.name, 40)
    started = time.perf_counter()
    try:
        async with MCPClient(cleared(found), client_options(interactive=False)) as client:
            facts = await client.initialize()
            lists = (await client.list_tools(), await client.list_resources(), await client.list_prompts())
            skipped = client.skipped
    except (McpError, UsageError) as error:
        told = one_line(str(error).removeprefix(f"mcp server {found.config.name!r}: "), 500)
        print(f"{name}: {told}", flush=True)
        _show_tail(error)
        return False
    tools, _, prompts = lists
    counts = zip(map(len, lists), ("tool", "resource", "prompt"), strict=True)
    told = ", ".join(counted(count, word) for count, word in counts)
    who = f"{one_line(facts.name, 60)} {one_line(facts.version, 20)}".strip()
    seconds = time.perf_counter() - started
    print(f"{name}: ok, {who}, protocol {facts.protocol}, {told}, {seconds:.1f} s", flush=True)
    for kind, items in (("tools", tools), ("prompts", prompts)):
        if items:
            print(f"{name}: {kind}: {listed([each.name for each in items])}", flush=True)
    for item in skipped:
        what = f"{item.kind.removesuffix('s')} {one_line(item.name, 80) or 'without a name'}"
        print(f"{name}: left out {what}: {one_line(item.reason)}", flush=True)
    return True


def _show_tail(error: McpError | UsageError) -> None:
    """Print the last words of a child, which say best what it lacked."""
    if isinstance(error, McpError):
        for line in error.facts.stderr_tail[-10:]:
            print(f"    {one_line(line, 300)}", flush=True)


def _state(config: MCPServerConfig, *, approved: bool) -> str:
    problems = config.problems()
    if problems:
        return f"invalid: {one_line(problems[0], 80)}"
    if not config.enabled:
        return "disabled"
    return "ready" if approved else "not approved"


def _target(config: MCPServerConfig) -> str:
    if config.transport is Transport.STDIO:
        return one_line(config.command, 60)
    return safe_url(config.url)


def _confirmed() -> bool:
    if not sys.stdin.isatty():
        raise UntrustedServerError("nobody can be asked here; add --yes once you have read what it would run")
    return input("approve it? [y/N] ").strip().lower() in {"y", "yes"}


def _arguments(text: str) -> dict[str, object]:
    if len(text) > MAX_ARGUMENTS:
        raise UsageError(f"the arguments are longer than {MAX_ARGUMENTS} characters; shorten them")
    return read_object(text, "the arguments are", advice="""write them like '{"path": "notes.md"}'""")
