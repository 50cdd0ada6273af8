"""Branches: an answer made anew, an edited question, a copy; the dialog they come from stays as it is."""

import pytest

from dialoom.base.errors import UsageError
from dialoom.conversation import MemoryConversationStore
from dialoom.dialog import Center, Prompt, Skill, Stores
from dialoom.graph import MemoryCheckpointStore
from dialoom.llm import Capability, Gate, MockProvider
from dialoom.mcp.config import MCPServerConfig
from tests.dialog.talk import add, cards, center_of, finished, refund, said, soon


@pytest.mark.promise("dialog-100", "dialog-101")
async def test_where_a_dialog_came_from_is_recorded_and_stored() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    center = Center(stores)
    old, dialog = center.new_dialog(), center.new_dialog()
    assert dialog.branch_from_id == ""
    dialog.set_branch_from_id(old.id)
    assert dialog.branch_from_id == old.id
    await dialog.append_message("user", "hi").save()
    assert (await stores.conversations.header(dialog.id)).branch_from == old.id
    assert (await Center(stores).open(dialog.id)).branch_from_id == old.id
    with pytest.raises(UsageError):
        dialog.set_branch_from_id("no such name/")


@pytest.mark.promise("dialog-102")
async def test_regenerating_makes_a_dialog_that_points_at_the_one_it_replaces() -> None:
    mock = MockProvider().queue_text("two").queue_text("two, better")
    center = center_of(mock)
    dialog = center.new_dialog().add_tool(add).set_system_text("Be brief.")
    await finished(dialog.send("one"))
    better = await dialog.regenerate()
    assert (better.branch_from_id, better.id != dialog.id) == (dialog.id, True)
    assert (better.tool_names, better.system_text) == (("add",), "Be brief.")
    assert said(better) == [("user", "one")]
    await finished(better.run())
    assert said(better) == [("user", "one"), ("assistant", "two, better")]
    assert said(dialog) == [("user", "one"), ("assistant", "two")]
    assert center.dialogs == (dialog, better)


async def test_editing_a_question_branches_before_it_and_says_it_anew() -> None:
    mock = MockProvider().queue_text("a").queue_text("b").queue_text("c")
    dialog = center_of(mock).new_dialog()
    await finished(dialog.send("one"))
    await finished(dialog.send("two"))
    edited = await dialog.edit(2, "two, I mean")
    await finished(edited.run())
    assert [words for _, words in said(edited)] == ["one", "a", "two, I mean", "c"]
    assert [words for _, words in said(dialog)] == ["one", "a", "two", "b"]
    with pytest.raises(UsageError, match="message 1 is not a text of the user; edit one that is"):
        await dialog.edit(1, "x")


async def test_a_branch_has_the_first_messages_or_all() -> None:
    dialog = Center().new_dialog().append_message("user", "one").append_message("user", "two")
    assert said(await dialog.branch(1)) == [("user", "one")]
    assert said(await dialog.branch()) == [("user", "one"), ("user", "two")]
    with pytest.raises(UsageError, match="cannot branch at 3; this dialog has 2 messages"):
        await dialog.branch(3)
    with pytest.raises(UsageError, match="this dialog has nothing to answer anew; send it a text"):
        await Center().new_dialog().regenerate()


async def test_a_question_that_got_no_answer_is_kept_when_it_is_answered_anew() -> None:
    gate = Gate()
    mock = MockProvider().queue_text("a").queue_events(gate).queue_text("b")
    dialog = center_of(mock).new_dialog()
    await finished(dialog.send("one"))
    stopped = dialog.send("two")
    await soon(gate.reached.wait())
    dialog.cancel()
    await soon(stopped)
    again = await dialog.regenerate()
    await finished(again.run())
    assert [words for _, words in said(again)] == ["one", "a", "two", "b"]


async def test_a_long_dialog_branches_at_messages_that_were_not_read() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    source = Center(stores).new_dialog().append_message("user", "one").append_message("assistant", "a")
    for at in range(100):
        source.append_message("system" if at < 2 else "tool", str(at))
    await source.save()
    assert said(await (await Center(stores).open(source.id)).regenerate()) == [("user", "one")]
    assert said(await (await Center(stores).open(source.id)).edit(0, "uno")) == [("user", "uno")]


async def test_in_a_branch_of_a_paused_dialog_nobody_waits_for_its_cards() -> None:
    mock = MockProvider().queue_tool_call("c1", "refund", {"order": 9}).queue_text("Done.")
    dialog = center_of(mock, refund).new_dialog()
    waiting = (await soon(dialog.send("refund 9"))).waiting
    twin = await dialog.branch()
    assert "status: expired" in cards(twin.messages)[-1].payload
    assert (twin.waiting, twin.is_unfinished) == ((), False)
    await finished(dialog.answer(waiting[0], "decide", {"approved": True}))


@pytest.mark.promise(
    "dialog-103",
    "dialog-104",
    "dialog-105",
    "dialog-106",
    "dialog-107",
    "dialog-108",
    "dialog-109",
    "dialog-110",
    "dialog-111",
)
def test_copying_takes_messages_kit_and_choices_over_but_no_tools_and_no_id() -> None:
    center = Center()
    skill, prompt = Skill(name="s", description="d"), Prompt("p", "P")
    server = MCPServerConfig("m", command="m")
    source = center.new_dialog(capability_requirement=Capability.TEXT | Capability.IMAGE_IN).add_tool(add)
    source.add_skill(skill).add_prompt(prompt).add_mcp(server).set_provider_id("a").set_model_id("b")
    source.append_message("user", "one").append_message("assistant", "two")
    target = center.new_dialog().add_tool(refund).append_message("user", "draft")
    before = target.id
    assert source.copy_to(target) is True
    assert said(target) == [("user", "one"), ("assistant", "two")]
    assert (target.skills, target.prompts, target.mcps) == ((skill,), (prompt,), (server,))
    assert (target.provider_id, target.model_id) == ("a", "b")
    assert target.capability_requirement == Capability.TEXT | Capability.IMAGE_IN
    assert (target.id, target.tool_names) == (before, ("refund",))
    assert source.copy_to(None) is False
    assert source.copy_to(source) is False
