"""Every card type in every store: shown, answered where it can be, reloaded, exported, imported, the same."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dialoom.conversation import (
    Append,
    Conversation,
    ExportFormat,
    ListedConversationStore,
    MemoryConversationStore,
    ShownCard,
    export_conversation,
    import_conversation,
    screen,
)
from dialoom.conversation.cards import BUILTIN_CARDS, DEFAULT_CARDS, Card
from dialoom.stores import SqliteConversationStore, YamlConversationStore
from tests.conversation.test_card_types import EVERY_CARD

ANSWERS: dict[str, tuple[str, dict[str, Any]]] = {
    "Form": ("submit", {"values": {"cell": 50, "method": "idw", "power": 2, "tags": ["b"]}}),
    "ParameterSet": ("apply", {"values": {"radius": "250", "sectors": "8"}}),
    "ColumnMatch": ("confirm", {"mappings": {"x": "North"}}),
    "KnowledgeBase": ("attach", {"topK": 5}),
    "XyzLoadCard": ("configure", {"encoding": "gb18030", "skipRows": 2}),
    "GriddingParamCard": ("run", {"method": "kriging", "methodParams": {"range": 500}}),
    "Approval": ("decide", {"approved": True, "editedArguments": {"to": "bob"}}),
}
"""What people do with a card that changes it; the others are looked at, or leave their work to a run."""


@pytest.fixture(params=["memory", "sqlite", "yaml"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[ListedConversationStore]]:
    """The same store as three programs would have it open one after another; in memory there is one."""
    if request.param == "memory":
        memory = MemoryConversationStore()
        yield [memory, memory, memory]
        return
    opened = [
        SqliteConversationStore(tmp_path / "c.sqlite")
        if request.param == "sqlite"
        else YamlConversationStore(tmp_path)
        for _ in range(3)
    ]
    yield list(opened)
    for each in opened:
        each.close()


def test_no_card_type_is_missing_here() -> None:
    assert {card.type for card in EVERY_CARD} == {each.name for each in BUILTIN_CARDS}


@pytest.mark.parametrize("card", EVERY_CARD, ids=lambda card: card.type)
async def test_a_card_is_shown_answered_reloaded_exported_and_imported(
    places: list[ListedConversationStore], card: Card
) -> None:
    first, second, third = places
    shown = card.changed(id="the-card")
    conversation = Conversation()
    await first.create(conversation)
    await first.append(conversation.id, [Append(DEFAULT_CARDS.encode(shown))])
    assert cards_in(await second.load(conversation.id)) == [shown]

    (read,) = cards_in(await second.load(conversation.id))
    answered = DEFAULT_CARDS.act(read, *ANSWERS[card.type]) if card.type in ANSWERS else read
    assert (answered != shown) == (card.type in ANSWERS)
    await second.append(conversation.id, [Append(DEFAULT_CARDS.encode(answered), "answer")])

    stored = await third.load(conversation.id)
    assert cards_in(stored) == [answered]
    assert [type(each) for each in cards_in(stored)] == [type(card)]
    assert stored.entries == (DEFAULT_CARDS.encode(shown), DEFAULT_CARDS.encode(answered))
    assert (await third.window(conversation.id)).entries == stored.entries
    kinds: tuple[ExportFormat, ...] = ("yaml", "json", "md")
    for kind in kinds:
        copy = import_conversation(export_conversation(stored, kind), kind, fresh_id=True)
        await third.create(copy)
        assert cards_in(await first.load(copy.id)) == [answered]
        if kind != "md":  # which has what people see
            assert (await first.load(copy.id)).records == stored.records


def cards_in(conversation: Conversation) -> list[Card]:
    """Return the cards as people see them: each once, as it is now."""
    shown = [item.card for item in screen(conversation.entries) if isinstance(item, ShownCard)]
    assert all(isinstance(card, Card) for card in shown)
    return [card for card in shown if isinstance(card, Card)]
