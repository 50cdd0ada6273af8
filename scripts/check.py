"""The quick gates in one go: format, lint, layers, types, fast tests. Ends with what failed."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
CODE = ("src", "tests", "scripts", "bench", "conftest.py")
# folders whose tests start a program each, and what is slow or needs the local model, are left to `make test`
PROGRAMS = ("tests/cli", "tests/examples", "tests/peers", "tests/rag/extract")
FAST = ("tests", *(f"--ignore={folder}" for folder in PROGRAMS), "-m", "not slow and not real_model")
# a random test tries a quarter of its examples: no line is held by chance, and `make test` tries them all
FEWER = "--hypothesis-profile=quick"
GATES = {
    "format": [BIN / "ruff", "format", "--check", "--quiet", *CODE],
    "lint": [BIN / "ruff", "check", "--quiet", *CODE],
    "layers": [BIN / "lint-imports", "--no-cache"],
    "types": [BIN / "pyright", "--warnings"],
    "tests": [BIN / "pytest", "-q", "-x", "-n", "2", FEWER, *FAST],
}
# each lane is one gate after the other; the lanes run side by side
LANES = (("format", "lint", "layers", "types"), ("tests",))


def failures(lane: tuple[str, ...]) -> list[str]:
    """Run the gates of a lane, and return the names of those that failed."""
    return [name for name in lane if not passes(name)]


def passes(name: str) -> bool:
    """Run one gate, print its time, and its output only when it fails."""
    began = time.monotonic()
    done = subprocess.run(GATES[name], cwd=ROOT, check=False, capture_output=True, text=True)
    word, output = ("FAIL", f"\n{done.stdout}{done.stderr}") if done.returncode else ("ok  ", "")
    print(f"{word} {name:7} {time.monotonic() - began:5.1f} s{output}", flush=True)
    return not done.returncode


def main() -> int:
    began = time.monotonic()
    with ThreadPoolExecutor(len(LANES)) as pool:
        failed = [name for lane in pool.map(failures, LANES) for name in lane]
    outcome = f"failed: {', '.join(failed)}" if failed else "all gates pass"
    print(f"check: {outcome} in {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
