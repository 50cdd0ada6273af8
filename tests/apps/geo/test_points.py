"""Files of points as people have them: read, understood, loaded."""

import math
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.apps.geo import Chosen, Hints, PointFile, load, match_axes, read_points
from dialoom.apps.geo.axes import warnings_of
from dialoom.base.errors import DialoomError, UsageError

ENGLISH = "Well,Easting (m),Northing (m),Depth\nA1,500100.5,4100200.25,-12.5\nB2,500200,4100300,-99999\n"
CHINESE = (
    "井号\t东坐标\t北坐标\t高程(m)\r\n甲1\t38500100.5\t4100200.25\t12.5\r\n乙2\t38500200\t4100300\tNaN\r\n"
)
PLAIN = "# exported 2026-11-30\n# X Y Z\n1 2 3\n4 5 6\n7 8 1.70141e38\n"


def read(text: str, encoding: str = "utf-8", **hints: object) -> PointFile:
    return read_points(text.encode(encoding), "points", Hints(**hints))  # pyright: ignore[reportArgumentType]


def axes(file: PointFile) -> dict[str, tuple[str, float]]:
    return {each.axis: (each.column, each.confidence) for each in match_axes(file)}


def test_a_table_with_english_names_is_understood() -> None:
    file = read(ENGLISH)
    assert (file.delimiter, file.header_row, file.comment_prefix, file.decimal) == (",", 0, None, ".")
    assert [(each.name, each.dtype, each.nulls) for each in file.columns] == [
        ("Well", "text", 0),
        ("Easting (m)", "number", 0),
        ("Northing (m)", "number", 0),
        ("Depth", "number", 1),
    ]  # fmt: skip
    assert (file.columns[1].low, file.columns[1].high) == (500100.5, 500200)
    assert axes(file) == {"x": ("Easting (m)", 0.95), "y": ("Northing (m)", 0.95), "z": ("Depth", 0.95)}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
def test_a_table_with_chinese_names_is_understood_in_any_encoding(encoding: str) -> None:
    file = read(CHINESE, encoding)
    assert (file.delimiter, file.rows[0][0]) == ("\t", "甲1")
    assert axes(file) == {"x": ("东坐标", 0.95), "y": ("北坐标", 0.95), "z": ("高程(m)", 0.95)}
    assert file.columns[3].nulls == 1


def test_a_few_chinese_words_above_many_numbers_are_read_as_chinese() -> None:
    rows = "\n".join(f"{104 + at / 1000} {30 + at / 1000} {at}" for at in range(100))
    file = read(f"# 经度 纬度 高程\n{rows}\n", "gb18030")
    assert (file.encoding, axes(file)["z"]) == ("gb18030", ("高程", 0.95))


def test_comments_are_passed_over_and_the_last_one_may_name_the_columns() -> None:
    file = read(PLAIN)
    assert (file.delimiter, file.comment_prefix, file.header_row) == (" ", "#", None)
    assert [each.name for each in file.columns] == ["X", "Y", "Z"]
    assert file.columns[2].nulls == 1


def test_without_names_the_order_of_the_numbers_is_a_guess() -> None:
    file = read("a1 10 20 30\na2 11 21 31\n")
    assert axes(file) == {"x": ("column 2", 0.5), "y": ("column 3", 0.5), "z": ("column 4", 0.5)}
    assert axes(read("mean_depth;site_lon;site_lat\n1;2;3\n")) == {
        "x": ("site_lon", 0.85), "y": ("site_lat", 0.85), "z": ("mean_depth", 0.85),
    }  # fmt: skip


def test_decimal_commas_own_nulls_and_skipped_rows_are_read() -> None:
    file = read("made by hand\nx;y;z\n1,5;2,5;-1\n2,5;;7,25\n", skip_rows=1, null_values=("-1",))
    assert (file.decimal, file.header_row) == (",", 1)
    assert [each.nulls for each in file.columns] == [0, 1, 1]
    assert file.column("z").high == 7.25
    assert file.column(0).name == "x"
    assert [each.name for each in read("x,x,\n1,2,3\n").columns] == ["x", "x (2)", "column 3"]


