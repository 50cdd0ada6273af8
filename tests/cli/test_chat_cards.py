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

    def ask(question: str, *, is_secret: bool = False) -> str | None:
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
    FormField(id="name", label="Name", required=True),
    FormField(id="cell", label="Cell size", type="integer", min=1, max=500, current_value=25),
    FormField(id="method", type="select", options=("idw", "kriging"), default="idw"),
    FormField(id="power", type="number", min=0.5, visible_if={"method": "idw"}),
    FormField(id="range", type="number", visible_if={"method": "kriging"}),
    FormField(id="fine", type="bool"),
    FormField(id="layers", type="multiselect", options=("a", "b")),
    FormField(id="since", type="date"),
)


def with_card(card: Form | Table) -> Dialog:
    return Center().new_dialog().append_message(DEFAULT_CARDS.encode(card))


def test_a_form_is_asked_field_by_field_and_says_what_each_takes(capsys: pytest.CaptureFixture[str]) -> None:
    dialog = with_card(Form(id="f", title="Grid", inline=True, fields=FIELDS, error="the cell is too wide"))
    ask, asked = typing("Ada", "", "", "2", "y", "a, b", "2026-11-30")
    told: Act = (
        "submit",
        {
            "values": {
                "name": "Ada",
                "cell": 25,
                "method": "idw",
                "power": 2,
                "fine": True,
                "layers": ["a", "b"],
                "since": "2026-11-30",
            }
        },
    )
    assert ask_card(dialog, "f", ask) == told
    assert asked == [
        "Name: ",
        "Cell size (1 or more, 500 or less) [25]: ",
        "method (idw, kriging) [idw]: ",
        "power (0.5 or more): ",
        "fine (y/n): ",
        "layers (a, b): ",
        "since (2026-11-30): ",
    ]
    assert capsys.readouterr().err == "Grid\ndialoom: the cell is too wide\n"
    assert dialog.act("f", *told).status == "submitted"


def test_an_answer_that_does_not_fit_is_asked_for_again(capsys: pytest.CaptureFixture[str]) -> None:
    held = FormField(id="layers", type="multiselect", options=("a", "b"), current_value=("a", "b"))
    dialog = with_card(Form(id="f", inline=True, fields=(*FIELDS[:2], FIELDS[5], held)))
    ask, asked = typing("", "Ada", "wide", "0", "7", "perhaps", "", "a, c", "")
    assert ask_card(dialog, "f", ask) == (
        "submit",
        {"values": {"name": "Ada", "cell": 7, "layers": ("a", "b")}},
    )
    assert capsys.readouterr().err.splitlines() == [
        "dialoom: Name: an answer is needed",
        "dialoom: Cell size: not a number",
        "dialoom: Cell size: less than 1",
        "dialoom: fine: not true or false",
        "dialoom: layers: not one of the options",
    ]
    assert asked[-1] == "layers (a, b) [a, b]: "


def test_without_an_answer_the_card_waits() -> None:
    dialog = with_card(Form(id="f", inline=True, fields=FIELDS))
    ask, _ = typing("Ada")
    assert ask_card(dialog, "f", ask) is None


def test_a_card_of_another_kind_names_the_place_to_answer_it(capsys: pytest.CaptureFixture[str]) -> None:
    ask, _ = typing()
    assert ask_card(with_card(Table(id="t")), "t", ask) is None
    assert ask_card(with_card(Table(id="t")), "u", ask) is None
    assert "open it in the workbench: dialoom serve" in capsys.readouterr().err
