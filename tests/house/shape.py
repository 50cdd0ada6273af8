"""How the source is shaped, read from its syntax trees: sizes, names, docstrings and import cycles."""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 7
VAGUE_NAME = re.compile(r"(Manager|Helper|Util|Utils|Handler|Info|Data)$|^do_")

Source = Mapping[str, str]


def read_tree(root: Path) -> dict[str, str]:
    """Return module name -> source text of every Python file under `root`, a folder of packages."""
    return {
        _module_name(path.relative_to(root)): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*.py"))
    }


def size_problems(source: Source) -> Iterator[str]:
    """Files and functions that no longer fit in a head or on a screen."""
    for module, text in source.items():
        lines = text.count("\n")
        if lines > MAX_FILE_LINES:
            yield f"{module}: {lines} lines, at most {MAX_FILE_LINES}"
        for function in _functions(text):
            length = (function.end_lineno or function.lineno) - function.lineno + 1
            if length > MAX_FUNCTION_LINES:
                yield f"{module}.{function.name}: {length} lines, at most {MAX_FUNCTION_LINES}"


def parameter_problems(source: Source) -> Iterator[str]:
    """Functions that take too much, or more than two things after self by position alone."""
    for module, text in source.items():
        for function in _functions(text):
            names = [
                each.arg
                for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
            ]
            count = len([name for name in names if name not in {"self", "cls"}])
            if count > MAX_PARAMETERS:
                yield f"{module}.{function.name}: {count} parameters, at most {MAX_PARAMETERS}"


def name_problems(source: Source) -> Iterator[str]:
    """Names that say nothing: a manager, a helper, data."""
    for module, text in source.items():
        for node in ast.walk(_tree(text)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and VAGUE_NAME.search(
                node.name
            ):
                yield f"{module}.{node.name}: name the thing it is"


def docstring_problems(source: Source) -> Iterator[str]:
    """Modules and public classes whose first line does not say what they are."""
    for module, text in source.items():
        tree = _tree(text)
        if text.strip() and ast.get_docstring(tree) is None:
            yield f"{module}: no docstring"
        for node in tree.body:
            if (
                isinstance(node, ast.ClassDef)
                and not node.name.startswith("_")
                and ast.get_docstring(node) is None
            ):
                yield f"{module}.{node.name}: no docstring"


def import_cycles(source: Source) -> list[list[str]]:
    """Groups of modules that import each other, imports for types and inside functions included."""
    edges = {module: _imports(module, text, source) for module, text in source.items()}
    return _strong_components(edges)


def foreign_imports(source: Source, package: str, allowed: frozenset[str]) -> list[str]:
    """Imports of `package` from outside the standard library, dialoom itself and the `allowed` packages."""
    known = sys.stdlib_module_names | allowed | {"dialoom"}
    inside = {name: text for name, text in source.items() if f"{name}.".startswith(f"{package}.")}
    return [
        f"{module}: {name}" for module, text in inside.items() for name in _roots(text) if name not in known
    ]


@cache
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


def _roots(text: str) -> Iterator[str]:
    for node in ast.walk(_tree(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def _module_name(path: Path) -> str:
    parts = [*path.parts[:-1], path.stem]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _functions(text: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(_tree(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _imports(module: str, text: str, source: Source) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(_tree(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            submodules = inner & source.keys()
            found.update(submodules)
            if len(submodules) < len(inner):
                found.add(node.module)
    return {name for name in found if name in source and name != module}


def _strong_components(edges: Mapping[str, set[str]]) -> list[list[str]]:
    reach = {start: _reachable(start, edges) for start in edges}
    groups: dict[frozenset[str], None] = {}
    for start, ends in reach.items():
        group = frozenset(end for end in ends if start in reach[end])
        if start in ends:
            groups[group | {start}] = None
    return [sorted(group) for group in groups]


def _reachable(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(edges[start])
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting.extend(edges[module])
    return seen
