"""The kit: a dialog's own items lie over the center's, and taking one away shows the center's again."""

import gc
import weakref
from typing import cast

import pytest

from dialoom.base.errors import UsageError
from dialoom.dialog import Center, FixedToolSource, Kit, Prompt, Skill
from dialoom.llm import MockProvider
from dialoom.mcp.config import MCPServerConfig
from dialoom.tools import Tool, ToolContext, ToolRegistry, tool
from tests.dialog.talk import add, call, center_of, finished, refund


class Greeter(Tool):
    """A tool that says who made it."""

    name = "greet"

    def __init__(self, owner: str) -> None:
        self.owner = owner

    async def run(self, args: dict[str, object], ctx: ToolContext) -> str:
        return f"hello from the {self.owner}"


def skill(owner: str) -> Skill:
    return Skill(name="greet", description="d", instructions=f"the {owner}'s way", mode="always")


@pytest.mark.promise("dialog-009", "dialog-015", "dialog-016", "dialog-021", "dialog-022", "dialog-029")
def test_a_tool_is_the_dialogs_own_first_and_then_the_centers() -> None:
    ours, theirs = Greeter("dialog"), Greeter("center")
    center = Center().add_tool(theirs)
    dialog, other = center.new_dialog(), center.new_dialog()
    assert dialog.get_tool("greet") is theirs
    dialog.add_tool(ours)
    assert (dialog.get_tool("greet"), other.get_tool("greet")) == (ours, theirs)
    dialog.remove_tool("greet")
    assert dialog.get_tool("greet") is theirs
    assert dialog.get_tool("unknown") is None


@pytest.mark.promise("dialog-010", "dialog-007")
async def test_a_replaced_tool_and_the_tools_of_a_closed_dialog_are_let_go() -> None:
    dialog = Center().new_dialog()
    first, second = Greeter("first"), Greeter("second")
    dialog.add_tool(first).add_tool(second)
    assert dialog.get_tool("greet") is second
    gone = weakref.ref(first), weakref.ref(second)
    del first
    gc.collect()
    assert (gone[0](), gone[1]()) == (None, second)
    await dialog.aclose()
    del second
    gc.collect()
    assert gone[1]() is None


@pytest.mark.promise("dialog-011", "dialog-023", "dialog-024", "dialog-025", "dialog-026")
def test_lists_have_the_dialogs_own_items_only() -> None:
    center = Center().add_tool(add).add_skill(skill("center")).add_prompt(Prompt("hi", "Hi"))
    center.add_mcp(MCPServerConfig("files", command="files"))
    dialog = center.new_dialog().add_tool(None)
    assert (dialog.tool_names, dialog.skills, dialog.prompts, dialog.mcps) == ((), (), (), ())
    server = MCPServerConfig("mail", command="mail")
    dialog.add_tool(refund).add_skill(skill("dialog")).add_prompt(Prompt("bye", "Bye")).add_mcp(server)
    server.set_command("changed later")
    assert dialog.tool_names == ("refund",)
    assert dialog.skills == (skill("dialog"),)
    assert dialog.prompts == (Prompt("bye", "Bye"),)
    assert dialog.mcps == (MCPServerConfig("mail", command="mail"),)
    assert center.tool_names == ("add",)


@pytest.mark.promise("dialog-013", "dialog-014", "dialog-018", "dialog-019", "dialog-020", "dialog-028")
async def test_skills_and_prompts_of_the_dialog_are_used_until_they_are_removed() -> None:
    mock = MockProvider().queue_text("a").queue_text("b")
    center = center_of(mock).add_skill(skill("center")).add_prompt(Prompt("hi", "from the center"))
    dialog = center.new_dialog().add_skill(skill("dialog")).add_prompt(Prompt("hi", "from the dialog"))
    await finished(dialog.append_prompt("hi").run())
    dialog.remove_skill("greet").remove_prompt("hi")
    await finished(dialog.append_prompt("hi").run())
    first, second = ([message.text for message in request.messages] for request in mock.requests)
    assert first == ['<skill name="greet">\nthe dialog\'s way\n</skill>', "from the dialog"]
    assert second[0] == '<skill name="greet">\nthe center\'s way\n</skill>'
    assert second[-1] == "from the center"
    assert center.skills == (skill("center"),)


