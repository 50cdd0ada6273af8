"""Passages kept with a question: in the prompt while it is the newest, and in the log for ever."""

from hypothesis import given
from hypothesis import strategies as st

from dialoom.conversation import CardEntry, Conversation, TextEntry, prompt
from dialoom.conversation.grounds import KEY, MAX_SOURCES, grounds_of
from dialoom.llm.messages import SourcePart, assistant, user


def asked(text: str, *passages: object) -> TextEntry:
    return TextEntry(role="user", content=text, meta={KEY: list(passages)})


FIRST = {"index": 1, "id": "doc#1", "title": "Warranty", "text": "Covered for 3 years."}
PART = SourcePart(index=1, id="doc#1", title="Warranty", text="Covered for 3 years.")


def test_the_newest_question_brings_its_passages_and_older_ones_do_not() -> None:
    entries = [
        asked("Old?", FIRST),
        TextEntry(role="assistant", content="3 years. [1]"),
        asked("New?", FIRST),
    ]
    assert prompt(entries) == (user("Old?"), assistant("3 years. [1]"), user("New?", sources=(PART,)))


def test_passages_are_kept_with_the_log_through_its_file() -> None:
    conversation = Conversation()
    conversation.append(asked("New?", {**FIRST, "score": 0.5, "url": "https://example.org"}))
    again = Conversation.from_yaml(conversation.to_yaml())
    assert again.entries == conversation.entries
    assert grounds_of(again.entries[0]) == (PART,)


def test_only_a_users_text_has_passages_and_only_so_many() -> None:
    said = TextEntry(role="assistant", content="x", meta={KEY: [FIRST]})
    assert grounds_of(said) == grounds_of(CardEntry(type="Table", payload="")) == ()
    assert grounds_of(TextEntry(role="user", content="x", meta={KEY: "no list"})) == ()
    assert len(grounds_of(asked("x", *[FIRST] * 500))) == MAX_SOURCES


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(passages=st.lists(plain | st.just(FIRST), max_size=6))
def test_whatever_a_file_holds_what_can_be_read_is(passages: list[object]) -> None:
    assert grounds_of(asked("x", *passages)) == (PART,) * passages.count(FIRST)