@pytest.mark.parametrize("text", ["", "\n\n", "# only\n", "x,y,z\n"])
def test_a_file_without_rows_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="points h"):
        read(text)


def test_what_is_no_text_or_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DialoomError):
        read_points(b"\x89PNG\r\n\x1a\n" + bytes(200), "a.png", Hints())
    monkeypatch.setattr("dialoom.apps.geo.layout.MAX_ROWS", 2)
    with pytest.raises(UsageError, match="at most 2 are read"):
        read("1 2 3\n" * 3)
    monkeypatch.setattr("dialoom.apps.geo.layout.MAX_BYTES", 2)
    with pytest.raises(UsageError, match="18 bytes; at most 2"):
        read("1 2 3\n" * 3)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused_in_words(data: bytes) -> None:
    file = None
    with suppress(DialoomError):
        file = read_points(data, "any", Hints())
    if file is not None:
        assert file.rows
        assert {each.axis for each in match_axes(file)} <= {"x", "y", "z"}


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ("lat\n1\n2", "lon\n3\n4", ["swapped", "degrees"]),
        ("a\n30.1234\n31.1234", "b\n104.1234\n105.5678", ["swapped", "degrees"]),
        ("a\n4100200\n4100300", "b\n500100\n500200", ["swapped"]),
        ("a\n10.12345\n11.12345", "b\n50.12345\n51.12345", ["degrees"]),
        ("x\n0\n100", "y\n0\n80", []),
        ("x\nNaN", "y\n0\n80", []),
    ],
)  # fmt: skip
def test_what_looks_wrong_about_a_choice_is_warned_of(x: str, y: str, words: list[str]) -> None:
    first, second = (read(column + "\n").columns[0] for column in (x, y))
    told = warnings_of(first, second)
    assert len(told) == len(words)
    assert all(word in line for word, line in zip(words, told, strict=True))


DOUBLED = "x y z\n0 0 1\n0 0 3\n10 0 5\n10 10 NaN\n10.4 0.2 8\n0 10 9\n"


def loaded(text: str, **choice: object) -> list[list[float]]:
    chosen = Chosen(x="x", y="y", z="z", **choice)  # pyright: ignore[reportArgumentType]
    return load(read(text), chosen).points.tolist()


@pytest.mark.parametrize(
    ("keep", "z"), [("first", 1), ("last", 3), ("mean", 2), ("min", 1), ("max", 3)]
)  # fmt: skip
def test_points_in_one_place_become_one(keep: str, z: float) -> None:
    points = loaded(DOUBLED, keep=keep)
    assert [0, 0, z] in points
    assert len(points) == 4
    assert len(loaded(DOUBLED, keep=keep, tolerance=5)) == 3


def test_points_are_scaled_filtered_and_measured() -> None:
    points = loaded(DOUBLED, z_factor=-2, bbox=(0, 0, 10, 10), z_min=-15, z_max=-5)
    assert points == [[0, 0, -6], [10, 0, -10]]
    whole = load(read(DOUBLED), Chosen(x="x", y="y", z="z"))
    assert (whole.read, whole.extent) == (6, (0, 0, 10.4, 10))
    assert math.isclose(whole.spacing, np.sqrt(104 / 4))
    line = load(read("x y z\n0 0 1\n1 0 1\n4 0 1\n"), Chosen(x="x", y="y", z="z"))
    assert line.spacing == 2


def test_columns_of_text_and_filters_that_leave_nothing_are_refused() -> None:
    with pytest.raises(UsageError, match="'Well' holds text"):
        load(read(ENGLISH), Chosen(x="Well", y=1, z=2))
    with pytest.raises(UsageError, match="no point is left"):
        load(read(ENGLISH), Chosen(x=1, y=2, z=3, z_min=0))
    with pytest.raises(UsageError, match="no column 'q'; it has Well, "):
        load(read(ENGLISH), Chosen(x="q", y=1, z=2))