async def test_a_skill_that_the_model_activated_stays_in_force_and_is_not_offered_again() -> None:
    wanted = [call("c1", "activate_skill", name="rhyme"), call("c2", "activate_skill", name="made up")]
    mock = MockProvider().queue_tool_calls(*wanted).queue_text("a")
    center = center_of(mock.queue_text("b").queue_text("c"))
    dialog = center.new_dialog().add_skill(Skill(name="rhyme", description="Rhymes.", instructions="Rhyme."))
    await finished(dialog.send("a poem"))
    assert "- rhyme: Rhymes." in mock.requests[0].messages[0].text
    assert dialog.messages[2].content == '<skill name="rhyme">\nRhyme.\n</skill>'
    assert dialog.active_skills == ("rhyme",)
    await finished(dialog.send("another"))
    assert mock.requests[2].messages[0].text == '<skill name="rhyme">\nRhyme.\n</skill>'
    assert mock.requests[2].options.tools == ()
    await finished(dialog.deactivate_skill("rhyme").send("prose"))
    assert [spec.name for spec in mock.requests[3].options.tools] == ["activate_skill"]


async def test_a_skill_goes_with_the_message_in_which_the_model_activated_it() -> None:
    wanted = (call("c1", "activate_skill", name="rhyme"),)
    mock = MockProvider().queue_text("a").queue_tool_calls(*wanted).queue_text("b").queue_text("c")
    dialog = center_of(mock).new_dialog()
    for name in ("rhyme", "brief"):
        dialog.add_skill(Skill(name=name, description="d", instructions=f"Be {name}."))
    await finished(dialog.activate_skill("brief").send("hello"))
    await finished(dialog.send("a poem"))
    assert dialog.active_skills == ("brief", "rhyme")
    assert (await dialog.branch()).active_skills == ("brief", "rhyme")
    assert (await dialog.branch(3)).active_skills == ("brief",)
    copy = Center().new_dialog()
    copy.from_dict(dialog.to_dict())
    assert copy.clear_messages().active_skills == ("brief",)
    dialog.activate_skill("rhyme").truncate_to(3)  # a person decided, and it stays
    assert dialog.active_skills == ("brief", "rhyme")
    await finished(dialog.run())
    assert mock.requests[-1].messages[0].text.count("Be rhyme.") == 1


async def test_a_model_activates_no_more_skills_than_can_be_read_back() -> None:
    offered = [
        Skill(name="rhyme", description="d"),
        *(Skill(name=f"s{at}", description="d") for at in range(64)),
    ]
    mock = MockProvider().queue_tool_call("c1", "activate_skill", {"name": "rhyme"}).queue_text("a")
    dialog = center_of(mock).new_dialog()
    for each in offered:
        dialog.add_skill(each)
    for each in offered[1:]:
        dialog.activate_skill(each.name)
    await finished(dialog.send("a poem"))
    assert "64 skills are active, the most there can be; go on without this one" in dialog.messages[2].content
    assert len(dialog.active_skills) == 64


@pytest.mark.promise("dialog-027")
async def test_in_a_run_the_dialogs_tool_answers_in_place_of_the_centers() -> None:
    mock = MockProvider().queue_tool_call("c1", "greet", {}).queue_text("done")
    dialog = center_of(mock, Greeter("center")).new_dialog().add_tool(Greeter("dialog"))
    await finished(dialog.send("greet me"))
    assert dialog.messages[2].content == "hello from the dialog"


@tool
async def search(query: str) -> str:
    """Search the mail."""
    return f"found {query}"


