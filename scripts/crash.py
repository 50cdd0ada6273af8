"""Kill a process at 300 random moments on each store while it runs a graph, and count what is lost."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Return what the harness returns: 1 on any loss."""
    command = [sys.executable, "-m", "tests.crash.graph_kill", *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
