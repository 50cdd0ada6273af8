"""Cards that tools show: whatever form they come in, people can act on them."""

from typing import ClassVar

import pytest

from dialoom.conversation import CardEntry, TextEntry, dump_yaml, load_yaml
from dialoom.conversation.cards import (
    Card,
    CardRegistry,
    CardType,
    Form,
    FormField,
    Parameter,
    ParameterSet,
    Table,
    UnknownCard,
    builtin_cards,
)
from dialoom.dialog import Center, Dialog
from dialoom.llm import MockProvider
from dialoom.tools import ToolResult, tool
from tests.dialog.talk import call, cards, finished

CELL = ParameterSet(title="Grid", items=(Parameter(name="cell", value_text="25", field_type="number"),))


class Weather(Card):
    """A type whose payload changed once: version 1 knew degrees as `temperature`."""

    type: ClassVar[str] = "Weather"

    celsius: float


WEATHER = CardType(model=Weather, latest=2, upcasters={1: lambda old: {"celsius": old.get("temperature")}})


async def shown(*given: object, registry: CardRegistry | None = None) -> tuple[Center, Dialog]:
    """Have a tool show each of `given`, all in one round; return the dialog with its center."""

    @tool
    async def show(at: int) -> ToolResult:
        """Show a card."""
        return ToolResult(content="ok", card=given[at])

    calls = [call(f"c{at}", "show", at=at) for at in range(len(given))]
    mock = MockProvider().queue_tool_calls(*calls).queue_text("done")
    center = Center(cards=registry).add_provider(mock).add_tool(show)
    dialog = center.new_dialog()
    await finished(dialog.send("go"))
    return center, dialog


async def test_a_card_without_an_id_can_be_acted_on_all_the_same() -> None:
    as_text = CardEntry(type="ParameterSet", payload="items:\n- name: cell\n  valueText: '25'\n")
    _, dialog = await shown(CELL, {"type": "ParameterSet", **CELL.stored()}, as_text)
    ids = [entry.card_id for entry in cards(dialog.messages)]
    assert len(set(ids)) == 3
    for card_id in ids:
        changed = dialog.act(card_id or "", "apply", {"values": {"cell": "50"}})
        assert isinstance(changed, ParameterSet)
        assert (changed.id, changed.items[0].value_text) == (card_id, "50")


async def test_a_card_is_kept_in_the_words_of_its_type_and_with_the_id_it_has() -> None:
    _, dialog = await shown(Table(id="wells", column_names=("a",), rows=(("1",),)))
    (entry,) = cards(dialog.messages)
    assert load_yaml(entry.payload) == {
        "type": "Table",
        "id": "wells",
        "title": "",
        "columnNames": ["a"],
        "columns": [],
        "rows": [["1"]],
    }


async def test_what_a_secret_field_of_a_shown_form_holds_is_not_kept() -> None:
    fields = [{"id": "key", "type": "secret", "currentValue": "s3cret"}]
    form = {"type": "Form", "inline": True, "fields": fields, "submittedValues": {"key": "s3cret"}}
    center, dialog = await shown(form, Form(inline=True, fields=(FormField(id="key"),)))
    first, second = cards(dialog.messages)
    assert "s3cret" not in first.payload
    kept = center.cards.decode_entry(second)
    assert isinstance(kept, Form)
    assert kept.fields == (FormField(id="key"),)


async def test_a_form_that_cannot_be_read_is_kept_without_what_its_secret_fields_hold() -> None:
    fields = [{"id": "key", "type": "secret", "default": "s3cret"}, {"id": "n", "type": "odd", "default": 1}]
    form = {"type": "Form", "inline": True, "fields": fields, "values": {"key": "s3cret", "n": 2}}
    payload = dump_yaml({key: value for key, value in form.items() if key != "type"})
    _, dialog = await shown(form, CardEntry(type="Form", payload=payload))
    for entry in cards(dialog.messages):
        kept = load_yaml(entry.payload)
        assert isinstance(kept, dict)
        assert kept["fields"] == [{"id": "key", "type": "secret"}, fields[1]]
        assert kept["values"] == {"n": 2}


async def test_a_card_that_is_shown_is_of_the_newest_version_unless_it_says_otherwise() -> None:
    registry = builtin_cards()
    registry.register(WEATHER)
    old = {"type": "Weather", "v": 1, "temperature": 3}
    _, dialog = await shown(Weather(celsius=2), old, {"type": "Weather"}, registry=registry)
    new, upcast, wrong = (registry.decode_entry(entry) for entry in cards(dialog.messages))
    assert isinstance(new, Weather)
    assert isinstance(upcast, Weather)
    assert (new.celsius, upcast.celsius) == (2, 3)
    assert isinstance(wrong, UnknownCard)
    assert wrong.reason == "celsius: Input should be a valid number"


@pytest.mark.parametrize(
    "odd", ["text", {"no": "type"}, {"kind": "Special"}, {"kind": "Text", "role": "user"}]
)
async def test_what_is_no_card_is_left_out(odd: object) -> None:
    _, dialog = await shown(odd)
    assert all(isinstance(entry, TextEntry) for entry in dialog.messages)


async def test_a_card_of_a_type_that_nobody_knows_is_kept_as_it_came() -> None:
    broken = "title: [seen"
    _, dialog = await shown(
        {"type": "Note", "title": "seen", "id": "n1"},
        CardEntry(type="Note", payload="id: n2\ntitle: seen"),
        CardEntry(type="Note", payload=broken),
        CardEntry(type="Note", payload="- a list"),
    )
    assert [entry.payload for entry in cards(dialog.messages)] == [
        "type: Note\nid: n1\ntitle: seen\n",
        "id: n2\ntitle: seen",
        broken,
        "- a list",
    ]
