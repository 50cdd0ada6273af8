"""What a search finds: words by their beginnings, in any case, and any part of a Chinese text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.conversation.search import parse_query, words
from tests.conversation.strategies import TEXTS

SENTENCE = "用克里金法把井位数据网格化再画等值线图"


def test_words_are_folded_and_scripts_without_spaces_cut_into_pairs() -> None:
    assert words("Kriging, ＦＵＬＬ cafe\u0301 snake_case 25m²") == [
        *("kriging", "full", "café", "snake_case", "25m2"),
    ]
    assert words("用克里金法 ok") == ["用克", "克里", "里金", "金法", "法", "ok"]
    assert words("x网y") == ["x", "网", "y"]
    assert words("a" * 100) == ["a" * 64]
    assert words("👩‍🔬 — !") == []


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("Wells  MAP", (("wells",), ("map",))),
        ("克里金", (("克里", "里金"),)),
        ("网", (("网",),)),
        ("25米网", (("25",), ("米网",))),
        ("!", ()),
    ],
)
def test_a_query_is_read_as_terms(query: str, terms: tuple[tuple[str, ...], ...]) -> None:
    parsed = parse_query(query)
    assert parsed is not None
    assert parsed.terms == terms


def test_a_blank_query_asks_for_everything() -> None:
    assert parse_query("") is parse_query(" \n\t") is None


def test_a_query_without_words_matches_nothing() -> None:
    parsed = parse_query("?!")
    assert parsed is not None
    assert not parsed.matches("?! anything")


def test_a_query_has_bounds() -> None:
    with pytest.raises(UsageError, match=r"^a search of 1001 characters is too long; use at most 1000$"):
        parse_query("x" * 1001)
    with pytest.raises(UsageError, match=r"^a search for 33 words is too long; use at most 32$"):
        parse_query("x " * 33)


@given(TEXTS, st.integers(0, len(SENTENCE) - 1), st.integers(1, len(SENTENCE)))
def test_any_part_of_a_chinese_text_is_found(before: str, start: int, length: int) -> None:
    parsed = parse_query(SENTENCE[start : start + length])
    assert parsed is not None
    assert parsed.matches(f"{before} {SENTENCE}")
