"""The view for models: texts as they were, cards as one short note, whole turns within limits."""

import logging
from collections.abc import Sequence
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.conversation import CardEntry, Conversation, Entry, PromptLimits, TextEntry, prompt, screen
from dialoom.conversation.cards import (
    DEFAULT_CARDS,
    Card,
    CardRegistry,
    Form,
    FormField,
    ParameterSet,
    Table,
    UnknownCard,
    WorkflowStatus,
)
from dialoom.llm.messages import Message, ToolCall, assistant, system, tool_result, user
from tests.conversation.strategies import ENTRIES


def said(text: str, role: str = "user") -> TextEntry:
    return TextEntry(role=role, content=text)


def call(call_id: str) -> ToolCall:
    return ToolCall(id=call_id, name="grid", arguments={"cell": 25}, raw='{"cell": 25}')


def calling(*ids: str) -> TextEntry:
    return TextEntry(role="assistant", content="", tool_calls=tuple(call(each) for each in ids))


def answer(call_id: str) -> TextEntry:
    return TextEntry(role="tool", content=f"result {call_id}", tool_call_id=call_id, tool_name="grid")


def result(call_id: str) -> Message:
    return tool_result(call_id, f"result {call_id}", name="grid")


@pytest.mark.promise("conversation-003", "conversation-004", "conversation-025", "conversation-027")
def test_texts_are_taken_over_unchanged_and_in_order() -> None:
    entries = (said(" 你好\r\n"), said("hi", "assistant"), said("type: Form\nformId: f"))
    expected = (user(" 你好\r\n"), assistant("hi"), user("type: Form\nformId: f"))
    assert prompt(entries) == expected
    assert prompt(entries) is not prompt(entries)


@pytest.mark.promise(
    "conversation-026", "conversation-028", "conversation-029", "conversation-030", "conversation-033"
)
def test_a_guide_is_the_one_system_message_and_stays_out_of_the_log() -> None:
    form = DEFAULT_CARDS.encode(Form(form_id="grid", title="Grid", fields=(FormField(id="cell"),)))
    entries = (said("stored guide", "system"), said("hi"), form)
    assert prompt(entries, system="guide") == (
        system("guide"),
        user("hi"),
        assistant("[shown form: Grid]"),
    )
    assert prompt(entries) == (system("stored guide"), user("hi"), assistant("[shown form: Grid]"))
    assert said("guide", "system") not in entries


def test_reasoning_and_empty_answers_are_left_out() -> None:
    entries = (
        said("hi"),
        TextEntry(role="assistant", content="", reasoning="hm", status="cancelled"),
        TextEntry(role="assistant", content="Hel", reasoning="greet", status="cancelled"),
        said("", "system"),
        TextEntry(role="tool", content="answers nobody"),
    )
    assert prompt(entries) == (user("hi"), assistant("Hel"))


@pytest.mark.promise("conversation-032", "cards-035")
def test_a_card_is_one_short_note_in_its_own_language() -> None:
    form = Form(
        form_id="grid",
        title="网格参数",
        fields=(FormField(id="cell", type="number"), FormField(id="key", type="secret")),
    )
    sent = form.submit({"cell": 25, "key": "hunter2"})
    wells = Table.preview(("x", "y"), [(1, 2)] * 3, title="Wells")
    assert prompt([DEFAULT_CARDS.encode(form)]) == (assistant("[已展示表单：网格参数]"),)
    assert prompt([DEFAULT_CARDS.encode(sent)]) == (assistant("[表单“网格参数”已提交：cell=25]"),)
    assert prompt([DEFAULT_CARDS.encode(wells)]) == (assistant("[shown table: Wells (3 × x, y)]"),)


@pytest.mark.promise("conversation-031")
@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300), st.text(max_size=300))
def test_a_note_is_one_line_of_at_most_200_characters_and_never_yaml(title: str, value: str) -> None:
    card = ParameterSet(title=title, items=({"name": "cell", "valueText": value},) * 30)
    entry = DEFAULT_CARDS.encode(card)
    (message,) = prompt([entry])
    assert len(message.text) <= 200
    assert "\n" not in message.text
    assert message.text[0] + message.text[-1] == "[]"
    assert "valueText" not in message.text


