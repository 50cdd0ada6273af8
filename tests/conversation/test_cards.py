"""The card registry: one codec for all types, unknown things kept, new types in a few lines."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import model_validator

from dialoom.base.errors import UsageError
from dialoom.conversation import CardEntry, Conversation, ShownCard, screen
from dialoom.conversation.cards import (
    BUILTIN_CARDS,
    DEFAULT_CARDS,
    Card,
    CardInput,
    CardRegistry,
    CardType,
    Form,
    FormRegistry,
    ParameterSet,
    Table,
    UnknownCard,
    builtin_cards,
)
from dialoom.conversation.yaml_text import dump_yaml
from tests.conversation.strategies import VALUES


class Weather(Card):
    """A card of a user's own."""

    type: ClassVar[str] = "Weather"

    city: str
    celsius: float = 0.0


class Warm(CardInput):
    """Make it warmer."""

    name = "warm"

    by: float

    def apply(self, card: Card) -> Card:
        assert isinstance(card, Weather)
        return card.changed(celsius=card.celsius + self.by)


@pytest.mark.promise("cards-002")
def test_a_card_may_have_an_id() -> None:
    entry = DEFAULT_CARDS.encode(Table(id="t1", title="Wells"))
    assert entry == CardEntry(type="Table", payload="type: Table\nid: t1\ntitle: Wells\n")
    assert entry.card_id == "t1"
    assert DEFAULT_CARDS.encode(Table()).payload == "type: Table\n"
    same, other, nameless = Table(id="t1", title="Wells, again"), Table(id="t2", title="Wells"), Table()
    log = [Table(id="t1", title="Wells"), other, nameless, same, nameless]
    shown = [
        item.card for item in screen(list(map(DEFAULT_CARDS.encode, log))) if isinstance(item, ShownCard)
    ]
    assert shown == [same, other, nameless, nameless]  # an id is one card; without one each is its own


def test_a_type_of_ones_own_takes_a_few_lines() -> None:
    cards = builtin_cards()
    cards.register(Weather)
    entry = cards.encode(Weather(city="Oslo", celsius=-3))
    assert entry.payload == "type: Weather\ncity: Oslo\ncelsius: -3.0\n"
    card = cards.decode_entry(entry)
    assert card == Weather(city="Oslo", celsius=-3)
    assert card.note("en") == "[shown Weather]"
    assert isinstance(DEFAULT_CARDS.decode_entry(entry), UnknownCard)


def test_actions_are_checked_and_give_the_next_state() -> None:
    cards = CardRegistry(CardType(model=Weather, actions=(Warm,)))
    oslo = Weather(city="Oslo")
    assert cards.act(oslo, "warm", {"by": 5}) == Weather(city="Oslo", celsius=5)
    for action, fields, message in (
        ("cool", {}, "this Weather card has no action 'cool'; it takes warm"),
        ("warm", {}, "this Weather card cannot take warm: by: Field required"),
        (
            "warm",
            {"by": 1, "of": 2},
            "this Weather card cannot take warm: of: Extra inputs are not permitted",
        ),
    ):
        with pytest.raises(UsageError, match=message):
            cards.act(oslo, action, fields)
    for odd in ("by", 5, [("by", 5)]):  # callers pass on what came to them
        with pytest.raises(UsageError, match="cannot take warm: give a mapping of names to values"):
            cards.act(oslo, "warm", odd)  # type: ignore[arg-type] - on purpose
    with pytest.raises(UsageError, match="this Table card has no action 'warm'; it takes none"):
        cards.act(Table(), "warm", {"by": 1})
    with pytest.raises(UsageError, match="this Nobody card can only be looked at"):
        cards.act(UnknownCard(type="Nobody", payload="", reason=""), "warm", {})


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.from_regex(r"x[a-z]{1,8}", fullmatch=True), VALUES, max_size=4))
def test_fields_we_do_not_know_survive(extra: dict[str, object]) -> None:
    payload = dump_yaml({"type": "Table", "title": "T", "rows": [[1, "1", 1.0, True, None]], **extra})
    card = DEFAULT_CARDS.decode("Table", payload)
    assert isinstance(card, Table)
    assert DEFAULT_CARDS.encode(card).payload == payload


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([each.name for each in BUILTIN_CARDS]), VALUES | st.text(max_size=40))
def test_no_payload_makes_decoding_fail(name: str, payload: object) -> None:
    text = (
        payload
        if isinstance(payload, str)
        else dump_yaml({"title": payload, "fields": payload, "rows": payload})
    )
    card = DEFAULT_CARDS.decode(name, text)
    if isinstance(card, UnknownCard):
        assert card.reason
        assert "\n" not in card.reason
        assert DEFAULT_CARDS.encode(card) == CardEntry(type=name, payload=text)
        assert card.locked
    assert len(card.note(card.language)) <= 200


