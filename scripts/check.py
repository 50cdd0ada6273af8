"""The quick gates in one go: format, lint, layers, types, fast tests. Ends with what failed."""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
CODE = ("src", "tests", "scripts", "bench", "conftest.py")
# what needs a process, a server, a model or a build of its own is left to `make test`
FAST = ("tests", "--ignore=tests/peers", "--ignore=tests/cli", "-m", "not slow and not real_model")
GATES = {
    "format": [BIN / "ruff", "format", "--check", "--quiet", *CODE],
    "lint": [BIN / "ruff", "check", "--quiet", *CODE],
    "layers": [BIN / "lint-imports", "--no-cache"],
    "types": [BIN / "pyright", "--warnings"],
    "tests": [BIN / "pytest", "-q", "-x", "-n", "2", *FAST],
}


def run_gate(name: str) -> bool:
    """Run one gate, print its time, and its output only when it fails."""
    began = time.monotonic()
    done = subprocess.run(GATES[name], cwd=ROOT, check=False, capture_output=True, text=True)
    print(
        f"{'ok  ' if done.returncode == 0 else 'FAIL'} {name:7} {time.monotonic() - began:5.1f} s", flush=True
    )
    if done.returncode:
        print(done.stdout + done.stderr)
    return done.returncode == 0


def main() -> int:
    failed = [name for name in GATES if not run_gate(name)]
    print(f"check: {'failed: ' + ', '.join(failed) if failed else 'all gates pass'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
