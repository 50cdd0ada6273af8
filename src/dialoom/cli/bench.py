"""`dialoom bench`: the benches of the repository, from a clone of it."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import dialoom
from dialoom.base.errors import UsageError
from dialoom.cli.exits import ExitCode

ROOT = Path(dialoom.__file__).resolve().parents[2]


def bench(names: Sequence[str], *, as_json: bool, cases: Sequence[Path] = (), root: Path = ROOT) -> ExitCode:
    """Run benches as the repository's `python -m bench` does. Raises `UsageError` outside a clone."""
    if not (root / "bench" / "__main__.py").is_file():
        raise UsageError("benches are not part of the package; clone the repository and run make bench there")
    files = [word for case in cases for word in ("--cases", str(case.resolve()))]
    command = [sys.executable, "-m", "bench", *names, *(["--json"] if as_json else []), *files]
    done = subprocess.run(command, cwd=root, check=False)  # noqa: S603 - our own module, words from the person
    return {0: ExitCode.OK, 2: ExitCode.USAGE}.get(done.returncode, ExitCode.FAILED)
