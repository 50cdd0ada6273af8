"""Messages: appended, found, taken back; a listener hears where, and reads what is there."""

import pytest

from dialoom.base.errors import UsageError
from dialoom.conversation import CardEntry, TextEntry
from dialoom.conversation.cards import Form, FormField
from dialoom.dialog import Center, Prompt, RunInProgressError
from dialoom.dialog.spoken import NOTHING_SAID
from dialoom.llm import Capability, Gate, MockProvider, TextDelta, assistant, tool_result, user
from tests.dialog.talk import add, call, center_of, said, soon


@pytest.mark.promise("dialog-002", "dialog-043", "dialog-040", "dialog-012")
def test_a_new_dialog_is_empty_and_has_an_id() -> None:
    dialog = Center().new_dialog()
    assert len(dialog.id) == 36
    assert (dialog.messages, dialog.message_count, dialog.last_message) == ((), 0, NOTHING_SAID)
    assert (dialog.last_message.role, dialog.last_message.content) == ("user", "")
    assert dialog.find_last_assistant_message() == -1


@pytest.mark.promise("dialog-031", "dialog-033", "dialog-042", "dialog-044", "dialog-045")
def test_messages_are_appended_in_every_form_and_kept_in_order() -> None:
    dialog = Center().new_dialog()
    dialog.append_message("user", "one").append_message(assistant("two", calls=(call("c1", "add", a=1),)))
    dialog.append_message(tool_result("c1", "three", name="add", is_error=True))
    dialog.append_message(TextEntry(role="assistant", content="four")).append_message(user("five"))
    assert dialog.messages == (
        TextEntry(role="user", content="one"),
        TextEntry(role="assistant", content="two", tool_calls=(call("c1", "add", a=1),)),
        TextEntry(role="tool", content="three", tool_call_id="c1", tool_name="add", is_error=True),
        TextEntry(role="assistant", content="four"),
        TextEntry(role="user", content="five"),
    )
    assert (dialog.message_count, dialog.last_message) == (5, dialog.messages[4])
    assert dialog.message(3).content == "four"


@pytest.mark.promise("dialog-032", "dialog-049", "dialog-050")
def test_message_appended_tells_the_index_and_a_listener_reads_what_is_there() -> None:
    dialog = Center().new_dialog()
    heard: list[tuple[int, str]] = []
    dialog.message_appended.connect(lambda index: heard.append((index, dialog.message(index).content)))
    dialog.append_message("user", "one").append_message("assistant", "two")
    assert heard == [(0, "one"), (1, "two")]


@pytest.mark.promise("dialog-034", "dialog-035", "dialog-036")
def test_a_prompt_is_filled_in_and_appended_and_an_unknown_one_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    center = Center().add_prompt(Prompt("greet", "Hello {{name}}")).add_prompt(Prompt("bye", "Bye", "system"))
    dialog = center.new_dialog().append_prompt("greet", {"name": "Ada"}).append_prompt("bye")
    dialog.add_prompt(Prompt("greet", "Good day {{name}}")).append_prompt("greet", {"name": "Ada"})
    dialog.append_prompt("unknown", {"name": "Ada"})
    assert said(dialog) == [("user", "Hello Ada"), ("system", "Bye"), ("user", "Good day Ada")]
    (record,) = caplog.records
    assert (record.message, record.__dict__["prompt"]) == ("there is no prompt of this name", "unknown")


@pytest.mark.promise("dialog-037", "dialog-038", "dialog-048")
def test_clearing_takes_all_messages_and_keeps_the_settings() -> None:
    dialog = Center().new_dialog().add_tool(add).add_prompt(Prompt("hi", "Hi")).set_model_id("m")
    dialog.append_message("user", "one").append_message("assistant", "two").clear_messages()
    assert dialog.messages == ()
    assert (dialog.tool_names, dialog.prompts, dialog.model_id) == (("add",), (Prompt("hi", "Hi"),), "m")
    assert dialog.append_message("user", "three").truncate_to(0).messages == ()


@pytest.mark.promise("dialog-039", "dialog-041", "dialog-046", "dialog-047")
def test_truncating_to_the_last_answer_drops_it_and_what_follows() -> None:
    dialog = Center().new_dialog()
    for role, words in (("user", "one"), ("assistant", "two"), ("user", "three"), ("assistant", "four")):
        dialog.append_message(role, words)
    dialog.append_message("user", "five")
    left: list[int] = []
    dialog.messages_removed.connect(left.append)
    assert dialog.truncate_to(6).truncate_to(5).message_count == 5
    assert dialog.find_last_assistant_message() == 3
    dialog.truncate_to(dialog.find_last_assistant_message())
    assert said(dialog) == [("user", "one"), ("assistant", "two"), ("user", "three")]
    assert left == [3]


def test_a_place_that_is_not_there_is_refused() -> None:
    dialog = Center().new_dialog().append_message("user", "one")
    with pytest.raises(UsageError, match="there is no message 1; this dialog has 1"):
        dialog.message(1)
    with pytest.raises(UsageError, match="a dialog cannot keep -1 messages; give 0 or more"):
        dialog.truncate_to(-1)
    with pytest.raises(
        UsageError, match="there is no role 'bot'; it is one of system, user, assistant, tool"
    ):
        dialog.append_message("bot", "hi")  # type: ignore[arg-type] - from a program without types
    assert dialog.message_count == 1


async def test_while_a_run_goes_on_the_log_is_the_runs() -> None:
    gate = Gate()
    dialog = center_of(MockProvider().queue_events(gate, TextDelta("hello"))).new_dialog()
    handle = dialog.send("hi")
    await soon(gate.reached.wait())
    for change in (dialog.clear_messages, dialog.begin_assistant_message):
        with pytest.raises(RunInProgressError, match="this dialog is answering; wait for it or cancel it"):
            change()
    with pytest.raises(RunInProgressError):
        dialog.append_message("user", "more")
    gate.opened.set()
    await soon(handle)
    assert said(dialog) == [("user", "hi"), ("assistant", "hello")]


@pytest.mark.promise("dialog-001")
async def test_a_dialog_holds_messages_kit_and_choices_and_an_application_its_cards() -> None:
    center = Center()
    dialog = center.new_dialog(capability_requirement=Capability.TEXT | Capability.TOOLS).add_tool(add)
    dialog.set_provider_id("p").set_model_id("m").append_message("user", "one")
    form = Form(id="f1", title="Cell", inline=True, fields=(FormField(id="cell", type="integer"),))
    dialog.append_message(center.cards.encode(form))
    answered = dialog.act("f1", "submit", {"values": {"cell": 25}})
    assert (answered.status, dialog.message_count) == ("submitted", 3)
    assert isinstance(dialog.last_message, CardEntry)
    with pytest.raises(UsageError, match="this form is submitted; it takes no other answer"):
        dialog.act("f1", "submit", {"values": {"cell": 26}})
    with pytest.raises(UsageError, match="there is no card 'f2' to be answered; see the messages"):
        dialog.act("f2", "submit", {})
    assert (dialog.provider_id, dialog.model_id) == ("p", "m")