def test_a_card_that_cannot_be_read_gives_a_note_too() -> None:
    broken = CardEntry(type="Nobody\nknows", payload="secret: yaml")
    assert prompt([broken]) == (assistant("[a card of type Nobody knows that cannot be shown]"),)
    assert UnknownCard(type="X", payload="", reason="").note("zh") == "[无法显示的卡片：X]"


def test_a_card_of_others_whose_note_fails_still_gives_one(caplog: pytest.LogCaptureFixture) -> None:
    class Faulty(Card):
        type: ClassVar[str] = "Faulty"

        def note(self, lang: str) -> str:
            raise RuntimeError("no words")

    class Long(Card):
        type: ClassVar[str] = "Long"

        def note(self, lang: str) -> str:
            return "word\n" * 100

    registry = CardRegistry()
    registry.register(Faulty)
    registry.register(Long)
    entries = [registry.encode(Faulty()), registry.encode(Long())]
    with caplog.at_level(logging.ERROR, "dialoom.conversation"):
        faulty, long = prompt(entries, registry=registry)
    assert faulty == assistant("[shown Faulty]")
    assert (len(long.text), long.text.count("\n")) == (200, 0)
    assert caplog.records[0].getMessage() == "card note failed"


def test_a_card_is_told_once_where_it_changed_last() -> None:
    form = Form(id="f", form_id="grid", title="Grid", fields=(FormField(id="cell", type="number"),))
    entries = [
        said("grid it"),
        DEFAULT_CARDS.encode(form),
        said("which cell?"),
        said("25 is usual", "assistant"),
        DEFAULT_CARDS.encode(form.submit({"cell": 25})),
    ]
    assert prompt(entries) == (
        user("grid it"),
        user("which cell?"),
        assistant("25 is usual"),
        assistant('[form "Grid" submitted: cell=25]'),
    )
    assert prompt(entries[:2]) == (user("grid it"), assistant("[shown form: Grid]"))


def test_results_follow_their_calls_at_once_and_notes_stand_behind() -> None:
    note = DEFAULT_CARDS.encode(WorkflowStatus(title="Run", steps=({"id": "a", "status": "done"},)))
    entries = [said("go"), calling("1", "2"), note, answer("1"), note, answer("2"), answer("1"), answer("9")]
    shown = assistant("[shown workflow: Run (1/1)]")
    assert prompt(entries) == (
        user("go"),
        assistant("", calls=(call("1"), call("2"))),
        result("1"),
        result("2"),
        shown,
        shown,
    )


def test_a_failed_tool_is_told_as_failed() -> None:
    failed = TextEntry(role="tool", content="boom", tool_call_id="1", is_error=True)
    assert prompt([calling("1"), failed])[1] == tool_result("1", "boom", is_error=True)


def turns() -> list[Entry]:
    return [
        said("guide", "system"),
        said("welcome", "assistant"),
        said("one"),
        calling("1"),
        answer("1"),
        said("done one", "assistant"),
        said("two"),
        said("done two", "assistant"),
        said("three"),
    ]


def test_limits_leave_out_whole_turns_oldest_first() -> None:
    everything = prompt(turns())
    assert [message.role for message in everything] == [
        *("system", "assistant", "user", "assistant", "tool", "assistant", "user", "assistant", "user")
    ]
    guide, last = everything[0], everything[-1]
    without_welcome = (guide, *everything[2:])
    two_turns = (guide, *everything[6:])
    for limits, expected in (
        (PromptLimits(), everything),
        (PromptLimits(max_turns=9), everything),
        (PromptLimits(max_turns=3), without_welcome),
        (PromptLimits(max_turns=1), (guide, last)),
        (PromptLimits(max_messages=9), everything),
        (PromptLimits(max_messages=8), without_welcome),
        (PromptLimits(max_messages=7), two_turns),
        (PromptLimits(max_messages=1), (guide, last)),
        (PromptLimits(max_chars=len("guide" + "two" + "done two" + "three")), two_turns),
        (PromptLimits(max_chars=1), (guide, last)),
    ):
        assert prompt(turns(), limits=limits) == expected
    assert prompt(turns(), system="be brief", limits=PromptLimits(max_turns=1)) == (system("be brief"), last)
    assert prompt([], limits=PromptLimits(max_turns=1)) == ()


