"""Headers: ids that name files anywhere, times that text holds, settings that are JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.conversation import Header, HeaderChange
from dialoom.conversation.header import from_rfc3339, from_stored_time, to_rfc3339
from dialoom.testing.conversation_contract import HOSTILE_IDS


@pytest.mark.parametrize("hostile", [*HOSTILE_IDS, "LPT9", "aux", "a b", "a\n", "\ud800", "~", "x" * 10_000])
def test_an_id_that_could_leave_its_folder_is_refused(hostile: str) -> None:
    for fields in ({"id": hostile}, {"id": "ok", "branch_from": hostile}):
        with pytest.raises(UsageError, match="cannot name a conversation"):
            Header(created=0, updated=0, **fields)


UUID = "01a22c94-c46b-7b63-8d5e-e45efa3561e6"


@pytest.mark.parametrize("good", [UUID, "A", "a" * 64, "COM10", "con1", "0-_"])
def test_an_id_of_letters_digits_and_dashes_is_taken(good: str) -> None:
    assert Header(id=good, created=0, updated=0).id == good


@given(st.floats(-62_135_000_000, 253_402_000_000))
def test_a_moment_survives_its_text(seconds: float) -> None:
    header = Header(id="a", created=seconds, updated=seconds)
    assert abs(header.created - seconds) <= 0.0006
    assert from_rfc3339(to_rfc3339(header.created)) == header.created


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-11-30T12:00:00Z", 1_796_040_000.0),
        ("2026-11-30T12:00:00", 1_796_040_000.0),
        ("2026-11-30T20:00:00.1234567+08:00", 1_796_040_000.123),
        ("2026-11-30 12:00:00", 1_796_040_000.0),
        ("0001-01-01T00:00:00", -62_135_596_800.0),
    ],
)
def test_times_of_other_products_are_read(text: str, seconds: float) -> None:
    assert from_rfc3339(text) == seconds


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-45T00:00:00Z", "9999-12-31T23:00:00Z"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no time|no moment of the calendar"):
        from_rfc3339(text)


JANUARY = 1_735_898_400.0
"""2025-01-03T10:00:00Z."""
FIRST, LAST = -62_135_596_800.0, 253_402_214_400.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2025-01-03T10:00:00.0000000Z", JANUARY),
        ("2025-01-03T10:00:00.1234567", JANUARY + 0.123),
        ("2025-01-03 18:00:00 +08:00", JANUARY),
        ("01/03/2025 10:00:00", JANUARY),
        ("01/03/2025 10:00:00 Z", JANUARY),
        ("01/03/2025 18:00:00 +08:00", JANUARY),
        ("1/3/2025 10:00:00 AM", JANUARY),
        ("1/3/2025 6:00:00\u202fPM +08:00", JANUARY),
        ("2025/1/3 10:00:00", JANUARY),
        ("2025/01/03 18:00:00 +08:00", JANUARY),
        ("0001-01-01T00:00:00.0000000", FIRST),
        ("0001-01-01T00:00:00.0000000+08:00", FIRST),
        ("01/01/0001 00:00:00", FIRST),
        ("01/01/0001 00:00:00 +00:00", FIRST),
        ("9999-12-31T23:59:59.9999999", LAST),
        ("9999-12-31T23:59:59.9999999-08:00", LAST),
        ("12/31/9999 23:59:59", LAST),
    ],
)
def test_times_in_files_are_read_in_each_way_dotnet_writes_them(text: str, seconds: float) -> None:
    assert from_stored_time(text) == seconds
    assert from_rfc3339(to_rfc3339(seconds)) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "soon", "13/01/2025 10:00:00", "03.01.2025 10:00:00", "01/03/2025", "x" * 10_000, "\ud800", "0"],
)
def test_a_time_that_could_be_another_one_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no time; write it like 2026-11-30T12:00:00Z"):
        from_stored_time(text)


@given(st.text(max_size=40) | st.text("0123456789/-:. TZAPM+", max_size=30))
def test_any_text_is_a_moment_or_refused_in_one_line(text: str) -> None:
    refusal = ""
    try:
        assert FIRST <= from_stored_time(text) <= LAST
    except UsageError as error:
        refusal = str(error)
    assert "\n" not in refusal


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), 1e20, -1e20])
def test_a_moment_off_the_calendar_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match="no moment of the calendar"):
        Header(id="a", created=seconds, updated=0)


def test_a_title_is_one_line_and_settings_are_json() -> None:
    header = Header(id="a", title=" two\nlines\ud800 ", created=1.23456, updated=2, settings={"a": (1,)})
    assert header == Header(id="a", title="two lines\ufffd", created=1.235, updated=2.0, settings={"a": [1]})
    assert len(Header(id="a", title="x" * 5000, created=0, updated=0).title) == 1000
    with pytest.raises(UsageError, match="settings of a conversation: not a plain value: a set"):
        Header(id="a", created=0, updated=0, settings={"a": {1}})


def test_a_change_replaces_what_it_names_and_time_never_runs_back() -> None:
    header = Header(id="a", title="t", created=5, updated=10, workflow_mode="guided", settings={"a": 1})
    assert HeaderChange(title="u").apply(header, 20) == Header(
        id="a", title="u", created=5, updated=20, workflow_mode="guided", settings={"a": 1}
    )
    assert HeaderChange(workflow_mode=None, settings={}).apply(header, 3) == Header(
        id="a", title="t", created=5, updated=10
    )
