"""Cards in the terminal: asked line by line, and what was typed is what the run is told."""

from collections.abc import Iterator

import pytest

from dialoom.cli.chat_cards import Act, Ask, ask_card
from dialoom.conversation.cards import DEFAULT_CARDS, Form, FormField, Table
from dialoom.dialog import Center, Dialog
from dialoom.llm import MockProvider
from tests.dialog.talk import center_of, finished, refund, soon


def typing(*lines: str) -> tuple[Ask, list[str]]:
    """Return what answers each question with the next line, and the questions."""
    asked: list[str] = []
    given: Iterator[str] = iter(lines)

    def ask(question: str) -> str | None:
        asked.append(question)
        return next(given, None)

    return ask, asked


@pytest.mark.parametrize(("line", "approved"), [("y", True), ("Yes", True), ("", False), ("no", False)])
async def test_an_approval_is_a_yes_or_a_no(line: str, approved: bool) -> None:
    mock = MockProvider().queue_tool_call("c1", "refund", {"order": 9}).queue_text("Done.")
    dialog = center_of(mock, refund).new_dialog()
    (card_id,) = (await soon(dialog.send("refund 9"))).waiting
    ask, asked = typing(line)
    answers = ask_card(dialog, card_id, ask)
    assert answers == ("decide", {"approved": approved})
    assert asked == ['refund wants to run with {"order":9}. Allow it? [y/N] ']
    await finished(dialog.answer(card_id, *answers))


FIELDS = (
    FormField(id="name", label="Name"),
    FormField(id="cell", label="Cell size", type="integer"),
    FormField(id="fine", type="bool"),
    FormField(id="layers", type="multiselect", options=("a", "b")),
)


def with_card(card: Form | Table) -> Dialog:
    return Center().new_dialog().append_message(DEFAULT_CARDS.encode(card))


def test_a_form_is_asked_field_by_field(capsys: pytest.CaptureFixture[str]) -> None:
    dialog = with_card(Form(id="f", title="Grid", inline=True, fields=FIELDS, error="the cell is too wide"))
    ask, asked = typing("Ada", "25", "true", "a, b")
    told: Act = ("submit", {"values": {"name": "Ada", "cell": 25, "fine": True, "layers": ["a", "b"]}})
    assert ask_card(dialog, "f", ask) == told
    assert asked == ["Name: ", "Cell size: ", "fine: ", "layers: "]
    assert capsys.readouterr().err == "Grid\ndialoom: the cell is too wide\n"
    assert dialog.act("f", *told).status == "submitted"


def test_what_is_left_empty_is_left_out_and_what_does_not_fit_is_for_the_form_to_refuse() -> None:
    dialog = with_card(Form(id="f", inline=True, fields=FIELDS))
    ask, _ = typing("", "wide", "", "")
    assert ask_card(dialog, "f", ask) == ("submit", {"values": {"cell": "wide"}})


def test_without_an_answer_the_card_waits() -> None:
    dialog = with_card(Form(id="f", inline=True, fields=FIELDS))
    ask, _ = typing("Ada")
    assert ask_card(dialog, "f", ask) is None


def test_a_card_of_another_kind_names_the_place_to_answer_it(capsys: pytest.CaptureFixture[str]) -> None:
    ask, _ = typing()
    assert ask_card(with_card(Table(id="t")), "t", ask) is None
    assert ask_card(with_card(Table(id="t")), "u", ask) is None
    assert "open it in the workbench: dialoom serve" in capsys.readouterr().err
