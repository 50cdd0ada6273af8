"""MCP servers and a conformance harness of others: npm packages of this folder, and two venvs of Python ones.

`npm ci` here installs the first; `make test` does all of it. Where they cannot be had, tests are skipped and
say so.
"""

import shutil
from pathlib import Path

import pytest

from dialoom.mcp import MCPServerConfig

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGES = HERE / "node_modules"
HARNESS = PACKAGES / "@modelcontextprotocol" / "conformance"
NODE_22 = PACKAGES / "node" / "bin" / "node"
PYTHON_PEERS = ROOT / ".venv-peers" / "bin"
OLD_PYTHON_PEERS = ROOT / ".venv-peers-mcp1" / "bin"


def node_server(package: str, *arguments: str, **environment: str) -> MCPServerConfig:
    """The config of one of the reference servers that are npm packages."""
    node = shutil.which("node")
    folder = PACKAGES / "@modelcontextprotocol" / f"server-{package}"
    if node is None or not folder.exists():
        pytest.skip("NOTICE: no MCP servers of others: install Node 20 and run `npm ci` in tests/peers")
    program = str(folder / "dist" / "index.js")
    return MCPServerConfig(package, command=node, arguments=[program, *arguments], environment=environment)


def python_server(program: str, *arguments: str, folder: Path = PYTHON_PEERS) -> MCPServerConfig:
    """The config of one of the reference servers that are Python packages."""
    if not (folder / program).exists():
        pytest.skip(f"NOTICE: no {program}: run `make test`, which installs it into {folder.parent.name}")
    return MCPServerConfig(program, command=str(folder / program), arguments=arguments)
