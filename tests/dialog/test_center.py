"""The center: makes, opens, lists and removes dialogs, and keeps its settings in a file."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dialoom.base.errors import StoreError, UsageError
from dialoom.conversation import ConversationNotFoundError, MemoryConversationStore
from dialoom.dialog import (
    Center,
    DialogClosedError,
    DialogNotFoundError,
    NotLoadedError,
    Prompt,
    Skill,
    Stores,
    open_center,
)
from dialoom.graph import MemoryCheckpointStore
from dialoom.llm import Capability, Gate, MockProvider, TextDelta
from dialoom.mcp.config import MCPServerConfig
from tests.dialog.talk import add, center_of, finished, said, soon


def memory() -> Stores:
    return Stores(MemoryConversationStore(), MemoryCheckpointStore())


@pytest.mark.promise("dialog-004")
async def test_one_id_names_the_dialog_its_conversation_and_its_place_in_the_center() -> None:
    stores = memory()
    center = Center(stores)
    dialog = center.new_dialog().append_message("user", "hi")
    await dialog.save()
    assert center.dialog(dialog.id) is dialog
    assert (await stores.conversations.load(dialog.id)).id == dialog.id


@pytest.mark.promise("dialog-005")
async def test_a_removed_dialog_is_out_of_the_table_and_of_the_store_and_says_so() -> None:
    gate = Gate()
    center = center_of(MockProvider().queue_text("Hello.").queue_events(TextDelta("Hal"), gate))
    dialog, other = center.new_dialog(), center.new_dialog()
    await finished(dialog.send("hi"))
    handle = dialog.send("more")
    await soon(gate.reached.wait())
    await soon(center.remove_dialog(dialog.id))
    assert (center.dialogs, (await soon(handle)).stop_reason) == ((other,), "cancelled")
    assert (await center.list_dialogs()).headers == ()
    why = "this dialog was removed from its center; make or open another"
    for use in (dialog.run, dialog.resume, dialog.clear_messages, lambda: dialog.add_tool(add), dialog.act):
        with pytest.raises((DialogClosedError, TypeError)):
            use()
    with pytest.raises(DialogClosedError, match=why):
        dialog.send("still there?")
    with pytest.raises(DialogClosedError, match=why):
        await dialog.save()
    with pytest.raises(ConversationNotFoundError):
        await center.remove_dialog(dialog.id)
    with pytest.raises(DialogNotFoundError, match=f"no dialog '{dialog.id}' is open here; await open"):
        center.dialog(dialog.id)
    await center.remove_dialog(other.id)


async def test_a_dialog_opens_in_another_center_with_its_choices_and_messages() -> None:
    stores, skill = memory(), Skill(name="s", description="d", instructions="Obey.")
    dialog = center_of(MockProvider().queue_text("Hello."), stores=stores).new_dialog().add_tool(add)
    dialog.set_capability_requirement(Capability.TEXT | Capability.TOOLS).set_system_text("Be brief.")
    dialog.add_skill(skill).activate_skill("s").set_title("Greetings")
    await finished(dialog.send("hi"))
    mock = MockProvider().queue_text("Again.")
    later = await center_of(mock, stores=stores).open(dialog.id)
    assert (said(later), later.header.title) == (said(dialog), "Greetings")
    assert (later.skills, later.active_skills, later.tool_names) == ((skill,), ("s",), ())
    await finished(later.send("again"))
    assert mock.requests[0].messages[0].text == 'Be brief.\n\n<skill name="s">\nObey.\n</skill>'
    later.deactivate_skill("s")
    assert later.active_skills == ()
    with pytest.raises(UsageError, match="there is no skill 't' here; there are: s"):
        later.activate_skill("t")


async def test_more_than_can_be_read_back_is_refused_where_it_is_given() -> None:
    center = Center()
    dialog = center.new_dialog()
    for at in range(65):
        dialog.add_skill(Skill(name=f"s{at}", description="d"))
    for at in range(64):
        dialog.append_message("system", f"Rule {at}.").activate_skill(f"s{at}")
    few = "a dialog has at most 64 system texts; put some of them together in one"
    with pytest.raises(UsageError, match=few):
        dialog.append_message("system", "One more.")
    with pytest.raises(UsageError, match="64 skills are active here, the most there can be; switch one off"):
        dialog.activate_skill("s64")
    dialog.activate_skill("s0").append_message("user", "hi")
    assert (dialog.message_count, len(dialog.active_skills)) == (65, 64)
    saved = dialog.to_dict()
    saved["messages"] = [{"kind": "Text", "role": "system", "content": "Be brief."}] * 65
    with pytest.raises(UsageError, match=few):
        center.new_dialog().from_dict(saved)
    dialog.truncate_to(63).append_message("system", "In their place.")
    assert dialog.message_count == 64


async def test_dialogs_are_listed_and_found_by_what_was_said() -> None:
    center = Center()
    for words in ("About rivers", "About wells"):
        await center.new_dialog().append_message("user", words).save()
    page = await center.list_dialogs(query="wells")
    assert [header.title for header in page.headers] == ["About wells"]
    assert len((await center.list_dialogs(limit=1)).headers) == 1


async def test_a_dialog_in_which_nothing_happened_leaves_no_trace() -> None:
    stores = memory()
    async with Center(stores) as center:
        await center.new_dialog().load()
        await center.release_dialog(center.new_dialog().id)
        center.new_dialog().set_title("plans")
        await center.new_dialog().save()  # asked for
    page = await stores.conversations.page()
    assert sorted(header.title for header in page.headers) == ["", "plans"]


async def test_opening_twice_gives_the_same_dialog_until_it_is_released() -> None:
    center = Center()
    dialog = center.new_dialog().append_message("user", "hi")
    assert await center.open(dialog.id) is dialog
    await center.release_dialog(dialog.id)
    assert (center.dialogs, dialog.is_closed) == ((), True)
    again = await center.open(dialog.id)
    assert (again is dialog, said(again)) == (False, [("user", "hi")])
    with pytest.raises(DialogNotFoundError):
        await center.release_dialog("unknown")
    with pytest.raises(ConversationNotFoundError):
        await center.open("unknown")


async def test_of_a_long_dialog_the_end_is_read_and_the_rest_when_it_is_asked_for() -> None:
    stores = memory()
    dialog = Center(stores).new_dialog()
    for at in range(500):
        dialog.append_message("user" if at % 2 == 0 else "assistant", str(at))
    await dialog.append_message("user", "last").save()
    later = await Center(stores).open(dialog.id)
    assert (later.message_count, later.last_message.content) == (501, "last")
    assert (later.message(450).content, later.find_last_assistant_message()) == ("450", 499)
    with pytest.raises(NotLoadedError, match="holds the newest 60 of 501 messages; await its load"):
        _ = later.messages
    with pytest.raises(NotLoadedError):
        later.message(0)
    await later.load()
    assert later.messages == dialog.messages


async def test_what_cannot_be_known_from_the_end_of_a_long_dialog_is_said() -> None:
    stores = memory()
    dialog = Center(stores).new_dialog().append_message("system", "Be kind.").append_message("assistant", "x")
    for at in range(100):
        dialog.append_message("user", str(at))
    await dialog.save()
    mock = MockProvider().queue_text("yes")
    later = await center_of(mock, stores=stores).open(dialog.id)
    with pytest.raises(NotLoadedError):
        later.find_last_assistant_message()
    await finished(later.truncate_to(20).run())
    assert [message.text for message in mock.requests[0].messages][:2] == ["Be kind.", "x"]


def test_the_name_of_a_provider_is_refused_in_its_place() -> None:
    name: Any = "ollama"
    with pytest.raises(
        UsageError, match=r"a provider of the center.*give a provider, such as OpenAIProvider"
    ):
        Center().add_provider(name)


def test_settings_are_kept_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "center.json"
    center = Center().add_provider(MockProvider(id="a")).add_provider(MockProvider(id="b"), default=True)
    center.enable_provider("a", enabled=False).add_tool(add).add_skill(Skill(name="s", description="d"))
    center.add_prompt(Prompt("p", "P")).add_mcp(MCPServerConfig("m", command="m"))
    center.save_settings(path)
    later = Center().add_provider(MockProvider(id="a")).add_provider(MockProvider(id="b")).add_tool(add)
    later.load_settings(path)
    later.load_settings(tmp_path / "none.json")
    assert later.to_dict() == center.to_dict()
    assert (later.tool_names, later.provider_ids) == (("add",), ("a", "b"))
    assert later.default_provider is later.get_provider("b")
    assert later.remove_provider("b").default_provider is None
    assert [each.name for each in path.parent.iterdir()] == ["center.json"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1]", r"cannot read .*center.json: Expected `object`, got `array`; mend or remove it"),
        ("{", r"cannot read .*center.json: Input data was truncated; mend or remove it"),
        ('{"format": 2}', "these settings are of format 2; 1 is known here"),
        ('{"defaultProvider": 1}', "these are not settings of a center: Expected `str`, got `int`"),
        ('{"skills": 1}', "this is not a kit"),
    ],
)
def test_a_settings_file_that_is_wrong_is_refused_and_changes_nothing(
    tmp_path: Path, text: str, why: str
) -> None:
    path = tmp_path / "center.json"
    path.write_text(text, encoding="utf-8")
    center = Center().add_prompt(Prompt("p", "P"))
    with pytest.raises((StoreError, UsageError), match=why):
        center.load_settings(path)
    assert center.prompts == (Prompt("p", "P"),)


def test_settings_that_cannot_be_written_say_where(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match=r"cannot read .*center.json: Not a directory; check the path"):
        Center().save_settings(tmp_path / "file" / "center.json")


async def test_leaving_a_center_stores_what_is_due() -> None:
    stores = memory()
    async with Center(stores) as center:
        dialog = center.new_dialog().append_message("user", "hi")
    assert (dialog.is_closed, center.dialogs) == (True, ())
    assert len((await stores.conversations.load(dialog.id)).entries) == 1


@contextmanager
def in_memory(folder: Path) -> Generator[Stores]:
    folder.mkdir()
    yield memory()


async def test_a_center_comes_from_one_file_and_leaves_what_else_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "center.json"
    stores = {"kind": "memory", "folder": "talks"}
    path.write_text(
        json.dumps({"stores": stores, "prompts": [{"name": "p", "template": "P"}]}), encoding="utf-8"
    )

    def make(stores: Stores) -> Center:
        return Center(stores).add_tool(add)

    async with open_center(path, {"memory": in_memory}, make=make) as center:
        assert (center.prompts, center.tool_names) == ((Prompt("p", "P"),), ("add",))
        center.add_prompt(Prompt("q", "Q")).save_settings(path)
    assert (tmp_path / "talks").is_dir()
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert (saved["stores"], [each["name"] for each in saved["prompts"]]) == (stores, ["p", "q"])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{}", "names no stores: Object missing required field `stores`; say their kind and folder"),
        ('{"stores": {"kind": "tape"}}', "asks for 'tape' stores; known here are: memory"),
        (
            '{"stores": {"kind": "memory", "path": "x"}}',
            "names no stores: Object contains unknown field `path`",
        ),
    ],
)
async def test_a_file_that_names_no_usable_stores_says_so(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "center.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=why):
        async with open_center(path, {"memory": in_memory}):
            pass


async def test_one_dialog_that_cannot_be_stored_keeps_no_other_from_it() -> None:
    stores = memory()
    center = Center(stores)
    other = center.new_dialog()
    other.from_dict({"id": "taken"})
    await Center(stores).new_dialog().append_message("user", "mine").save()
    taken = Center(stores).new_dialog()
    taken.from_dict({"id": "taken"})
    await taken.save()
    last = center.new_dialog().append_message("user", "hi")
    with pytest.raises(StoreError, match="conversation taken exists"):
        await center.aclose()
    assert (other.is_closed, last.is_closed) == (True, True)
    assert len((await stores.conversations.load(last.id)).entries) == 1


async def test_several_centers_live_side_by_side() -> None:
    one, other = Center().add_tool(add), Center()
    assert (one.new_dialog().get_tool("add"), other.new_dialog().get_tool("add")) == (add, None)
