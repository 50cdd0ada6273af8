"""The log: records only ever added, folded to what is visible."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.conversation import Append, Conversation, Entry, Record, TextEntry, Truncate, fold
from tests.conversation.strategies import RECORDS


def said(text: str) -> TextEntry:
    return TextEntry(role="user", content=text)


@pytest.mark.promise("conversation-001", "conversation-007", "conversation-009")
def test_entries_stand_in_the_order_they_were_written() -> None:
    assert fold([Append(said("a")), Append(said("b")), Append(said("c"))]) == (
        said("a"),
        said("b"),
        said("c"),
    )


def test_a_truncation_hides_what_came_before_it_only() -> None:
    records = [Append(said("a")), Append(said("b")), Truncate(1), Append(said("c"))]
    assert fold(records) == (said("a"), said("c"))


def test_a_delivery_made_twice_is_there_once_even_after_truncation() -> None:
    once = Append(said("a"), "run/1/0")
    assert fold([once, once]) == (said("a"),)
    assert fold([once, Truncate(0), once]) == ()
    assert fold([Append(said("a"), "k\ud800"), Append(said("b"), "k\ufffd")]) == (said("a"),)


def test_a_truncation_below_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot keep -1 entries"):
        Truncate(-1)


@settings(max_examples=200, deadline=None)
@given(st.lists(RECORDS, max_size=30))
def test_folding_is_what_a_plain_list_would_do(records: list[Record]) -> None:
    visible: list[Entry] = []
    seen: set[str] = set()
    for record in records:
        match record:
            case Truncate(keep=keep):
                visible = visible[:keep]
            case Append(entry=entry, key=key) if key is None or key not in seen:
                visible.append(entry)
                seen.add(key or "")
            case Append():
                pass
    assert fold(records) == tuple(visible)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Append("hi"), "a TextEntry or CardEntry is appended, and this is str"),
        (lambda: Append(said("a"), key=5), "the key of an Append is text, and this is int"),
        (lambda: Truncate("1"), "a conversation cannot keep '1' entries; give 0 or more"),
        (lambda: Conversation().append("hi"), "a TextEntry or CardEntry is appended, and this is str"),
        (lambda: Conversation(records=[said("a")]), "a log holds Append and Truncate, and this is TextEntry"),
    ],
)
def test_what_could_not_be_read_back_comes_into_no_log(make: Callable[[], object], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        make()
