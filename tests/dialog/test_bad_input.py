"""What a dialog refuses: each in one line that says what to do, and nothing was changed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dialoom.base.errors import StoreError, UsageError
from dialoom.dialog import (
    Center,
    Dialog,
    DialogEvent,
    FixedToolSource,
    Kit,
    NoUsableModelError,
    Prompt,
    Skill,
    StreamDelta,
    ToolProgressed,
    events,
    json_file,
    tool_servers,
)
from dialoom.dialog.feed import MAX_JOINED, MAX_WAITING, Feed
from dialoom.dialog.saved import read_saved
from dialoom.llm import Capability, MockProvider, TextDelta
from dialoom.mcp.config import MCPServerConfig
from tests.dialog.talk import center_of, kind, said, soon

FULL = Kit(skills={f"s{at}": Skill(name=f"s{at}", description="d") for at in range(1000)})


@pytest.mark.parametrize(
    ("use", "why"),
    [
        (lambda dialog: dialog.set_provider_id("x" * 201), "has 201 characters; names have at most 200"),
        (lambda dialog: dialog.set_system_text("x" * 262_145), "a system text of 262145 characters is over"),
        (lambda dialog: dialog.set_branch_from_id("a/b"), "'a/b' cannot name a conversation"),
        (lambda dialog: dialog.from_json("[1]"), "object"),
        (lambda dialog: dialog.add_prompt(Prompt("", "x")), "a prompt has a name of 1 to 200 characters"),
        (
            lambda dialog: dialog.add_prompt(Prompt("p", "x", "robot")),
            "no Prompt: Invalid enum value 'robot'",
        ),
        (lambda dialog: dialog.add_prompt(Prompt("p", "x", defaults={"a": 5})), "Expected `str`, got `int`"),
        (
            lambda dialog: dialog.add_skill(Skill(name="s", description="d", mode="odd")),
            "no Skill: Invalid enum value 'odd'",
        ),
        (lambda dialog: dialog.add_skill("s"), "this is no Skill: Expected `object`, got `str`"),
        (
            lambda dialog: dialog.set_kit(FULL.with_skill(Skill(name="s", description="d"))),
            "a kit has at most 1000 items of a kind; remove one before",
        ),
        (lambda dialog: dialog.set_capability_requirement("text"), "such as Capability.TEXT; this is 'text'"),
        (lambda dialog: dialog.truncate_to(0.5), "cannot keep 0.5 entries; give 0 or more"),
        (lambda dialog: dialog.truncate_to(False), "cannot keep False entries; give 0 or more"),
        (lambda dialog: dialog.stream_delta.connect("f"), "stream_delta calls a function, and 'f' is none"),
    ],
)
def test_a_choice_that_cannot_be_kept_is_refused(use: Callable[[Dialog], object], why: str) -> None:
    dialog = Center().new_dialog().append_message("user", "stays")
    before = dialog.to_dict()
    with pytest.raises(UsageError, match=why):
        use(dialog)
    assert dialog.to_dict() == before


async def test_words_that_say_nothing_open_no_branch() -> None:
    center = Center()
    dialog = center.new_dialog().append_message("user", "hi")
    with pytest.raises(UsageError, match="there is nothing to send; write a text"):
        await dialog.edit(0, " ")
    assert center.dialogs == (dialog,)


async def test_nothing_is_sent_and_nothing_is_gone_on_with() -> None:
    dialog = center_of(MockProvider().queue_text("Hello.")).new_dialog()
    with pytest.raises(UsageError, match="there is nothing to send; write a text"):
        dialog.send("  \n")
    with pytest.raises(UsageError, match="there is nothing to send; write a text"):
        dialog.send(5)  # type: ignore[arg-type] - from a program without types
    with pytest.raises(UsageError, match="this dialog has nothing to go on with; send it a text"):
        dialog.resume()
    empty = await soon(dialog.run())
    assert str(empty.error) == "this dialog is empty; send it a text, or append a message before it runs"
    assert dialog.messages == ()
    await soon(dialog.send("hi"))
    with pytest.raises(UsageError, match="nothing to go on with"):
        dialog.resume()


async def test_a_requirement_that_no_model_meets_is_named_and_the_words_stay() -> None:
    dialog = center_of(MockProvider()).new_dialog(capability_requirement=Capability.AUDIO_IN)
    result = await soon(dialog.send("listen"))
    assert isinstance(result.error, NoUsableModelError)
    assert "can do audio_in (it has mock-model)" in str(result.error)
    assert said(dialog) == [("user", "listen")]


async def test_too_many_tool_servers_are_a_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_servers, "MAX_CONNECTIONS", 1)
    mock = MockProvider().queue_text("a").queue_text("b")
    center = Center(tool_source=FixedToolSource({"a": [], "b": []})).add_provider(mock)
    dialog = center.new_dialog()
    for name in ("a", "b"):
        dialog.add_mcp(MCPServerConfig(name, command=name))
    seen: list[DialogEvent] = []
    dialog.events.connect(seen.append)
    await soon(dialog.send("hi"))
    (notice,) = [event.message for event in seen if isinstance(event, events.Noticed)]
    assert notice.endswith("1 tool servers are connected; switch some off")


def test_a_file_that_is_too_large_or_cannot_be_replaced_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_file, "MAX_BYTES", 10)
    (tmp_path / "large.json").write_text('{"a": "long enough"}', encoding="utf-8")
    with pytest.raises(StoreError, match=r"large.json is larger than 10 bytes; mend or remove it"):
        json_file.read_json(tmp_path / "large.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match=r"cannot write .*folder: .*; check the folder"):
        json_file.write_json(tmp_path / "folder", {})
    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder", "large.json"]


def test_a_settings_file_may_be_named_by_text_and_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "center.json"
    Center().add_prompt(Prompt("q", "Q")).save_settings(str(path))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    center = Center()
    center.load_settings(str(path))
    assert [prompt.name for prompt in center.prompts] == ["q"]


async def test_a_dialog_that_replaces_none_can_be_opened_again() -> None:
    center = Center()
    dialog = center.new_dialog().set_branch_from_id(None)  # type: ignore[arg-type] - as people write it
    await dialog.append_message("user", "hi").save()
    await center.release_dialog(dialog.id)
    assert (await center.open(dialog.id)).branch_from_id == ""


def test_a_saved_dialog_with_too_many_messages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialoom.dialog.saved.MAX_MESSAGES", 1)
    with pytest.raises(UsageError, match="a saved dialog has 2 messages; 1 are allowed"):
        read_saved({"messages": [{}, {}]})


async def test_a_reader_that_stands_still_holds_nobody_up_and_costs_no_more_than_its_bound() -> None:
    feed, size = Feed(), 0
    for seq in range(3 * MAX_WAITING):
        feed.put(StreamDelta(run_id="r", seq=seq, text="x" * MAX_JOINED))
        feed.put(ToolProgressed(run_id="r", seq=seq, call_id="c", tool="t", value=seq))
    feed.put(events.RunFinished(run_id="r", seq=1, stop_reason="finished"))
    read = [event async for event in feed]
    size = len(read)
    assert (size, kind(read[-1])) == (MAX_WAITING + 1, "run.finished")


async def test_pieces_that_were_not_read_yet_are_joined() -> None:
    dialog = center_of(MockProvider().queue_events(*(TextDelta(f"{at} ") for at in range(50)))).new_dialog()
    handle = dialog.send("count")
    feed = aiter(handle)
    await soon(handle)
    read = [event async for event in feed]
    (joined,) = [event for event in read if isinstance(event, StreamDelta)]
    assert joined.text == "".join(f"{at} " for at in range(50))
