"""Forms that tools ask for: shown as cards, checked, answered, and told to the tool that asked."""

import pytest

from dialoom.base.errors import StoreError, UsageError
from dialoom.conversation import MemoryConversationStore
from dialoom.conversation.cards import (
    DEFAULT_CARDS,
    Form,
    FormDefinition,
    FormField,
    InvalidAnswersError,
    Table,
)
from dialoom.dialog import Center, Dialog, Stores
from dialoom.dialog.questions import ANSWER, form_of
from dialoom.graph import MemoryCheckpointStore
from dialoom.llm import MockProvider
from dialoom.tools import ToolContext, ToolResult, tool
from tests.dialog.talk import cards, center_of, finished, said, soon


def form_in(dialog: Dialog, at: int = -1) -> Form:
    card = DEFAULT_CARDS.decode_entry(cards(dialog.messages)[at])
    assert isinstance(card, Form)
    return card


@tool(idempotent=True)
async def grid(ctx: ToolContext) -> ToolResult:
    """Grid the wells."""
    form = {"title": "Grid", "fields": [{"id": "cell", "type": "integer", "required": True}]}
    values = ctx.ask(form)
    card = DEFAULT_CARDS.encode(Table(title="Nodes", rows=((str(values["cell"]),),)))
    return ToolResult(content=f"gridded at {values['cell']}", card=card)


@pytest.mark.promise("conversation-043")
async def test_submitting_a_form_goes_on_and_the_table_it_gives_is_in_the_log() -> None:
    dialog = center_of(
        MockProvider().queue_tool_call("c1", "grid", {}).queue_text("Done."), grid
    ).new_dialog()
    (card_id,) = (await soon(dialog.send("grid"))).waiting
    form = form_in(dialog)
    assert (form.title, [field.id for field in form.fields]) == ("Grid", ["cell"])
    with pytest.raises(InvalidAnswersError):
        dialog.answer(card_id, "submit", {"values": {"cell": "wide"}})
    await finished(dialog.answer(card_id, "submit", {"values": {"cell": 25}}))
    assert [role for role, _ in said(dialog)] == [
        "user",
        "assistant",
        "Form",
        "Form",
        "tool",
        "Table",
        "assistant",
    ]
    assert said(dialog)[4][1] == "gridded at 25"


def positive(value: object) -> int:
    if not str(value).isdigit():
        raise ValueError(f"{value} is not a whole number")
    return int(str(value))


@tool(idempotent=True)
async def age(ctx: ToolContext) -> str:
    """Ask for an age."""
    return f"{ctx.ask('How old are you?', schema=positive)} years"


async def test_an_answer_the_tool_refuses_is_asked_for_again_by_a_new_card_that_says_why() -> None:
    dialog = center_of(MockProvider().queue_tool_call("c1", "age", {}).queue_text("Done."), age).new_dialog()
    (first,) = (await soon(dialog.send("go"))).waiting
    for _ in range(2):  # the same refusal twice is two cards
        (again,) = (
            await soon(dialog.answer(dialog.waiting[0], "submit", {"values": {ANSWER: "old"}}))
        ).waiting
        assert again != first
        assert form_in(dialog).error == "the answer does not fit: old is not a whole number"
    await finished(dialog.answer(dialog.waiting[0], "submit", {"values": {ANSWER: "47"}}))
    assert said(dialog)[-2][1] == "47 years"
    assert len({form_in(dialog, at).id for at in range(6)}) == 3


@tool(idempotent=True)
async def login(ctx: ToolContext) -> str:
    """Ask for a password."""
    values = ctx.ask({"formId": "login", "values": {"name": "ada"}})
    return f"{values.get('name')} has a password of {len(values['password'])} letters"


