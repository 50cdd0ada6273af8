"""Files of tickets and cases: what is a row is read, whatever else stands in the file is told."""

import json
import os
import re
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.apps.triage import Case, Ticket, read_cases, read_tickets
from dialoom.apps.triage import rows as module
from dialoom.base.errors import UsageError
from tests.apps.triage.sample import CASES, TICKETS, lines


def file(folder: Path, content: bytes | str, name: str = "rows.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.promise("triage-001")
def test_tickets_are_lines_of_json_with_id_and_text(tmp_path: Path) -> None:
    read = read_tickets(file(tmp_path, lines(TICKETS)))
    assert read.rows == tuple(Ticket(id=row["id"], text=row["text"]) for row in TICKETS)
    assert read.left_out == ()


@pytest.mark.promise("triage-002")
def test_cases_are_lines_of_json_with_category_title_text_and_resolution(tmp_path: Path) -> None:
    read = read_cases(file(tmp_path, lines(CASES)))
    assert read.rows == tuple(Case(**row) for row in CASES)


@pytest.mark.promise("triage-003")
def test_either_file_may_be_one_array(tmp_path: Path) -> None:
    path = file(tmp_path, " \n" + json.dumps([*TICKETS, {"id": 4}], indent=1))
    assert [ticket.id for ticket in read_tickets(path).rows] == ["1", "2", "3"]
    assert read_tickets(path).warnings() == [f"{path}:4 is left out: Object missing required field `text`"]
    assert [case.id for case in read_cases(file(tmp_path, json.dumps(CASES))).rows] == ["A", "B", "C"]


@pytest.mark.parametrize("array", [False, True], ids=["lines", "array"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_chinese_is_read_in_the_encodings_it_comes_in(tmp_path: Path, encoding: str, *, array: bool) -> None:
    text = json.dumps(TICKETS, ensure_ascii=False) if array else lines(TICKETS)
    read = read_tickets(file(tmp_path, text.encode(encoding)))
    assert ([row.text for row in read.rows], read.left_out) == ([row["text"] for row in TICKETS], ())


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[]".encode("utf-16-le"), "is not UTF-8, GB18030 or marked UTF-16; save it as UTF-8"),
        ("[]".encode("utf-16-be"), "is not UTF-8, GB18030 or marked UTF-16; save it as UTF-8"),
        ("[]".encode("utf-32"), "is not UTF-8, GB18030 or marked UTF-16; save it as UTF-8"),
        (b"\xff\xfe[", "begins like UTF-16 and is none; save it as UTF-8"),
    ],
    ids=["unmarked", "unmarked big", "utf-32", "cut"],
)
def test_what_is_in_no_such_encoding_is_told_once(tmp_path: Path, content: bytes, told: str) -> None:
    path = file(tmp_path, content)
    with pytest.raises(UsageError, match=f"^{re.escape(f'{path} {told}')}$"):
        read_tickets(path)


def test_a_pipe_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(lines(TICKETS),), daemon=True)
    writer.start()
    assert [row.id for row in read_tickets(pipe).rows] == ["1", "2", "3"]
    writer.join(10)


def test_a_torn_line_is_left_out_and_does_not_turn_the_file_into_another_encoding(tmp_path: Path) -> None:
    torn = "退款".encode()[:-1]
    whole = [b'{"id": "%d", "text": "%s"}' % (at, "退款几天能到账".encode()) for at in range(3)]
    read = read_tickets(file(tmp_path, b"\n".join([b'{"id": "x", "text": "%s"}' % torn, *whole])))
    assert [row.text for row in read.rows] == ["退款几天能到账"] * 3
    assert [each.number for each in read.left_out] == [1]


