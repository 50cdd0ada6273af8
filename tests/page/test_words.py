"""The page has Chinese words for everything the server may refuse."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from dialoom.net.guard import UrlRefusal
from dialoom.rag.errors import LoadErrorCode

ROOT = Path(__file__).parents[2]
WORDS = ROOT / "web/src/i18n"


def codes(tree: ast.Module) -> Iterator[str]:
    """Yield the codes a module of the server refuses with: the second argument of every `ProblemError`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="ProblemError"), args=[_, ast.Constant(value=str(code)), *_]):
                yield code
            case _:
                pass


def kinds(tree: ast.Module) -> Iterator[str]:
    """Yield the codes of the error classes of a module, which cards and runs tell of."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name, body=body) if name.endswith("Error"):
                for line in body:
                    match line:
                        case ast.Assign(targets=[ast.Name(id="code")], value=ast.Constant(value=str(code))):
                            yield code
                        case _:
                            pass
            case _:
                pass


def test_every_refusal_of_the_server_has_chinese_words() -> None:
    modules = (ROOT / "src/dialoom/server").glob("*.py")
    sent = {code for module in modules for code in codes(ast.parse(module.read_text(encoding="utf-8")))}
    everything = (ROOT / "src/dialoom").rglob("*.py")
    sent |= {code for module in everything for code in kinds(ast.parse(module.read_text(encoding="utf-8")))}
    zh = json.loads((WORDS / "zh.json").read_text(encoding="utf-8"))
    problems = json.loads((WORDS / "problems.zh.json").read_text(encoding="utf-8"))
    own = {key.removeprefix("error.") for key in zh if key.startswith("error.")}
    sent |= {*get_args(LoadErrorCode), *get_args(UrlRefusal)}
    assert len(sent) > 80
    assert sent - own - set(problems) == set()
    assert own & set(problems) == set()  # one place for each
