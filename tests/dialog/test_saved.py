"""A dialog as a dict and back, in this center and in another, and hostile dicts refused."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.conversation import CardEntry, TextEntry
from dialoom.dialog import Center, Prompt, Skill
from dialoom.dialog.saved import read_saved
from dialoom.llm import Capability, MockProvider
from dialoom.mcp.config import MCPServerConfig
from tests.dialog.talk import add, center_of, finished, said

FIELDS = {
    "providerId": "p",
    "modelId": "m",
    "capabilityRequirement": ["text", "tools"],
    "system": "Be brief.",
    "branchFrom": "older",
    "activeSkills": ["s"],
    "guides": [],
    "skills": [{"name": "s", "description": "d"}],
    "prompts": [{"name": "q", "template": "Q"}],
}


@pytest.mark.promise(
    "dialog-112", "dialog-113", "dialog-114", "dialog-115", "dialog-116", "dialog-118", "dialog-003"
)
def test_a_dialog_comes_back_from_its_dict_with_its_id() -> None:
    dialog = Center().new_dialog(capability_requirement=Capability.TEXT | Capability.TOOLS).add_tool(add)
    dialog.add_skill(Skill(name="s", description="d")).add_prompt(Prompt("q", "Q"))
    dialog.add_mcp(MCPServerConfig("files", command="files"))
    dialog.set_provider_id("p").set_model_id("m").set_branch_from_id("older").set_system_text("Be brief.")
    dialog.activate_skill("s")
    dialog.append_message("user", "one").append_message(CardEntry(type="Table", payload="title: T"))
    before = dialog.id
    saved = dialog.to_dict()
    assert dialog.id == before
    assert saved.pop("mcps") == [MCPServerConfig("files", command="files").to_dict()]
    assert saved["prompts"] == [{"name": "q", "template": "Q", "role": "user", "defaults": {}}]
    assert [skill["name"] for skill in saved["skills"]] == ["s"]  # type: ignore[index] - a list of objects
    assert "'add'" not in str(saved)
    assert saved["messages"] == [
        {"kind": "Text", "role": "user", "content": "one"},
        {"kind": "Special", "type": "Table", "payload": "title: T"},
    ]
    center = Center()
    twin = center.new_dialog()
    assert twin.from_dict(dialog.to_dict()) is True
    assert (twin.id, center.dialog(before)) == (before, twin)
    assert twin.to_dict() == dialog.to_dict()
    assert (twin.messages, twin.skills, twin.mcps) == (dialog.messages, dialog.skills, dialog.mcps)
    assert twin.tool_names == ()


@pytest.mark.promise("dialog-117")
def test_without_an_id_a_dialog_keeps_its_own() -> None:
    dialog = Center().new_dialog().append_message("user", "gone")
    before = dialog.id
    assert dialog.from_dict({"messages": [{"kind": "Text", "role": "user", "content": "hi"}]}) is False
    assert (dialog.id, said(dialog)) == (before, [("user", "hi")])


@pytest.mark.promise("dialog-119")
async def test_a_tool_that_was_not_added_again_is_unknown_to_the_model() -> None:
    mock = MockProvider().queue_tool_call("c1", "add", {"a": 1, "b": 2}).queue_text("done")
    saved = Center().new_dialog().add_tool(add).append_message("user", "1 + 2?").to_json()
    dialog = center_of(mock).new_dialog()
    dialog.from_json(saved)
    await finished(dialog.run())
    assert dialog.messages[2] == TextEntry(
        role="tool",
        content='{"error":"unknown_tool","tool":"add","tools":[]}',
        tool_call_id="c1",
        tool_name="add",
        is_error=True,
    )


async def test_a_restored_dialog_is_stored_under_its_id_and_keeps_its_system_texts() -> None:
    center = center_of(MockProvider().queue_text("yes"))
    source = center.new_dialog().append_message("system", "Be kind.").append_message("user", "hi")
    saved = source.to_dict()
    await center.remove_dialog(source.id)
    dialog = center.new_dialog()
    dialog.from_dict(saved)
    await finished(dialog.run())
    (header,) = (await center.list_dialogs()).headers
    assert header.id == saved["id"]
    assert center.default_provider is not None
    assert [m.text for m in center.default_provider.requests[0].messages] == ["Be kind.", "hi"]  # type: ignore[attr-defined] - a mock


def test_an_id_that_is_open_already_is_refused_and_nothing_changes() -> None:
    center = Center()
    one, other = center.new_dialog(), center.new_dialog().append_message("user", "stays")
    with pytest.raises(UsageError, match=f"dialog {one.id} is open here already; close or remove it first"):
        other.from_dict(one.to_dict())
    assert said(other) == [("user", "stays")]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"id": 7}, "the id of a saved dialog is not text; write it in quotes, or leave it out"),
        ({"id": "../../etc"}, "cannot name a conversation"),
        ({"messages": {"a": 1}}, "the messages of a saved dialog are not a list; mend or leave them out"),
        ({"messages": ["text"]}, "message 0 of a saved dialog is not an object; mend or leave it out"),
        ({"messages": [{"kind": "Text"}]}, "message 0 of a saved dialog: not an entry of a conversation"),
        ({"summary": {"entries": -1}}, "these are not a dialog's settings: Expected `int` >= 0"),
        ({"guides": [-1]}, "these are not a dialog's settings: Expected `int` >= 0"),
        ({"taught": {"s": "early"}}, "these are not a dialog's settings: Expected `int`, got `str`"),
        ({"begun": {"turn": "x" * 300, "entries": 1}}, "a name or the system text is too long; shorten it"),
        ({"begun": {"turn": "x", "entries": -1}}, "these are not a dialog's settings: Expected `int` >= 0"),
        ({"providerId": 7}, "these are not a dialog's settings: Expected `str`, got `int`"),
        ({"system": "x" * 300_000}, "a name or the system text is too long; shorten it"),
        ({"capabilityRequirement": ["sight"]}, "there is no capability 'sight'"),
        ({"skills": [{"name": "a"}]}, "this is not a kit: Object missing required field `description`"),
        ({"skills": [{"name": "", "description": "d"}]}, "a skill has a name of 1 to 64 characters"),
        ({"prompts": [{"name": "a", "template": "b"}] * 1001}, "a kit has 1001 prompts; 1000 are allowed"),
        ({"mcps": ["text"]}, "this is not a kit: Expected `object`, got `str`"),
        ({"mcps": [{"name": 7}]}, "the name of an mcp server is not text"),
    ],
)
def test_a_hostile_dict_is_refused_with_its_place_and_changes_nothing(
    fields: dict[str, object], why: str
) -> None:
    dialog = Center().new_dialog().append_message("user", "stays").set_model_id("m")
    with pytest.raises(UsageError, match=why):
        dialog.from_dict({**FIELDS, **fields})
    assert (said(dialog), dialog.model_id) == ([("user", "stays")], "m")


@pytest.mark.parametrize("nothing", [None, [], "id: 7"])
def test_what_is_no_object_is_neither_a_dialog_nor_settings(nothing: Any) -> None:
    with pytest.raises(UsageError, match=r"a saved dialog is an object, and this is .*; give what to_dict"):
        Center().new_dialog().from_dict(nothing)
    with pytest.raises(UsageError, match="what a center is set to is an object, and this is"):
        Center().from_dict(nothing)


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from([*FIELDS, "id", "messages", "mcps"]), json))
def test_any_json_object_is_a_dialog_or_a_refusal(fields: dict[str, object]) -> None:
    _read_or_refused(lambda: read_saved(fields))


@given(st.text(max_size=100))
def test_any_text_is_a_dialog_or_a_refusal(text: str) -> None:
    _read_or_refused(lambda: Center().new_dialog().from_json(text))


def _read_or_refused(read: Callable[[], object]) -> None:
    try:
        read()
    except UsageError:
        return
