"""Citations in answers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.rag.cite import CitationParser, parse_citations


@pytest.mark.parametrize(
    ("answer", "cited"),
    [
        ("Refunds take 3 days [1]. See also [2].", [1, 2]),
        ("[2] and [2] then [1]", [2, 1]),
        ("It works [1,2] and [1; 3].", [1, 2, 3]),
        ("Fact[1][2][3].", [1, 2, 3]),
        ("As in [2-4] and [1–2].", [2, 3, 4, 1]),
        ("退款需要三天【1】，见【2、3】。", [1, 2, 3]),
        ("见［１］和[来源 2]，[Source 3], [Sources 1, 4]", [1, 2, 3, 4]),
        ("As stated[^1] and [^2].", [1, 2]),
        ("Refund【1†source】 policy【2†a long file name.pdf】", [1, 2]),
        ("See [4] and [0] and [1].", [4, 1]),
        ("In [2024] it changed [1], [9-3], [x], [], [1a], [1.5].", [1]),
        ("All of it [1-999999].", [1, 2, 3, 4]),
        ("A [1](https://example.com) link and an escaped \\[2] one [3].", [3]),
        ("Use [1].\n```c\na[2] = b[3];\n```\nand `x[2]` or ``y`[3]``.", [1]),
        ("~~~\n[1]\n```\n[2]\n~~~~\n[3]", [3]),
        ("```\nnever closed [1]", []),
        ("an unclosed ` tick [1] on a line\n[2]", [1, 2]),
        ("```not a fence``` [1]", [1]),
        ("`one` [1] ``two ` [2] `` [3] ` [4]", [1, 3, 4]),
        ("[1\n]", []),
        ("I do not know.", []),
        ("", []),
    ],
)
def test_the_numbers_cited(answer: str, cited: list[int]) -> None:
    assert parse_citations(answer, 4) == cited


def test_without_sources_nothing_is_cited() -> None:
    assert parse_citations("See [1].", 0) == []


def test_half_a_citation_is_never_shown() -> None:
    parser = CitationParser(12)
    shown = [parser.feed(delta) for delta in ["See ", "[", "1", "2", "]", ". End", " 【", "1"]]
    assert shown == ["See ", "", "", "", "[12]", ". End", " ", ""]
    assert parser.cited == [12]
    assert (parser.close(), parser.cited) == ("【1", [12])


def test_a_bracket_that_stays_open_is_not_held_for_long() -> None:
    parser = CitationParser(3)
    assert parser.feed("a [" + "x" * 23) == "a "
    assert parser.feed("x") == "[" + "x" * 24
    assert (parser.feed(" [1"), parser.feed("\n")) == (" ", "[1\n")


PIECES = st.sampled_from(
    [
        "[1]",
        "[2, 3]",
        "【1】",
        "[",
        "]",
        "`",
        "```",
        "\n",
        "(",
        " ",
        "a",
        "~~~",
        "\\",
        "1",
        "2-3",
        "［",
        "［１］",
    ]
)


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=30), st.integers(1, 7))
def test_any_cut_into_deltas_gives_the_same(pieces: list[str], size: int) -> None:
    answer = "".join(pieces)
    parser = CitationParser(3)
    shown = [parser.feed(answer[start : start + size]) for start in range(0, len(answer), size)]
    shown.append(parser.close())
    assert "".join(shown) == answer
    assert parser.cited == parse_citations(answer, 3)
    assert set(parser.cited) <= {1, 2, 3}
