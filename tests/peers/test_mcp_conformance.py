"""The official conformance scenarios for clients, through our client, one after the other.

The harness has a mode that starts all clients at once; on a small machine that turns into time-outs.
"""

import re
import subprocess
import sys

import pytest

from tests.peers.mcp_peers import HARNESS, NODE_22, ROOT

REVISIONS = {"2025-11-25": 18, "2026-07-28": 32}
SECONDS = 90


def required(revision: str) -> list[str]:
    """The scenarios a client of that revision must pass, as the harness has them written down."""
    path = HARNESS / "requirements" / f"{revision}.yaml"
    if not path.exists():
        return []
    block = path.read_text(encoding="utf-8").split("\nclient:\n")[1].split("\nnot_scored")[0]
    return re.findall(r"^\s+- (\S+)", block, re.MULTILINE)


CASES = [(revision, name) for revision in REVISIONS for name in required(revision)]
FEW = {("2025-11-25", "initialize"), ("2025-11-25", "sse-retry"), ("2026-07-28", "http-custom-headers")}


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_harness_asks_for_as_many_scenarios_as_are_run(revision: str) -> None:
    if not HARNESS.exists():
        pytest.skip("NOTICE: no conformance harness: run `npm ci` in tests/peers")
    assert len(required(revision)) == REVISIONS[revision]


@pytest.mark.parametrize(
    ("revision", "scenario"),
    [pytest.param(*case, marks=() if case in FEW else pytest.mark.slow, id="-".join(case)) for case in CASES],
)
def test_a_required_scenario_is_passed(revision: str, scenario: str) -> None:
    done = subprocess.run(
        [
            *(str(NODE_22), str(HARNESS / "dist" / "index.js"), "client"),
            *("--command", f"{sys.executable} -m tests.mcp.conformance_client"),
            *("--scenario", scenario, "--spec-version", revision, "--timeout", str(1000 * SECONDS)),
        ],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS + 20,
    )
    said = done.stdout + done.stderr
    found = re.search(r"Passed: (\d+)/(\d+), 0 failed", said)
    assert found is not None, said[-3000:]
    assert int(found[1]) == int(found[2]) > 0
    assert done.returncode == 0
