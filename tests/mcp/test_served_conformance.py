"""The official conformance scenarios for servers, against ours.

The suite asks for a server that offers all there is. Ours leaves out what the newest revision calls
deprecated (log messages, a client's model, its folders) and asks people with tools only; what that
fails is named here, and nothing else fails.
"""

import asyncio
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE

import pytest

from tests.peers.mcp_peers import HARNESS, NODE_22, ROOT

NOT_OFFERED = {
    "2025-11-25": {"logging-set-level", "tools-call-with-logging", "tools-call-sampling"},
    "2026-07-28": {
        "input-required-result-basic-sampling",
        "input-required-result-basic-list-roots",
        "input-required-result-multiple-input-requests",  # a sampling request among them
        "input-required-result-non-tool-request",  # a prompt that asks
        "input-required-result-capability-check",  # of sampling
        "server-stateless",  # its tools ask for sampling and for log messages
    },
}
PASSED = {"2025-11-25": 27, "2026-07-28": 31}
LINE = re.compile(r"^([✓✗]) ([\w-]+): \d+ passed, \d+ failed$", re.MULTILINE)
UNSCORED = re.compile(r"^  [✓✗] ([\w-]+) \(", re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("revision", NOT_OFFERED)
async def test_scenarios_of_what_is_offered_are_passed(revision: str):
    if not HARNESS.exists():
        pytest.skip("NOTICE: no conformance harness: run `npm ci` in tests/peers")
    command = (sys.executable, "-m", "tests.mcp.conformance_server")
    server = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=DEVNULL, stderr=PIPE)
    try:
        assert server.stderr is not None
        async with asyncio.timeout(110):
            said = await _judged((await server.stderr.readline()).decode().strip(), revision)
    finally:
        server.kill()
        await server.communicate()
    results = {name: mark == "✓" for mark, name in LINE.findall(said)}
    scored = results.keys() - set(UNSCORED.findall(said))
    failed = {name for name in scored if not results[name]}
    assert failed == NOT_OFFERED[revision], said[-4000:]
    assert len(scored) - len(failed) == PASSED[revision]


async def _judged(url: str, revision: str) -> str:
    command = (str(NODE_22), str(HARNESS / "dist" / "index.js"), "server", "--url", url)
    judge = await asyncio.create_subprocess_exec(
        *command, "--requirements", revision, cwd=ROOT, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL
    )
    said, _ = await judge.communicate()
    return re.sub(r"\x1b\[[0-9;]*m", "", said.decode())
