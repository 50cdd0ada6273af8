"""Text that arrives in pieces: think tags and halves of characters, however they are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.llm import ReasoningDelta, TextDelta
from dialoom.llm.surrogates import SurrogateJoiner
from dialoom.llm.think_tags import ThinkTagSplitter

TAGS = ("<think>", "</think>")


def split(pieces: list[str]) -> tuple[str, str]:
    """Return (text, reasoning) of an answer that came in `pieces`."""
    splitter = ThinkTagSplitter(TAGS)
    events = [event for piece in pieces for event in splitter.feed(piece)] + splitter.finish()
    assert all(event.text for event in events)
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return text, "".join(event.text for event in events if isinstance(event, ReasoningDelta))


@pytest.mark.parametrize(
    ("answer", "text", "reasoning"),
    [
        ("<think>plan</think>yes", "yes", "plan"),
        ("no tags at all", "no tags at all", ""),
        ("a < b <thin", "a < b <thin", ""),
        ("<think>never closed </thi", "", "never closed </thi"),
        ("<think></think>", "", ""),
        ("one<think>two</think>three<think>four</think>", "onethree", "twofour"),
        ("</think> alone", "</think> alone", ""),
        ("<<think>x</</think>y", "<y", "x</"),
    ],
)
def test_reasoning_is_told_apart_however_the_answer_is_cut(answer: str, text: str, reasoning: str) -> None:
    for pieces in ([answer], list(answer), [answer[:3], answer[3:9], "", answer[9:]]):
        assert split(pieces) == (text, reasoning)


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<", "a", "</thi", "think>", "中"])).map("".join),
    st.lists(st.integers(0, 60)),
)
def test_cutting_never_changes_what_is_text_and_what_is_reasoning(answer: str, cuts: list[int]) -> None:
    edges = sorted({0, len(answer), *(cut for cut in cuts if cut < len(answer))})
    pieces = [answer[start:end] for start, end in pairwise(edges)]
    assert split(pieces) == split([answer])


def test_only_what_may_begin_a_tag_is_held_back() -> None:
    splitter = ThinkTagSplitter(TAGS)
    assert splitter.feed("Hello <t") == [TextDelta("Hello ")]
    assert splitter.feed("able>") == [TextDelta("<table>")]


@given(
    st.text(st.characters() | st.sampled_from(["\ud83d", "\ude00", "\udbff", "\udc00"]), max_size=12),
    st.data(),
)
def test_halves_of_a_character_meet_again(text: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(text)))
    joiner = SurrogateJoiner()
    joined = joiner.feed(text[:cut]) + joiner.feed(text[cut:]) + joiner.finish()
    assert joined == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert joiner.finish() == ""
