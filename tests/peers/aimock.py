"""The npm package @copilotkit/aimock as a peer: OpenAI, Anthropic and Ollama by somebody else's reading.

Its lock file is in this folder; `npm ci` here installs it. A test file imports the fixture.
"""

import re
import shutil
import subprocess
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAM = HERE / "node_modules" / "@copilotkit" / "aimock" / "dist" / "aimock-cli.js"
OLDEST_NODE = (20, 15)
READY_SECONDS = 60.0


@pytest.fixture(scope="module")
def aimock() -> Generator[str]:
    """The root address of a fresh server; tests are skipped, with the reason, where it cannot run."""
    node = shutil.which("node")
    if node is None or _version(node) < OLDEST_NODE:
        pytest.skip("NOTICE: no second peer: Node 20.15 or newer is not installed")
    if not PROGRAM.exists():
        pytest.skip("NOTICE: no second peer: run `npm ci` in tests/peers")
    server = subprocess.Popen(
        [node, str(PROGRAM), "-c", "aimock_config.json", "-p", "0"],
        cwd=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    late = threading.Timer(READY_SECONDS, server.kill)
    late.start()
    try:
        yield _address(server)
    finally:
        late.cancel()
        server.kill()
        server.communicate()


def _version(node: str) -> tuple[int, ...]:
    said = subprocess.run([node, "--version"], check=True, capture_output=True, text=True, timeout=30).stdout
    return tuple(int(part) for part in re.findall(r"\d+", said)[:2])


def _address(server: "subprocess.Popen[str]") -> str:
    assert server.stdout is not None
    said: list[str] = []
    for line in server.stdout:
        said.append(line)
        found = re.search(r"listening on (http://\S+)", line)
        if found:
            return found[1]
    raise AssertionError(f"aimock did not start: {''.join(said)[-500:]}")
