"""Do the promises and the marks in the tests agree? `python -m tests.promise_check` tells.

A link holds when a promise names a test and that test is marked with the promise's id.
Tests are read as syntax trees and never imported.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tests.promises import OPEN, PROMISES, Promise

ROOT = Path(__file__).resolve().parents[1]
SEEDS = frozenset({"000", "002", "003", "004"})
MAX_TEXT = 240
ID = re.compile(r"[a-z]+-[0-9]{3}")

Sources: TypeAlias = Mapping[str, str]
"""Path of a test file from the repository root, with forward slashes, to its text."""


class Problem(NamedTuple):
    """Something that does not hold."""

    subject: str
    """What it is wrong with: a promise id, a test, or a place in a file."""
    text: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.text}"


class Marks(NamedTuple):
    """What the test files say about promises."""

    ids: Mapping[str, frozenset[str]]
    """Every test, as "path::name" or "path::Class::name", to the ids it is marked with."""
    problems: Sequence[Problem]


def read_sources(root: Path) -> dict[str, str]:
    """Return path to text of every `test_*.py` under `root/tests`."""
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(root.glob("tests/**/test_*.py"))
    }


def read_marks(sources: Sources) -> Marks:
    """Return the promise marks of every test, and the marks that could never count."""
    ids: dict[str, frozenset[str]] = {}
    problems: list[Problem] = []
    for path, text in sources.items():
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError) as error:
            problems.append(Problem(path, f"does not parse: {error}"))
            continue
        used: set[ast.Attribute] = set()
        for name, test in dict(_tests(tree, path)).items():
            calls = list(_promise_calls(test))
            used.update(mark for mark, _ in calls)
            ids[name] = frozenset(each for _, call in calls for each in _literals(call))
            problems += [
                Problem(name, "a promise mark takes one or more literal ids and nothing else")
                for _, call in calls
                if not _literals(call)
            ]
        problems += [
            Problem(f"{path}:{node.lineno}", "a promise mark counts only on a test, with its ids")
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and _is_promise_mark(node) and node not in used
        ]
    return Marks(ids, problems)


def table_problems(promises: Sequence[Promise]) -> list[Problem]:
    """Return what is wrong with ids, seeds and wordings."""
    ids = Counter(promise.id for promise in promises)
    texts = Counter(promise.text for promise in promises)
    problems = [Problem(each, "the id is given twice") for each, count in ids.items() if count > 1]
    for promise in promises:
        size = len(promise.text)
        checks = {
            "an id is an area and three digits, such as graph-012": ID.fullmatch(promise.id),
            f"there is no seed {promise.seed!r}": promise.seed in SEEDS,
            "the text is empty": promise.text.strip(),
            "the text is more than one line": promise.text.isprintable(),
            f"the text has {size} characters, at most {MAX_TEXT}": size <= MAX_TEXT,
            "another promise has the same text": texts[promise.text] == 1,
        }
        problems += [Problem(promise.id, text) for text, holds in checks.items() if not holds]
    return problems


def link_problems(promises: Sequence[Promise], sources: Sources) -> list[Problem]:
    """Return where a promise and a test do not point at each other, whichever side is missing."""
    marks = read_marks(sources)
    problems = list(marks.problems)
    for promise in promises:
        file = promise.test.partition("::")[0]
        if promise.test == OPEN:
            continue
        if file not in sources:
            problems.append(Problem(promise.id, f"there is no test file {file}"))
        elif promise.test not in marks.ids:
            problems.append(Problem(promise.id, f"there is no test {promise.test}"))
        elif promise.id not in marks.ids[promise.test]:
            problems.append(Problem(promise.id, f"{promise.test} is not marked with it"))
    known = {promise.id: promise.test for promise in promises}
    for test, ids in marks.ids.items():
        for each in sorted(ids):
            if each not in known:
                problems.append(Problem(test, f"marked with the unknown promise {each}"))
            elif known[each] == OPEN:
                problems.append(Problem(each, f"the table says open, but {test} carries it"))
    return problems


def find_problems(promises: Sequence[Promise], sources: Sources) -> list[Problem]:
    """Return everything wrong with the table and its links; an empty list when all is well."""
    return table_problems(promises) + link_problems(promises, sources)


def report(promises: Sequence[Promise], *, broken: Collection[str] = ()) -> Iterator[str]:
    """Yield a line per promise, a count per area and the total; `broken` ids are not tested."""
    areas: dict[str, list[Promise]] = {}
    for promise in promises:
        areas.setdefault(promise.id.partition("-")[0], []).append(promise)
    tested = {each.id for each in promises if each.test != OPEN} - set(broken)
    id_width = max((len(each.id) for each in promises), default=0)
    test_width = max((len(each.test) for each in promises), default=0)
    for area, rows in areas.items():
        for each in rows:
            yield f"{each.id:{id_width}}  {each.test:{test_width}}  {each.text}"
        yield f"{area}: {len(rows)} promises, {sum(each.id in tested for each in rows)} tested"
        yield ""
    yield f"promises: {len(promises)}, tested: {sum(each.id in tested for each in promises)}"


def main(root: Path = ROOT) -> int:
    """Print the promises, and on stderr what is wrong with them; return the exit code."""
    problems = find_problems(PROMISES, read_sources(root))
    for line in report(PROMISES, broken={problem.subject for problem in problems}):
        print(line)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def _tests(scope: ast.AST, prefix: str) -> Iterator[tuple[str, _Function]]:
    """Yield the tests pytest would collect, also those under `if`, `try` or `with`."""
    for node in ast.iter_child_nodes(scope):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if node.name.startswith("test"):
                    yield f"{prefix}::{node.name}", node
            case ast.ClassDef():
                if node.name.startswith("Test"):
                    yield from _tests(node, f"{prefix}::{node.name}")
            case _:
                yield from _tests(node, prefix)


def _promise_calls(test: _Function) -> Iterator[tuple[ast.Attribute, ast.Call]]:
    for each in test.decorator_list:
        match each:
            case ast.Call(func=ast.Attribute() as mark) if _is_promise_mark(mark):
                yield mark, each
            case _:
                pass


def _is_promise_mark(node: ast.Attribute) -> bool:
    """Tell `pytest.mark.promise`, or `mark.promise` of an imported `mark`, from all else."""
    match node:
        case ast.Attribute(value=ast.Attribute(attr="mark") | ast.Name(id="mark"), attr="promise"):
            return True
        case _:
            return False


def _literals(call: ast.Call) -> tuple[str, ...]:
    """Return the ids a mark is called with; none when it is called with anything else."""
    constants = [each.value for each in call.args if isinstance(each, ast.Constant)]
    ids = tuple(each for each in constants if isinstance(each, str))
    return ids if len(ids) == len(call.args) and not call.keywords else ()


if __name__ == "__main__":
    sys.exit(main())