@pytest.mark.promise("triage-017")
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{no json}", "JSON is malformed: object keys must be strings (byte 1)"),
        ('{"id": "9"}', "Object missing required field `text`"),
        ('{"id": "9", "text": 5}', "Expected `str`, got `int` - at `$.text`"),
        ('{"id": "9", "text": " "}', "text is empty"),
        ('{"id": " ", "text": "a"}', "id is empty"),
        ('{"id": "1", "text": "a"}', "the id '1' was there before"),
        ('{"id": 1, "text": "a"}', "the id '1' was there before"),
        ("[1]", "Expected `object`, got `array`"),
        ('{"id": "9", "text": "\\ud800"}', "Input data was truncated"),
        ('{"id": "%s", "text": "a"}' % ("9" * 201), "Expected `str` of length <= 200 - at `$.id`"),
        ('{"id": "9", "text": "%s"}' % ("a" * 100_001), "Expected `str` of length <= 100000 - at `$.text`"),
        (
            '{"id": "9", "text": "a", "x": %s}' % ("[" * 100_000),
            "maximum recursion depth exceeded while deserializing an object",
        ),
    ],
    ids=lambda value: value[:20],
)
def test_a_bad_line_is_left_out_and_the_reason_told(tmp_path: Path, line: str, why: str) -> None:
    path = file(tmp_path, f"{lines(TICKETS)}\n{line}\n")
    read = read_tickets(path)
    assert [row.id for row in read.rows] == ["1", "2", "3"]
    assert read.warnings() == [f"{path}:5 is left out: {why}"]


@pytest.mark.promise("triage-017")
def test_a_bad_case_is_left_out_too(tmp_path: Path) -> None:
    bad = [{**CASES[0], "id": "D", "resolution": ""}, CASES[1], {"id": "E"}]
    path = file(tmp_path, lines([*CASES, *bad]))
    read = read_cases(path)
    assert [row.id for row in read.rows] == ["A", "B", "C"]
    assert read.warnings() == [
        f"{path}:4 is left out: resolution is empty",
        f"{path}:5 is left out: the id 'B' was there before",
        f"{path}:6 is left out: Object missing required field `category`",
    ]


def test_of_many_bad_lines_the_first_are_told(tmp_path: Path) -> None:
    path = file(tmp_path, "no\n" * 13)
    told = read_tickets(path).warnings()
    assert (len(told), told[-1]) == (11, f"{path}: 3 more rows are left out")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"[{}, ", "begins like a JSON array and is none: Input data was truncated; mend it"),
        (b"[\xff]", "begins like a JSON array and is none"),
        (b"[" * 100_000, "begins like a JSON array and is none"),
    ],
    ids=["cut", "bytes", "deep"],
)
def test_a_broken_array_is_refused(tmp_path: Path, content: bytes, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read_tickets(file(tmp_path, content))


def test_what_is_no_file_is_refused_for_what_it_is(tmp_path: Path) -> None:
    for path, told in (
        (tmp_path, f"{tmp_path} is a folder, not a file"),
        (tmp_path / "none.jsonl", f"there is no file {tmp_path / 'none.jsonl'}"),
        (Path("/dev/zero"), "/dev/zero is a device, not a file"),
    ):
        with pytest.raises(
            UsageError, match=f"^{re.escape(told)}; name one with a JSON object on each line$"
        ):
            read_tickets(path)
    with pytest.raises(UsageError, match="there is no file a b; name one"):
        read_tickets(Path("a\0b"))
    with pytest.raises(UsageError, match="cannot read /proc/self/mem: Input/output error; check the file"):
        read_tickets(Path("/proc/self/mem"))


def test_files_have_a_size_and_a_number_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file(tmp_path, lines(TICKETS))
    monkeypatch.setattr(module, "MAX_ROWS", 2)
    with pytest.raises(UsageError, match=r"rows.jsonl holds more than 2 rows; split it"):
        read_tickets(path)
    monkeypatch.setattr(module, "MAX_BYTES", 1024 * 1024)
    with pytest.raises(UsageError, match=r"rows.jsonl is larger than 1 MiB; split it"):
        read_tickets(file(tmp_path, b" " * (1024 * 1024 + 1)))


@given(
    st.lists(
        st.binary(max_size=40)
        | st.sampled_from([b'{"id": "1", "text": "a"}', b"[", "退款".encode("gb18030")])
    )
)
def test_whatever_stands_in_a_file_it_is_read_or_told(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]
) -> None:
    path = file(tmp_path_factory.getbasetemp(), b"\n".join(pieces), "any.jsonl")
    try:
        read = read_tickets(path)
    except UsageError:
        return
    assert len({row.id for row in read.rows}) == len(read.rows)
    assert all(row.text.encode() for row in read.rows)