@pytest.mark.promise("cards-015", "cards-030")
def test_the_codec_takes_type_yaml_and_a_form_registry_and_nothing_of_storage() -> None:
    payload = "type: Form\ntitle: Grid\nformId: grid\n"
    assert DEFAULT_CARDS.decode("Form", payload, None) == Form(form_id="grid", title="Grid")
    assert DEFAULT_CARDS.decode("Form", payload, FormRegistry()).locked
    assert DEFAULT_CARDS.encode(Form(form_id="grid", title="Grid")).payload == payload


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ("", "the payload is not a mapping"),
        ("title: [", "not readable as yaml: line 2: "),
        ("type: Form", "the payload of a Table card says it is of another type"),
        ("v: one", "the payload's version `v` is not a whole number of 1 or more"),
        ("v: true", "the payload's version `v` is not a whole number"),
        ("v: 0", "the payload's version `v` is not a whole number"),
        ("v: 2", "version 2 is newer than version 1, which is known here"),
        ("totalRowCount: -1", "totalRowCount: Input should be greater than or equal to 0"),
        ("title: " + "x" * 300_000, "yaml of 300007 characters is over the limit of 262144; shorten it"),
    ],
)
def test_a_payload_that_cannot_be_read_says_why(payload: str, reason: str) -> None:
    card = DEFAULT_CARDS.decode("Table", payload)
    assert isinstance(card, UnknownCard)
    assert card.reason.startswith(reason)
    assert (card.type, card.payload, card.id) == ("Table", payload, None)


def rename_rows(payload: dict[str, object]) -> dict[str, object]:
    return {"city": payload.pop("town"), **payload}


def to_celsius(payload: dict[str, object]) -> dict[str, object]:
    fahrenheit = payload.pop("fahrenheit", 32)
    assert isinstance(fahrenheit, int)
    return {**payload, "celsius": (fahrenheit - 32) / 1.8}


def test_a_payload_of_an_old_version_is_read_as_the_latest() -> None:
    cards = CardRegistry(CardType(model=Weather, latest=3, upcasters={1: rename_rows, 2: to_celsius}))
    assert cards.decode("Weather", "town: Oslo\nfahrenheit: 50\n") == Weather(city="Oslo", celsius=10)
    assert cards.decode("Weather", "v: 2\ncity: Oslo\n") == Weather(city="Oslo", celsius=0)
    assert cards.decode("Weather", "v: 3\ncity: Oslo\n") == Weather(city="Oslo")
    assert cards.encode(Weather(city="Oslo")).payload == "type: Weather\nv: 3\ncity: Oslo\n"
    newer = cards.decode("Weather", "v: 4\nid: w\ncity: Oslo\n")
    assert newer == UnknownCard(
        type="Weather",
        payload="v: 4\nid: w\ncity: Oslo\n",
        reason="version 4 is newer than version 3, which is known here",
        id="w",
    )


