"""The whole suite with its coverage floors. The test runner's own summary line is the last thing printed."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLOORS = {
    "everything": (95, "src/dialoom/*"),
    "base": (100, "src/dialoom/base/*"),
    "graph": (100, "src/dialoom/graph/*"),
}


def run_module(*command: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m command` at the root, keeping what it prints."""
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, check=False, capture_output=True, text=True
    )


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


def low_coverage() -> list[str]:
    """Return one line for each floor that is not held; says nothing when all are."""
    run_module("coverage", "combine", "--quiet")
    problems: list[str] = []
    for name, (floor, include) in FLOORS.items():
        report = run_module("coverage", "report", f"--include={include}", f"--fail-under={floor}")
        total = report.stdout.strip().rsplit(maxsplit=1)[-1:] or ["no data"]
        print(f"coverage of {name}: {total[0]} (floor {floor} %)")
        if report.returncode:
            problems.append(f"coverage of {name} is below {floor} %\n{report.stdout}{report.stderr}")
    return problems


def main() -> int:
    run_module("coverage", "erase")
    code, summary = run_suite(sys.argv[1:])
    problems = low_coverage() if code == 0 else []
    print("\n".join(problems), end="\n" if problems else "")
    print(summary)
    return code or (1 if problems else 0)


if __name__ == "__main__":
    sys.exit(main())
