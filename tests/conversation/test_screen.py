"""The view for people: every text and card once, in order, at its newest."""

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.conversation import (
    CardEntry,
    Conversation,
    Entry,
    Screen,
    ShownCard,
    ShownText,
    TextEntry,
    screen,
)
from dialoom.conversation.cards import (
    DEFAULT_CARDS,
    Form,
    FormDefinition,
    FormField,
    FormRegistry,
    LockedForm,
    Table,
    UnknownCard,
    WorkflowStatus,
)
from tests.conversation.strategies import ENTRIES


def said(text: str, role: str = "user") -> TextEntry:
    return TextEntry(role=role, content=text)


@pytest.mark.promise(
    "conversation-002",
    "conversation-018",
    "conversation-019",
    "conversation-020",
    "conversation-021",
    "conversation-022",
)
def test_people_see_texts_and_cards_in_order_without_system_texts_and_the_last_marked() -> None:
    table = Table(title="Wells", column_names=("x", "y"))
    entries = [
        said("guide", "system"),
        said("show the wells"),
        said("here", "assistant"),
        DEFAULT_CARDS.encode(table),
        TextEntry(role="tool", content="3 rows", tool_call_id="1"),
    ]
    assert screen(entries) == (
        ShownText(index=1, author="user", entry=entries[1]),
        ShownText(index=2, author="ai", entry=entries[2]),
        ShownCard(index=3, updated_index=3, author="ai", card=table),
        ShownText(index=4, author="tool", entry=entries[4], is_last=True),
    )
    shown = screen(entries)[2]
    assert isinstance(shown, ShownCard)
    assert shown.type == "Table"
    assert screen(entries)[1].content == "here"
    assert screen([]) == ()


@pytest.mark.promise("conversation-024")
def test_a_prefix_in_a_text_is_only_text() -> None:
    entry = said("[FORM]:type: Form\nformId: f\n", "assistant")
    assert screen([entry]) == (ShownText(index=0, author="ai", entry=entry, is_last=True),)


@pytest.mark.promise("conversation-023")
@settings(max_examples=60, deadline=None)
@given(st.lists(ENTRIES, max_size=12))
def test_a_screen_that_grows_shows_what_a_screen_built_anew_shows(entries: list[Entry]) -> None:
    growing = Screen()
    for count, entry in enumerate(entries, start=1):
        growing.add(entry)
        assert growing.items == screen(entries[:count])
    conversation = Conversation()
    conversation.load_from_entries(entries)
    assert screen(Conversation.from_yaml(conversation.to_yaml()).entries) == growing.items


def test_a_card_is_shown_once_where_it_first_stood_as_it_is_now() -> None:
    first = WorkflowStatus(id="run", title="Grid", steps=({"id": "load", "status": "running"},))
    newest = WorkflowStatus(id="run", title="Grid", steps=({"id": "load", "status": "done"},))
    other = Table(id="t", title="Rows")
    entries = [DEFAULT_CARDS.encode(first), said("and?"), DEFAULT_CARDS.encode(newest)]
    assert screen(entries) == (
        ShownCard(index=0, updated_index=2, card=newest),
        ShownText(index=1, author="user", entry=said("and?"), is_last=True),
    )
    assert [item.index for item in screen([*entries, DEFAULT_CARDS.encode(other)])] == [0, 1, 3]


def test_cards_without_an_id_are_each_their_own() -> None:
    table = DEFAULT_CARDS.encode(Table(title="Rows"))
    assert [item.index for item in screen([table, table])] == [0, 1]


@pytest.mark.promise("cards-033", "cards-034")
def test_a_card_nobody_can_read_is_a_placeholder_and_one_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = CardEntry(type="Table", payload="type: Table\nid: t\nrows: secret words\n")
    strange = CardEntry(type="Hologram", payload="type: Hologram\n")
    with caplog.at_level(logging.WARNING, "dialoom.conversation"):
        shown = screen([said("hi"), broken, strange])
    assert shown[1:] == (
        ShownCard(
            index=1,
            updated_index=1,
            card=UnknownCard(
                type="Table", payload=broken.payload, reason="rows: Input should be a valid tuple", id="t"
            ),
        ),
        ShownCard(
            index=2,
            updated_index=2,
            card=UnknownCard(
                type="Hologram",
                payload=strange.payload,
                reason="card type 'Hologram' is not known here; install what brings it",
            ),
            is_last=True,
        ),
    )
    assert [record.getMessage() for record in caplog.records] == ["card shown as a placeholder"] * 2
    assert "secret words" not in caplog.text
    assert all(item.card.locked for item in shown[1:])
    assert [DEFAULT_CARDS.encode(item.card) for item in shown[1:]] == [broken, strange]


@pytest.mark.promise("cards-019", "cards-032")
def test_a_form_is_shown_as_its_definition_asks_it_today_and_locked_when_that_is_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = FormDefinition(form_id="grid", title="Grid", fields=(FormField(id="cell", type="number"),))
    entry = DEFAULT_CARDS.encode(asked.card({"cell": 25}, card_id="f1"))
    today = FormDefinition(
        form_id="grid",
        title="Gridding",
        fields=(FormField(id="cell", type="number", min=1), FormField(id="method")),
        submit_label="Run",
    )
    (shown,) = screen([entry], forms=FormRegistry(today))
    assert isinstance(shown, ShownCard)
    assert shown.card == Form(
        id="f1",
        form_id="grid",
        title="Gridding",
        fields=(FormField(id="cell", type="number", min=1, current_value=25), FormField(id="method")),
        submit_label="Run",
    )
    (gone,) = screen([entry], forms=FormRegistry())
    assert isinstance(gone, ShownCard)
    assert isinstance(gone.card, LockedForm)
    assert gone.card.locked
    assert [record.getMessage() for record in caplog.records] == ["card shown as a placeholder"]
    assert gone.card.stored() == asked.card({"cell": 25}, card_id="f1").stored()
