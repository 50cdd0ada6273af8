"""Kill processes at random moments while they run graphs, write and talk; count what is lost."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HARNESSES = ("graph_kill", "conversation_kills", "dialog_kills")


def main() -> int:
    """Run every harness, with the arguments given here; return 1 when any of them lost something."""
    codes = [
        subprocess.run(
            [sys.executable, "-m", f"tests.crash.{name}", *sys.argv[1:]], cwd=ROOT, check=False
        ).returncode
        for name in HARNESSES
    ]
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
