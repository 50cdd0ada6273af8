"""What is refused says so with a code, and the page has words for every one of them."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORDS = ROOT / "web/src/i18n"


def codes_of(path: Path) -> Iterator[str]:
    """Return the codes of the refusals that a module makes itself."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ProblemError":
            yield from (each.value for each in node.args[1:2] if isinstance(each, ast.Constant))


def test_every_code_of_the_server_has_words_in_chinese() -> None:
    codes = {code for path in (ROOT / "src/dialoom/server").glob("*.py") for code in codes_of(path)}
    assert {"run_active", "too_many_calls", "not_found", "signed_out"} <= codes
    general = json.loads((WORDS / "zh.json").read_text(encoding="utf-8"))
    problems = json.loads((WORDS / "problems.zh.json").read_text(encoding="utf-8"))
    assert [code for code in sorted(codes) if f"error.{code}" not in general and code not in problems] == []