def test_arguments_of_calls_count_as_characters() -> None:
    raw = TextEntry(role="assistant", content="", tool_calls=(ToolCall(id="1", name="g", raw="x" * 90),))
    parsed = TextEntry(
        role="assistant", content="", tool_calls=(ToolCall(id="1", name="g", arguments={"a": "x" * 90}),)
    )
    for entry in (raw, parsed):
        entries = [said("a"), entry, said("b")]
        assert prompt(entries, limits=PromptLimits(max_chars=90)) == (user("b"),)
        assert len(prompt(entries, limits=PromptLimits(max_chars=120))) == 3


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="max_turns is 0; give 1 or more, or None for no limit"):
        PromptLimits(max_turns=0)


LIMITS = st.none() | st.builds(
    PromptLimits,
    max_turns=st.none() | st.integers(1, 4),
    max_messages=st.none() | st.integers(1, 8),
    max_chars=st.none() | st.integers(1, 200),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(ENTRIES, max_size=15), LIMITS)
def test_no_limit_ever_splits_a_call_from_its_result(
    entries: list[Entry], limits: PromptLimits | None
) -> None:
    messages = prompt(entries, limits=limits)
    assert_results_stand_behind_their_calls(messages)
    whole = prompt(entries)
    guides = sum(message.role == "system" for message in whole)
    assert messages[:guides] == whole[:guides]
    tail = len(messages) - guides
    assert messages[guides:] == (whole[-tail:] if tail else ())
    assert tail == 0 or tail == len(whole) - guides or messages[guides].role == "user"
    assert not any(message.reasoning for message in messages)


def assert_results_stand_behind_their_calls(messages: Sequence[Message]) -> None:
    waiting: set[str] = set()
    for message in messages:
        for answered in message.tool_results:
            assert answered.call_id in waiting
            waiting.remove(answered.call_id)
        if message.role != "tool":
            waiting = {each.id for each in message.tool_calls}


@pytest.mark.promise("conversation-039", "conversation-040", "conversation-045")
def test_a_mix_of_texts_and_cards_gives_the_expected_screen_and_prompt() -> None:
    form = Form(id="f", form_id="grid", title="Grid", fields=(FormField(id="cell", type="number"),))
    table = Table(title="Grid", column_names=("x", "z"), rows=((1, 2.5),))
    conversation = Conversation()
    conversation.append(said("grid the wells"))
    for card in (form, form.submit({"cell": 25}), table):
        conversation.append(DEFAULT_CARDS.encode(card))
    conversation.append(said("Done.", "assistant"))
    entries = conversation.entries
    assert [entry.type for entry in entries if isinstance(entry, CardEntry)] == ["Form", "Form", "Table"]
    assert entries[3] == CardEntry(
        type="Table", payload=("type: Table\ntitle: Grid\ncolumnNames:\n- x\n- z\nrows:\n- - 1\n  - 2.5\n")
    )
    assert [type(item).__name__ for item in screen(entries)] == [
        *("ShownText", "ShownCard", "ShownCard", "ShownText")
    ]
    assert prompt(entries) == (
        user("grid the wells"),
        assistant('[form "Grid" submitted: cell=25]'),
        assistant("[shown table: Grid (1 × x, z)]"),
        assistant("Done."),
    )


class Counted(Card):
    type: ClassVar[str] = "Counted"
    read: ClassVar[list[str]] = []

    def details(self) -> str:
        self.read.append(self.title)
        return str(len(self.read))


def test_a_card_is_read_once_for_all_turns_until_a_type_is_registered() -> None:
    Counted.read.clear()
    cards = CardRegistry()
    cards.register(Counted)
    entries = [cards.encode(Counted(title=title)) for title in ("one", "two", "one")]
    first = prompt(entries, registry=cards)
    assert [message.text for message in first] == [
        "[shown Counted: one (1)]",
        "[shown Counted: two (2)]",
        "[shown Counted: one (1)]",
    ]
    assert prompt(entries, registry=cards) == first
    assert Counted.read == ["one", "two"]
    cards.register(Counted)
    prompt(entries[:1], registry=cards)
    assert Counted.read == ["one", "two", "one"]


def test_of_the_notes_that_were_read_the_newest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialoom.conversation.cards.registry.MAX_NOTES", 2)
    Counted.read.clear()
    cards = CardRegistry()
    cards.register(Counted)
    one, two, three = (cards.encode(Counted(title=title)) for title in ("one", "two", "three"))
    for each in (one, two, one, three, one, two):
        cards.note_of(each)
    assert Counted.read == ["one", "two", "three", "two"]
