"""Kill processes at random moments while they run graphs, write and talk; fill a disk; count what is lost."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KILLS = ("graph_kill", "conversation_kills", "dialog_kills")


def main() -> int:
    """Run every harness, those that kill with the arguments given here; return 1 when any lost something."""
    commands = [*([name, *sys.argv[1:]] for name in KILLS), ["full_disk"]]
    codes = [
        subprocess.run(
            [sys.executable, "-m", f"tests.crash.{name}", *arguments], cwd=ROOT, check=False
        ).returncode
        for name, *arguments in commands
    ]
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
