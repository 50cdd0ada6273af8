"""Renew the pins: one hashed lock file per purpose, for every platform, without any registry address."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = {
    "run.txt": ["pyproject.toml", "--extra", "all", "--group", "build"],
    "dev.txt": ["pyproject.toml", "--extra", "all", "--group", "dev", "-c", "requirements/run.txt"],
    "real-model.txt": ["--group", "real-model", "--no-deps"],
    "bench.txt": ["requirements/bench.in"],
    "peers.txt": ["requirements/peers.in"],
    "peers-mcp1.txt": ["requirements/peers-mcp1.in", "--no-strip-extras"],
}


def compile_lock(name: str, options: list[str]) -> None:
    """Resolve `options` of pyproject.toml into requirements/`name`."""
    command = [
        *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes"),
        *("--python-version", "3.11", "--no-emit-index-url", "--no-emit-find-links", "--no-header"),
        *("--no-annotate", "--upgrade", *options, "-o", f"requirements/{name}"),
    ]
    subprocess.run(command, cwd=ROOT, check=True)


def main() -> None:
    for name, options in LOCKS.items():
        compile_lock(name, options)
        print(f"requirements/{name}: {pins(ROOT / 'requirements' / name)} pins")


def pins(lock: Path) -> int:
    return sum("==" in line for line in lock.read_text(encoding="utf-8").splitlines())


if __name__ == "__main__":
    main()