@pytest.mark.promise("dialog-012", "dialog-017", "mcpconfig-002")
async def test_a_tool_server_of_the_dialog_is_connected_in_place_of_the_centers() -> None:
    mock = MockProvider().queue_tool_call("c1", "search", {"query": "x"}).queue_text("a").queue_text("b")
    source = FixedToolSource({"mail": [search]})
    async with Center(tool_source=source).add_provider(mock) as center:
        center.add_mcp(MCPServerConfig("mail", command="center"))
        dialog = center.new_dialog().add_mcp(MCPServerConfig("mail", command="dialog"))
        await finished(dialog.send("look"))
        assert dialog.messages[2].content == "found x"
        dialog.remove_mcp("mail")
        await finished(dialog.send("again"))
    assert [connection.closed for connection in source.opened] == [True, True]
    assert [spec.name for spec in mock.requests[-1].options.tools] == ["search"]


async def test_a_tool_server_that_cannot_be_reached_is_said_and_the_run_goes_on() -> None:
    mock = MockProvider().queue_text("a").queue_text("b")
    center = Center(tool_source=FixedToolSource({})).add_provider(mock)
    dialog = center.new_dialog().add_mcp(MCPServerConfig("mail", command="mail"))
    dialog.add_mcp(MCPServerConfig("off", enabled=False)).add_mcp(MCPServerConfig("empty"))
    notices: list[str] = []
    dialog.events.connect(lambda event: notices.append(getattr(event, "message", "")))
    await finished(dialog.send("look"))
    assert [notice for notice in notices if notice] == [
        "tool server 'mail' has no part in this: there is no tool server 'mail'; check its config",
        "tool server 'empty' has no part in this: command: is empty; name the program that is the server",
    ]
    alone = center_of(mock).new_dialog().add_mcp(MCPServerConfig("mail", command="mail"))
    events = [event async for event in alone.send("look")]
    assert "the center has no tool source" in getattr(events[1], "message", "")


async def test_servers_that_start_by_themselves_are_connected_with_the_center() -> None:
    source = FixedToolSource({"now": [search], "later": [search]})
    center = Center(tool_source=source).add_mcp(MCPServerConfig("now", command="a"))
    center.add_mcp(MCPServerConfig("later", command="b", auto_start=False))
    async with center:
        assert len(source.opened) == 1


@pytest.mark.promise("dialog-030")
def test_calls_that_change_a_dialog_can_be_chained() -> None:
    dialog = Center().new_dialog()
    same = (
        dialog.add_tool(add)
        .add_skill(skill("dialog"))
        .add_prompt(Prompt("hi", "Hi"))
        .add_mcp(MCPServerConfig("m"))
        .remove_tool("add")
        .remove_skill("greet")
        .remove_prompt("hi")
        .remove_mcp("m")
        .append_message("user", "Hi")
        .append_prompt("hi")
        .set_provider_id("p")
        .set_model_id("m")
        .set_capability_requirement(dialog.capability_requirement)
        .set_branch_from_id("")
        .set_system_text("Be brief.")
        .set_title("Talk")
        .truncate_to(1)
        .clear_messages()
    )
    assert same is dialog


def test_a_kit_over_another_hides_what_has_the_same_name() -> None:
    below = Kit().with_prompt(Prompt("a", "below")).with_prompt(Prompt("b", "below"))
    above = Kit().with_prompt(Prompt("b", "above")).with_prompt(Prompt("c", "above"))
    assert list(above.over(below).prompts.values()) == [
        Prompt("a", "below"),
        Prompt("b", "above"),
        Prompt("c", "above"),
    ]
    assert above.without_prompt("b").over(below).prompts["b"] == Prompt("b", "below")


def test_what_is_no_tool_is_refused_with_what_makes_it_one() -> None:
    def plain() -> None: ...

    with pytest.raises(UsageError, match="plain is no tool; decorate a function with @tool, or subclass"):
        Center().add_tool(cast("Tool", plain))
    with pytest.raises(UsageError, match="'x' is no tool"):
        ToolRegistry([cast("Tool", "x")])
