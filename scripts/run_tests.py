"""The whole suite with its coverage floors. The test runner's own summary line is the last thing printed."""

import math
import subprocess
import sys
from io import StringIO
from pathlib import Path

from coverage import Coverage

ROOT = Path(__file__).resolve().parent.parent
FLOORS = {
    "everything": (95, "src/dialoom/*"),
    "base": (100, "src/dialoom/base/*"),
    "graph": (100, "src/dialoom/graph/*"),
}


def run_suite(arguments: list[str]) -> tuple[int, str]:
    """Run pytest under coverage, printing as it goes; return its exit code and its summary line."""
    command = [sys.executable, "-m", "coverage", "run", "-m", "pytest", "-n", "2", *arguments]
    last = ""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as suite:
        assert suite.stdout is not None
        for line in suite.stdout:
            if last:
                print(last, flush=True)
            last = line.rstrip("\n")
    return suite.returncode, last


def low_coverage(root: Path = ROOT) -> list[str]:
    """Print the figure of each floor; return one text for each that is not held, with what is missing."""
    measured = Coverage(data_file=str(root / ".coverage"), config_file=str(ROOT / "pyproject.toml"))
    measured.load()
    problems: list[str] = []
    for name, (floor, include) in FLOORS.items():
        table = StringIO()
        total = measured.report(include=str(root / include), file=table)
        print(f"coverage of {name}: {math.floor(total * 10) / 10} % (floor {floor} %)")
        if total < floor:
            problems.append(f"coverage of {name} is below {floor} %\n{table.getvalue()}")
    return problems


def main() -> int:
    run_coverage("erase")
    code, summary = run_suite(sys.argv[1:])
    run_coverage("combine", "--quiet")
    problems = low_coverage() if code == 0 else []
    print("\n".join(problems), end="\n" if problems else "")
    print(summary)
    return code or (1 if problems else 0)


def run_coverage(*command: str) -> None:
    """Run `coverage` at the root; what it says of files that are not there, or cut off, helps nobody."""
    subprocess.run([sys.executable, "-m", "coverage", *command], cwd=ROOT, check=False, capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
