"""The table of promises is in shape, and every link between it and the tests holds."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.promise_check import (
    ROOT,
    find_problems,
    link_problems,
    main,
    read_marks,
    read_sources,
    report,
    table_problems,
)
from tests.promises import OPEN, PROMISES, Promise

FILE = "tests/graph/test_run.py"
TEST = f"{FILE}::test_it"


def marked(*ids: str, name: str = "test_it") -> str:
    """The text of a test file with one test, marked with `ids`."""
    literals = ", ".join(repr(each) for each in ids)
    return f"import pytest\n\n@pytest.mark.promise({literals})\nasync def {name}(): ...\n"


def promise(test: str = TEST, *, of: str = "graph-001", text: str = "A run ends") -> Promise:
    return Promise(of, "004", text, test)


def lines(problems: Sequence[object]) -> list[str]:
    return [str(problem) for problem in problems]


def test_the_table_and_the_marks_in_our_tests_agree() -> None:
    assert lines(find_problems(PROMISES, read_sources(ROOT))) == []


def test_every_seed_has_promises() -> None:
    assert {each.seed for each in PROMISES} == {"000", "002", "003", "004"}


def test_a_promise_and_its_marked_test_make_a_link() -> None:
    assert find_problems([promise()], {FILE: marked("graph-001")}) == []


def test_an_open_promise_needs_no_test() -> None:
    assert find_problems([promise(OPEN)], {}) == []


def test_one_test_may_carry_several_promises_in_one_mark_or_more() -> None:
    text = marked("graph-001").replace("async", "@pytest.mark.promise('graph-002')\nasync")
    promises = [promise(), promise(of="graph-002", text="A run begins")]
    assert find_problems(promises, {FILE: marked("graph-001", "graph-002")}) == []
    assert find_problems(promises, {FILE: text}) == []


def test_a_promise_carried_by_several_tests_names_one_of_them() -> None:
    other = "tests/test_more.py"
    sources = {FILE: marked("graph-001"), other: marked("graph-001", name="test_more")}
    assert find_problems([promise(f"{other}::test_more")], sources) == []


def test_a_method_of_a_test_class_carries_a_promise() -> None:
    text = "class TestRun:\n    @pytest.mark.promise('graph-001')\n    def test_it(self): ...\n"
    assert find_problems([promise(f"{FILE}::TestRun::test_it")], {FILE: text}) == []


def test_a_test_under_a_condition_carries_a_promise() -> None:
    text = "if posix:\n    @mark.promise('graph-001')\n    def test_it(): ...\n"
    assert find_problems([promise()], {FILE: text}) == []


@pytest.mark.parametrize(
    ("sources", "problem"),
    [
        ({}, f"graph-001: there is no test file {FILE}"),
        ({FILE: "def test_other(): ...\n"}, f"graph-001: there is no test {TEST}"),
        ({FILE: "def test_it(): ...\n"}, f"graph-001: {TEST} is not marked with it"),
        ({FILE: "def outer():\n    def test_it(): ...\n"}, f"graph-001: there is no test {TEST}"),
    ],
)
def test_a_promise_without_its_test_is_a_problem(sources: dict[str, str], problem: str) -> None:
    assert lines(link_problems([promise()], sources)) == [problem]


def test_a_promise_naming_a_test_that_carries_another_one_is_a_problem() -> None:
    promises = [promise(), promise(of="graph-002", text="A run begins")]
    assert lines(link_problems(promises, {FILE: marked("graph-001")})) == [
        f"graph-002: {TEST} is not marked with it"
    ]


def test_a_mark_with_an_unknown_id_is_a_problem() -> None:
    assert lines(link_problems([promise()], {FILE: marked("graph-001", "graph-999")})) == [
        f"{TEST}: marked with the unknown promise graph-999"
    ]


def test_a_mark_for_a_promise_the_table_calls_open_is_a_problem() -> None:
    assert lines(link_problems([promise(OPEN)], {FILE: marked("graph-001")})) == [
        f"graph-001: the table says open, but {TEST} carries it"
    ]


@pytest.mark.parametrize("call", ["()", "(*IDS)", "('a-001', NAME)", "(1)", "('a-001', why='x')"])
def test_a_mark_without_literal_ids_is_a_problem(call: str) -> None:
    text = f"@pytest.mark.promise{call}\ndef test_it(): ...\n"
    assert lines(read_marks({FILE: text}).problems) == [
        f"{TEST}: a promise mark takes one or more literal ids and nothing else"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "@pytest.mark.promise\ndef test_it(): ...\n",
        "@pytest.mark.promise('graph-001')\ndef check_it(): ...\n",
        "@pytest.mark.promise('graph-001')\nclass TestRun:\n    def test_it(self): ...\n",
        "pytestmark = pytest.mark.promise('graph-001')\n",
        "@pytest.mark.promise('graph-001')\ndef test_it(): ...\n\ndef test_it(): ...\n",
    ],
    ids=["not called", "no test", "a class", "a module", "a test that another one replaces"],
)
def test_a_mark_that_no_test_carries_is_a_problem(text: str) -> None:
    assert [problem.text for problem in read_marks({FILE: text}).problems] == [
        "a promise mark counts only on a test, with its ids"
    ]


def test_a_test_file_that_does_not_parse_is_one_problem_and_no_traceback() -> None:
    (problem,) = read_marks({FILE: "def test_it(:\n"}).problems
    assert str(problem).startswith(f"{FILE}: does not parse: ")


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (Promise("A-1", "004", "A"), "an id is an area and three digits, such as graph-012"),
        (Promise("a-001", "001", "A"), "there is no seed '001'"),
        (Promise("a-001", "004", " "), "the text is empty"),
        (Promise("a-001", "004", "A\nB"), "the text is more than one line"),
        (Promise("a-001", "004", "A" * 241), "the text has 241 characters, at most 240"),
    ],
)
def test_a_promise_out_of_shape_is_a_problem(wrong: Promise, problem: str) -> None:
    assert lines(table_problems([wrong])) == [f"{wrong.id}: {problem}"]


def test_an_id_or_a_text_given_twice_is_a_problem() -> None:
    same_id = [promise(), promise(text="B")]
    same_text = [promise(), promise(of="graph-002")]
    assert lines(table_problems(same_id)) == ["graph-001: the id is given twice"]
    assert lines(table_problems(same_text)) == [
        "graph-001: another promise has the same text",
        "graph-002: another promise has the same text",
    ]


def test_the_report_lists_promises_by_area_and_ends_with_the_total() -> None:
    promises = [
        promise(),
        promise(OPEN, of="mcp-001", text="A server starts"),
        promise(of="graph-002", text="A run begins"),
    ]
    assert list(report(promises, broken={"graph-002"})) == [
        f"graph-001  {TEST}  A run ends",
        f"graph-002  {TEST}  A run begins",
        "graph: 2 promises, 1 tested",
        "",
        "mcp-001    open                              A server starts",
        "mcp: 1 promises, 0 tested",
        "",
        "promises: 3, tested: 1",
    ]


def test_an_empty_table_is_reported_too() -> None:
    assert list(report([])) == ["promises: 0, tested: 0"]


def test_sources_are_the_test_files_of_every_folder(tmp_path: Path) -> None:
    for name in ("tests/test_a.py", "tests/x/y/test_b.py", "tests/conftest.py", "src/test_c.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name} 中文\n", encoding="utf-8")
    assert read_sources(tmp_path) == {
        name: f"# {name} 中文\n" for name in ("tests/test_a.py", "tests/x/y/test_b.py")
    }


def test_the_command_prints_the_total_last_and_agrees_with_its_exit_code() -> None:
    command = [sys.executable, "-m", "tests.promise_check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    carried = sum(each.test != OPEN for each in PROMISES)
    assert (done.stderr, done.returncode) == (b"", 0)
    last = done.stdout.decode().splitlines()[-1]
    assert last == f"promises: {len(PROMISES)}, tested: {carried}"


def test_the_command_says_what_is_wrong_and_exits_with_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_it.py").write_text(marked("graph-999"), encoding="utf-8")
    assert main(tmp_path) == 1
    printed = capsys.readouterr()
    unknown = "tests/test_it.py::test_it: marked with the unknown promise graph-999"
    assert unknown in printed.err.splitlines()
    assert printed.out.splitlines()[-1] == f"promises: {len(PROMISES)}, tested: 0"
