"""Kill processes at random moments while they run graphs, write and talk; fill a disk; count what is lost."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KILLS = ("graph_kill", "conversation_kills", "dialog_kills")


def main() -> int:
    """Run every harness, those that kill with the arguments given here; return 1 when any lost something.

    They run at once: each waits for the moment of its next kill most of the time.
    """
    commands = [*([name, *sys.argv[1:]] for name in KILLS), ["full_disk"]]
    harnesses = [
        subprocess.Popen([sys.executable, "-m", f"tests.crash.{name}", *arguments], cwd=ROOT)
        for name, *arguments in commands
    ]
    codes = [harness.wait() for harness in harnesses]  # of all, also when the first lost something
    if any(codes):
        return 1
    print("crash: nothing lost, nothing doubled")
    return 0


if __name__ == "__main__":
    sys.exit(main())
