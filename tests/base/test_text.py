"""Text is made safe to store, send and show."""

from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.text import one_line, printable, replace_surrogates

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=60)


def test_halves_of_a_pair_are_joined_and_lone_ones_replaced() -> None:
    assert replace_surrogates("a\ud83d\ude00b\ud83dc") == "a😀b�c"


@given(ANY_TEXT)
def test_any_text_becomes_utf_8_and_stays_so(text: str) -> None:
    safe = replace_surrogates(text)
    safe.encode("utf-8")
    assert replace_surrogates(safe) == safe


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=60))
def test_sound_text_is_left_alone(text: str) -> None:
    assert replace_surrogates(text) is text


def test_a_message_for_people_is_one_short_printable_line() -> None:
    assert one_line("refused\r\n\tby \x1b[31mhost") == "refused by  [31mhost"
    assert one_line("x" * 300, limit=10) == "xxxxxxxxx…"
    assert one_line(" \n " * 300 + "y", limit=10).endswith("…")


@given(ANY_TEXT, st.integers(min_value=1, max_value=30))
def test_one_line_never_grows_past_its_limit(text: str, limit: int) -> None:
    assert len(one_line(text, limit)) <= limit


def test_text_from_outside_cannot_steer_a_terminal() -> None:
    assert printable("a\tb\n\x1b]0;title\x07\x1b[2J\x9bc\ud83d") == "a\tb\n]0;title[2Jc\ufffd"