async def test_a_registered_form_is_asked_and_its_secret_is_told_to_the_tool_and_kept_nowhere() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    mock = MockProvider().queue_tool_call("c1", "login", {}).queue_text("Done.")
    center = center_of(mock, login, stores=stores)
    fields = (FormField(id="name"), FormField(id="password", type="secret"))
    center.forms.add(FormDefinition(form_id="login", title="Sign in", fields=fields))
    dialog = center.new_dialog()
    (card_id,) = (await soon(dialog.send("go"))).waiting
    values = {"name": "ada", "password": "hunter22"}
    await finished(dialog.answer(card_id, "submit", {"values": values}))
    assert said(dialog)[-2][1] == "ada has a password of 8 letters"
    assert "hunter22" not in dialog.to_json()
    assert stores.checkpoints.load(dialog.id) is None


@pytest.mark.parametrize("kind", ["text", "no such kind"])
async def test_a_secret_that_a_tool_asks_with_is_kept_nowhere(kind: str) -> None:
    fields = [{"id": "key", "type": "secret", "default": "s3cret"}, {"id": "n", "type": kind}]

    @tool(idempotent=True)
    async def ask(ctx: ToolContext) -> str:
        """Ask."""
        return f"{len(ctx.ask({'fields': fields, 'values': {'key': 's3cret'}}))} answers"

    mock = MockProvider().queue_tool_call("c1", "ask", {})
    dialog = center_of(mock, ask).new_dialog()
    assert len((await soon(dialog.send("go"))).waiting) == 1
    assert "s3cret" not in dialog.to_json()


class StubbornCheckpoints(MemoryCheckpointStore):
    """Forgets nothing for a while, as on a full disk."""

    refuses = False

    def erase_thread(self, thread_id: str) -> None:
        if self.refuses:
            raise StoreError("the disk is full; free some space, then try again")
        super().erase_thread(thread_id)


async def test_a_secret_that_could_not_be_erased_is_erased_when_the_dialog_is_opened() -> None:
    checkpoints = StubbornCheckpoints()
    stores = Stores(MemoryConversationStore(), checkpoints)
    mock = MockProvider().queue_tool_call("c1", "login", {}).queue_text("Done.")
    center = center_of(mock, login, stores=stores)
    center.forms.add(FormDefinition(form_id="login", fields=(FormField(id="password", type="secret"),)))
    dialog = center.new_dialog()
    (card_id,) = (await soon(dialog.send("go"))).waiting
    checkpoints.refuses = True
    result = await soon(dialog.answer(card_id, "submit", {"values": {"password": "hunter22"}}))
    assert isinstance(result.error, StoreError)
    assert (said(dialog)[-1], checkpoints.load(dialog.id) is None) == (("assistant", "Done."), False)
    checkpoints.refuses = False
    await center_of(mock, login, stores=stores).open(dialog.id)
    assert checkpoints.load(dialog.id) is None


async def test_a_form_that_is_not_registered_any_more_takes_no_answer() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    mock = MockProvider().queue_tool_call("c1", "login", {})
    center = center_of(mock, login, stores=stores)
    center.forms.add(FormDefinition(form_id="login", fields=(FormField(id="name"),)))
    dialog = center.new_dialog()
    (card_id,) = (await soon(dialog.send("go"))).waiting
    later = await center_of(mock, login, stores=stores).open(dialog.id)
    with pytest.raises(UsageError, match="this Form card can only be looked at"):
        later.answer(card_id, "submit", {"values": {}})


@pytest.mark.parametrize(
    ("payload", "label"),
    [
        ("Which well?", "Which well?"),
        ({"which": "well"}, '{"which":"well"}'),
        (7, "7"),
        ({"fields": "none"}, '{"fields":"none"}'),
        ({"formId": "unknown"}, '{"formId":"unknown"}'),
        (b"bytes", '{"error":"the tool returned bytes; return text or JSON values","tool":"ask"}'),
    ],
)
def test_whatever_a_tool_asks_becomes_a_form(payload: object, label: str) -> None:
    form = form_of(payload, Center().forms, title="ask")
    assert [(field.id, field.label) for field in form.fields] == [(ANSWER, label)]
    assert form.inline