def test_code_of_others_that_fails_leaves_a_placeholder() -> None:
    class Fragile(Card):
        type: ClassVar[str] = "Fragile"

        @model_validator(mode="before")
        @classmethod
        def _fail(cls, fields: object) -> object:
            raise KeyError("secret words")

    cards = CardRegistry(
        CardType(model=Weather, latest=2, upcasters={1: rename_rows}), CardType(model=Fragile)
    )
    for name in ("Weather", "Fragile"):
        card = cards.decode(name, "id: w\n")
        assert card == UnknownCard(
            type=name, payload="id: w\n", reason="reading it failed with KeyError", id="w"
        )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: CardType(model=Weather, latest=3, upcasters={2: to_celsius}), "no upcaster from version 1"),
        (lambda: CardType(model=type("Odd", (Card,), {"type": "../odd"})), "cannot name a card type"),
        (lambda: DEFAULT_CARDS.encode(Weather(city="Oslo")), "card type Weather is not registered"),
        (lambda: DEFAULT_CARDS.encode(Table(title="x" * 300_000)), "keep a preview in the card"),
        (
            lambda: DEFAULT_CARDS.encode(Table().model_copy(update={"rows": "no rows"})),
            "this Table card is not valid: rows: Input should be a valid tuple",
        ),
    ],
)
def test_what_could_not_be_read_again_is_not_written(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        wrong()


def install(folder: Path, name: str, target: str) -> None:
    """Put a package with one card entry point on `folder`, as pip would."""
    meta = folder / f"{name.lower()}_cards-1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.lower()}-cards\nVersion: 1.0\n")
    (meta / "entry_points.txt").write_text(f"[dialoom.cards]\n{name} = {target}\n")


def test_an_installed_package_brings_its_card_when_it_is_first_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(tmp_path, "Weather", "tests.conversation.test_cards:Weather")
    install(tmp_path, "Missing", "tests.conversation.test_cards:NoSuchName")
    monkeypatch.syspath_prepend(str(tmp_path))
    cards = CardRegistry()
    assert cards.describe() == {}
    assert cards.decode("Weather", "city: Oslo\n") == Weather(city="Oslo")
    assert set(cards.describe()) == {"Weather"}
    with caplog.at_level(logging.ERROR, "dialoom.cards"):
        assert isinstance(cards.decode("Missing", ""), UnknownCard)
        assert cards.find("Missing") is None
    assert [record.getMessage() for record in caplog.records] == ["card type failed to load"]


def test_a_flood_of_unknown_names_is_looked_up_a_bounded_number_of_times() -> None:
    cards = CardRegistry()
    assert cards.find("../../etc") is None
    for at in range(120):
        assert cards.find(f"N{at}") is None
    cards.register(Weather)
    assert cards.find("Weather") is not None


def test_a_page_learns_how_to_draw_and_act() -> None:
    described = DEFAULT_CARDS.describe()
    assert list(described) == [
        *("Form", "ParameterSet", "Table", "ColumnMatch", "WorkflowStatus", "KnowledgeBase"),
        *("XyzLoadCard", "GriddingParamCard", "Approval", "Plot", "Sources", "Error"),
    ]
    form = described["Form"]
    assert (form["version"], form["renderer"], form["names"]) == (1, "form", {"en": "form", "zh": "表单"})
    assert set(form["actions"]) == {"submit"}
    assert {"formId", "fields", "submitLabel"} <= set(form["schema"]["properties"])


@pytest.mark.promise("conversation-041", "conversation-042")
def test_a_form_or_a_parameter_set_is_shown_by_appending_it_to_the_log() -> None:
    conversation = Conversation()
    cards = (Form(form_id="grid", title="Grid"), ParameterSet(title="Search"))
    for card in cards:
        conversation.append(DEFAULT_CARDS.encode(card))
    assert conversation.entries == (
        CardEntry(type="Form", payload="type: Form\ntitle: Grid\nformId: grid\n"),
        CardEntry(type="ParameterSet", payload="type: ParameterSet\ntitle: Search\n"),
    )
    shown = [item.card for item in screen(conversation.entries) if isinstance(item, ShownCard)]
    assert shown == list(cards)
