"""`dialoom bench`: the benches of the repository, from a clone of it."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import dialoom
from dialoom.base.errors import UsageError
from dialoom.cli.exits import ExitCode, complain

ROOT = Path(dialoom.__file__).resolve().parents[2]


def bench(
    names: Sequence[str],
    *,
    as_json: bool,
    cases: Sequence[Path] = (),
    client: str = "",
    most_cuts: int | None = None,
    root: Path = ROOT,
) -> ExitCode:
    """Run benches as the repository's `python -m bench` does. Raises `UsageError` outside a clone."""
    if not (root / "bench" / "__main__.py").is_file():
        raise UsageError("benches are not part of the package; clone the repository and run make bench there")
    options = [f"--cases={case.resolve()}" for case in cases]
    if client:
        options += [f"--client={client}", f"--client-at={Path.cwd()}"]  # its command is meant from here
    if most_cuts is not None:
        if most_cuts < 0:
            raise UsageError(f"--most-cuts is {most_cuts}; give 0 or more")
        options.append(f"--most-cuts={most_cuts}")
    command = [sys.executable, "-m", "bench", *names, *(["--json"] if as_json else []), *options]
    with subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE) as child:  # noqa: S603 - our own module
        assert child.stderr is not None
        for line in child.stderr:
            complain(line.decode(errors="replace"))
    return {0: ExitCode.OK, 2: ExitCode.USAGE}.get(child.returncode, ExitCode.FAILED)
