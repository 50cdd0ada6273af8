"""The main job before your eyes: an English and a Chinese question over real files, answered offline."""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = (
    "My hitch arm has cracked. For how many years are the hitch arm and coupling covered?",
    "退货寄到仓库、验货没问题之后，退款几天能到账？",
)
OPTIONS = ("--docs", "examples/kb", "--index", ".dialoom/demo.sqlite", "--offline")


def ask(question: str) -> int:
    """Show and run one command; return its exit code."""
    print(f'\n$ dialoom ask "{question}" --docs examples/kb --offline\n', flush=True)
    return subprocess.run(
        [Path(sys.executable).parent / "dialoom", "ask", question, *OPTIONS], cwd=ROOT, check=False
    ).returncode


def main() -> int:
    began = time.monotonic()
    codes = [ask(question) for question in QUESTIONS]
    files = len(list((ROOT / "examples/kb").iterdir()))
    print(f"\ntwo questions over {files} files in {time.monotonic() - began:.1f} s")
    print("in the browser, with a form and a tool to approve: .venv/bin/python examples/help_desk.py")
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
