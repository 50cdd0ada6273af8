"""Entries: what a log holds, as values and in their stored form."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from dialoom.base.errors import UsageError
from dialoom.conversation import (
    CardEntry,
    Entry,
    TextEntry,
    entry_from_dict,
    entry_from_json,
    entry_to_dict,
    entry_to_json,
)
from dialoom.conversation.entries import MAX_JSON_CHARS
from dialoom.llm.messages import ToolCall
from tests.conversation.strategies import ENTRIES


@pytest.mark.promise("conversation-005", "storage-003")
@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_a_plain_line_is_stored_as_kind_role_and_content(role: str) -> None:
    stored = {"kind": "Text", "role": role, "content": "你好"}
    entry = entry_from_dict(stored)
    assert isinstance(entry, TextEntry)
    assert (entry.role, entry.content) == (role, "你好")
    assert entry_to_dict(entry) == stored
    assert list(entry_to_dict(entry)) == ["kind", "role", "content"]


@pytest.mark.promise("conversation-006", "storage-004", "storage-005")
def test_a_card_is_stored_as_kind_type_and_yaml_payload() -> None:
    entry = CardEntry(type="Table", payload="type: Table\nid: t1\ntitle: 结果\n")
    assert entry_to_dict(entry) == {
        "kind": "Special",
        "type": "Table",
        "payload": "type: Table\nid: t1\ntitle: 结果\n",
    }
    assert entry.card_id == "t1"


@pytest.mark.parametrize(
    "payload", ["", "id: 5", "[id]", "id: x\n: broken", "title: x", "a: " + "x" * 300_000 + "\nid: x"]
)
def test_a_card_without_a_readable_id_has_none(payload: str) -> None:
    assert CardEntry(type="Table", payload=payload).card_id is None


@pytest.mark.promise("storage-011")
@settings(max_examples=200, deadline=None)
@given(ENTRIES)
def test_every_entry_survives_its_stored_forms(entry: Entry) -> None:
    assert entry_from_dict(entry_to_dict(entry)) == entry
    assert entry_from_json(entry_to_json(entry)) == entry
    assert "\n" not in entry_to_json(entry)


def test_everything_an_answer_had_is_kept() -> None:
    entry = TextEntry(
        role="assistant",
        content="Gridding",
        reasoning="cell first",
        status="cancelled",
        tool_calls=(ToolCall(id="1", name="grid", arguments={"cell": 25}, raw='{"cell": 25}'),),
    )
    assert json.loads(entry_to_json(entry)) == {
        "kind": "Text",
        "role": "assistant",
        "content": "Gridding",
        "reasoning": "cell first",
        "status": "cancelled",
        "toolCalls": [{"id": "1", "name": "grid", "arguments": {"cell": 25}, "raw": '{"cell": 25}'}],
    }


def test_half_characters_never_get_in() -> None:
    call = ToolCall(id="\ud800", name="n\udc00", raw="\ud800", arguments={"k\ud800": ["\ud800"]})
    entry = TextEntry(
        role="user",
        content="a\ud800",
        reasoning="\udfff",
        tool_calls=(call,),
        meta={"\ud800": "\ud83d\ude00"},
    )
    assert entry == TextEntry(
        role="user",
        content="a\ufffd",
        reasoning="\ufffd",
        tool_calls=(ToolCall(id="\ufffd", name="n\ufffd", raw="\ufffd", arguments={"k\ufffd": ["\ufffd"]}),),
        meta={"\ufffd": "😀"},
    )
    assert CardEntry(type="a\ud800", payload="\ud800") == CardEntry(type="a\ufffd", payload="\ufffd")


def test_arguments_no_file_can_hold_leave_their_raw_text() -> None:
    deep: dict[str, object] = {}
    for _ in range(60):
        deep = {"a": deep}
    for arguments in (deep, {"x": float("nan")}):
        call = ToolCall(id="1", name="t", raw="as it came", arguments=arguments)
        (kept,) = TextEntry(role="assistant", content="", tool_calls=(call,)).tool_calls
        assert kept == ToolCall(id="1", name="t", raw="as it came", problem="invalid_json")


def test_an_entry_of_another_product_keeps_what_we_do_not_know() -> None:
    stored = {"kind": "Text", "role": "User", "content": "hi", "seq": 3, "meta": {"a": 1}}
    assert entry_from_dict(stored) == TextEntry(role="user", content="hi", meta={"a": 1, "seq": 3})
    card = {"kind": "Special", "type": "Plot", "payload": "", "at": "now"}
    assert entry_from_dict(card) == CardEntry(type="Plot", payload="", meta={"at": "now"})


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({}, "Object missing required field `kind`"),
        ({"kind": "Patch"}, "Invalid value 'Patch'"),
        ({"kind": "Text", "role": "user"}, "Object missing required field `content`"),
        ({"kind": "Text", "role": "robot", "content": ""}, "Invalid enum value 'robot'"),
        ({"kind": "Text", "role": 5, "content": ""}, "Expected `str`, got `int`"),
        ({"kind": "Text", "role": "user", "content": "", "meta": 5, "x": 1}, "Expected `object`, got `int`"),
        ({"kind": "Special", "type": "Form", "payload": {}}, "Expected `str`, got `object`"),
        ({"kind": ["Text"]}, "Expected `str`"),
    ],
)
def test_what_is_no_entry_is_refused(stored: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match="not an entry of a conversation") as refusal:
        entry_from_dict(stored)
    assert message in str(refusal.value)


def test_meta_must_be_json() -> None:
    for meta in ({"a": {1}}, {"a": float("inf")}, {"a": [{"b": float("nan")}]}):
        with pytest.raises(UsageError, match="meta of a text entry: "):
            TextEntry(role="user", content="", meta=meta)
    with pytest.raises(UsageError, match="meta of a card entry: "):
        CardEntry(type="T", payload="", meta={"a": object()})


@pytest.mark.parametrize("text", ["", "[]", '{"kind": "Text"', '"\\ud800"', "[" * 100_000])
def test_json_that_is_no_object_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"not readable as json: [^\n]*$"):
        entry_from_json(text)


def test_json_is_bounded() -> None:
    with pytest.raises(UsageError, match="over the limit"):
        entry_from_json(" " * (MAX_JSON_CHARS + 1))


CALL = ToolCall(id="c1", name="add", arguments={}, raw="{}")


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"role": "robot"}, "role of a TextEntry is one of system, user, assistant, tool; this is 'robot'"),
        ({"status": "odd"}, "status of a TextEntry is one of None, cancelled, incomplete; this is 'odd'"),
        ({"content": None}, "content of a TextEntry is str, and this is NoneType"),
        ({"tool_call_id": 5}, "tool_call_id of a TextEntry is str, and this is int"),
        ({"is_error": "yes"}, "is_error of a TextEntry is bool, and this is str"),
        ({"meta": [1]}, "meta of a TextEntry is Mapping, and this is list"),
        ({"tool_calls": ({"id": "c1"},)}, "a call of a TextEntry is ToolCall, and this is dict"),
        ({"tool_calls": (replace(CALL, id=5),)}, "id of a ToolCall is str, and this is int"),
        (
            {"tool_calls": (replace(CALL, problem="odd"),)},
            "problem of a ToolCall is one of None, truncated, ",
        ),
    ],
)
def test_what_could_not_be_read_back_is_no_entry(fields: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        TextEntry(**{"role": "assistant", "content": "hi", **fields})


def test_a_card_whose_payload_is_no_text_is_no_entry() -> None:
    with pytest.raises(UsageError, match="payload of a CardEntry is str, and this is dict"):
        CardEntry(type="Table", payload={"title": "x"})  # type: ignore[arg-type] - on purpose


def test_half_characters_are_replaced_in_every_text_of_an_entry() -> None:
    call = replace(CALL, id="\ud800", name="\ud800", raw="\ud800", provider_id="\ud800")
    entry = TextEntry(
        role="tool", content="\ud800", tool_calls=(call,), tool_call_id="\ud800", tool_name="\ud800"
    )
    assert entry_from_json(entry_to_json(entry)) == entry
    assert "\ud800" not in repr(entry)
