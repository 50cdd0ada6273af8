"""Citations numbered in the order in which they come."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dialoom.rag import parse_citations
from dialoom.rag.renumber import CitationNumbers


def shown(answer: str, sources: int = 9) -> tuple[str, list[int]]:
    numbers = CitationNumbers(sources)
    return numbers.feed(answer) + numbers.close(), numbers.order


@pytest.mark.parametrize(
    ("answer", "said", "order"),
    [
        ("Three days [3], by card [1], as said [3].", "Three days [1], by card [2], as said [1].", [3, 1]),
        ("In order [1] and [2, 3].", "In order [1] and [2, 3].", [1, 2, 3]),
        ("A range [4-6] and [5].", "A range [1, 2, 3] and [2].", [4, 5, 6]),
        ("见【3、1】和［２］，[来源 1]", "见【1、2】和［3］，[来源 2]", [3, 1, 2]),
        ("A[^2] 【4†the file of fees for lamps.pdf】", "A[^1] 【2†the file of fees for lamps.pdf】", [2, 4]),
        ("[3](https://a.example) and \\[3] and [3].", "[3](https://a.example) and \\[3] and [1].", [3]),
        ("`a[2]` and ``b`[2]`` but [2], [2024], [x]", "`a[2]` and ``b`[2]`` but [1], [2024], [x]", [2]),
        ("a lone ` tick [2]\n[3]", "a lone ` tick [1]\n[2]", [2, 3]),
        ("```c\na[2];\n```\n[2]\n~~~\n[3]\n~~~~\n[3]", "```c\na[2];\n```\n[1]\n~~~\n[3]\n~~~~\n[2]", [2, 3]),
        ("```no fence``` [2]", "```no fence``` [1]", [2]),
        ("[12, 3] and [12]", "[1] and [12]", [3]),
        ("[2][", "[1][", [2]),
        ("[2] [3", "[1] [3", [2]),
        ("", "", []),
    ],
)  # fmt: skip
def test_the_first_source_cited_is_1(answer: str, said: str, order: list[int]) -> None:
    assert shown(answer) == (said, order)


def test_what_cannot_become_a_citation_is_shown_at_once() -> None:
    numbers = CitationNumbers(9)
    deltas = ["See [", "3", "]", " and [x", "] or [", "so", "me, `", "c[4]", "` ", "**"]
    assert [numbers.feed(delta) for delta in deltas] == [
        *("See ", "", "", "[1] and [x", "] or ", "", "[some, ", "", "`c[4]` ", "**"),
    ]  # fmt: skip
    assert numbers.close() == ""


def test_a_line_that_begins_with_code_is_shown_as_it_comes_unless_it_can_open_a_fence() -> None:
    numbers = CitationNumbers(9)
    deltas = ["`a` is", " [2]", " and\n``b`` is", "\n```c` is", " said\n"]
    assert [numbers.feed(delta) for delta in deltas] == [
        *("`a` is", " ", "[1] and\n``b`` is", "\n", "```c` is said\n"),
    ]  # fmt: skip


def test_open_code_is_not_held_for_ever() -> None:
    numbers = CitationNumbers(9)
    assert numbers.feed("` " + "x" * 390) == ""
    assert numbers.feed("x" * 20 + " [2] ").endswith(" [1] ")
    fence = CitationNumbers(9)
    assert fence.feed("```" + "x" * 300) == ""
    assert len(fence.feed("x" * 200)) == 503


PIECES = st.sampled_from(
    [
        "[1]",
        "[3, 2]",
        "【4】",
        "[",
        "]",
        "`",
        "``",
        "```",
        "~~~",
        "\n",
        "(",
        " ",
        "a",
        "\\",
        "2",
        "-3",
        "［３］",
        "†",
    ]
)


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=30), st.integers(1, 8))
@example(["```", "a", "`", "[3, 2]"], 2)
@example(["~~~\n~~~ ", "a\n[3, 2]"], 8)
@example(["```\n    ", "```\n[3, 2]"], 8)
def test_any_cut_into_deltas_gives_the_same_numbers_in_order(pieces: list[str], size: int) -> None:
    answer = "".join(pieces)
    numbers = CitationNumbers(4)
    streamed = [numbers.feed(answer[start : start + size]) for start in range(0, len(answer), size)]
    said = "".join(streamed) + numbers.close()
    assert (said, numbers.order) == shown(answer, 4)
    assert parse_citations(said, 4) == list(range(1, len(numbers.order) + 1))
