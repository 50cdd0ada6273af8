"""What servers answer becomes an observation a model can read."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.llm.json_schema import JsonSchema
from dialoom.mcp.errors import McpError, McpFacts
from dialoom.mcp.results import MAX_CARD_BYTES, clean_text, observation_of, observation_of_error
from dialoom.tools import ToolResult

PICTURE = {"type": "image", "mimeType": "image/png", "data": "A" * 4096}
LINK = {
    "type": "resource_link",
    "name": "notes",
    "uri": "file:///n.md",
    "mimeType": "text/markdown",
    "size": 9,
}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


@pytest.mark.promise("mcp-024")
@pytest.mark.parametrize(
    ("result", "observed"),
    [
        ({"content": [text("one"), text("two")]}, ToolResult(content="one\ntwo")),
        ({"content": []}, ToolResult(content="the tool returned nothing")),
        ({}, ToolResult(content="the tool returned nothing")),
        ({"content": "words"}, ToolResult(content="the tool returned nothing")),
        (
            {"content": [], "isError": True},
            ToolResult(content="the tool failed and said nothing", is_error=True),
        ),
        (
            {"content": [text("no such file")], "structuredContent": {"code": 2}, "isError": True},
            ToolResult(content='no such file\n{"code":2}', structured={"code": 2}, is_error=True),
        ),
        (
            {"content": [text('{"n": 1}')], "structuredContent": {"n": 1}},
            ToolResult(content='{"n": 1}', structured={"n": 1}),
        ),
        (
            {"content": [text("n is 1")], "structuredContent": {"n": 1}},
            ToolResult(content='n is 1\n{"n":1}', structured={"n": 1}),
        ),
        (
            {"content": [text("a file")], "structuredContent": {"content": "a file"}},
            ToolResult(content="a file", structured={"content": "a file"}),
        ),
        ({"structuredContent": [1, 2]}, ToolResult(content="[1,2]", structured=[1, 2])),
        ({"content": [text("red\x1b[31m\a")]}, ToolResult(content="red[31m")),
        ({"content": [5, None, text("kept")]}, ToolResult(content="kept")),
    ],
)
def test_text_and_structure_are_told_once(result: dict[str, Any], observed: ToolResult):
    assert observation_of(result, tool="x") == observed


@pytest.mark.parametrize(
    ("block", "line"),
    [
        (PICTURE, "[image image/png, 3 kB]"),
        ({"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}, "[audio audio/wav, 3 bytes]"),
        (LINK, "[link notes: file:///n.md, text/markdown, 9 bytes]"),
        ({"type": "resource_link", "title": "T", "uri": "u:1"}, "[link T: u:1]"),
        ({"type": "resource", "resource": {"uri": "u:1", "text": "said"}}, "[resource u:1]\nsaid"),
        ({"type": "resource", "resource": {"uri": "u:1", "blob": "AAAA"}}, "[resource u:1, binary, 3 bytes]"),
        ({"type": "hologram", "x": 1}, '{"type":"hologram","x":1}'),
        ({"type": "image"}, '{"type":"image"}'),
    ],
)
def test_what_is_no_text_is_named_for_the_model_and_kept_for_people(block: dict[str, Any], line: str):
    observed = observation_of({"content": [block]}, tool="x")
    assert msgspec.structs.replace(observed, files=()) == ToolResult(
        content=line, card={"type": "mcp_result", "blocks": [block]}
    )


def test_what_is_for_people_only_does_not_reach_the_model():
    secret = text("for your eyes", annotations={"audience": ["user"]})
    both = text("for both", annotations={"audience": ["user", "assistant"]})
    assert observation_of({"content": [secret, both]}, tool="x") == ToolResult(
        content="for both", card={"type": "mcp_result", "blocks": [secret, both]}
    )


def test_a_card_holds_so_much_and_no_more():
    big = {**PICTURE, "data": "A" * MAX_CARD_BYTES}
    card = observation_of({"content": [big, text("after")]}, tool="x").card
    named = text("[image image/png, 180 kB]")
    assert card == {"type": "mcp_result", "blocks": [named, text("after")]}


def test_an_answer_against_its_own_schema_is_told_as_that():
    output = JsonSchema({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    good = {"content": [text("1")], "structuredContent": {"n": 1}}
    assert not observation_of(good, tool="x", output=output).is_error
    broken = {"content": [text("said")], "structuredContent": {"n": "1"}}
    assert observation_of(broken, tool="x", output=output) == ToolResult(
        content=(
            'the tool x broke its own output schema: $.n: expected integer, got string\nsaid\n{"n":"1"}'
        ),
        structured={"n": "1"},
        is_error=True,
    )
    missing = observation_of({"content": [text("said")]}, tool="x", output=output)
    assert missing.content == "the tool x broke its own output schema: there is no structured content\nsaid"
    failed = observation_of({"content": [text("no")], "isError": True}, tool="x", output=output)
    assert failed == ToolResult(content="no", is_error=True)


@pytest.mark.parametrize(
    ("kind", "told", "retryable"),
    [
        ("timeout", "timeout", True),
        ("rpc", "protocol_error", False),
        ("too_large", "protocol_error", False),
        ("closed", "unavailable", True),
        ("unavailable", "unavailable", True),
        ("start", "unavailable", False),
        ("auth", "unavailable", False),
    ],
)
def test_a_call_that_did_not_get_through_says_what_a_model_can_decide_by(
    kind: Any, told: str, retryable: bool
):
    error = McpError("it is so", server="s", kind=kind, facts=McpFacts(stderr_tail=("secret",)))
    timeout = {"timeout": True} if told == "timeout" else {}
    facts = {"error": "it is so", **timeout, "tool": "x", "kind": told, "retryable": retryable}
    assert observation_of_error(error, tool="x") == ToolResult(
        content=msgspec.json.encode(facts).decode(),
        structured=facts,
        is_error=True,
        timeout=told == "timeout",
    )


@pytest.mark.parametrize(
    ("words", "clean"),
    [
        ("plain\nlines\t", "plain\nlines\t"),
        ("a\u202ebc\u2066d", "abcd"),
        ("in\u200bvisible\u2060\ufeff\u00ad", "invisible"),
        ("tag\U000e0041\U000e0101s", "tags"),
        ("bell\x07\x1b[2J", "bell[2J"),
        ("中文，没问题", "中文，没问题"),
    ],
)
def test_words_for_a_prompt_hide_nothing(words: str, clean: str):
    assert clean_text(words) == clean


def test_words_for_a_prompt_are_bounded():
    assert clean_text("a" * 5000) == "a" * 4095 + "…"
    assert clean_text("\u200b" * 10_000_000 + "hidden") == ""


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
_TYPES = st.sampled_from(["text", "image", "audio", "resource", "resource_link", "new"])
_BLOCK = st.fixed_dictionaries(
    {"type": _TYPES},
    optional=dict.fromkeys(("text", "data", "mimeType", "uri", "resource", "annotations", "size"), _JSON),
)


@given(st.dictionaries(st.sampled_from(["content", "structuredContent", "isError"]), _JSON), st.lists(_BLOCK))
def test_whatever_a_server_sends_gives_an_observation(result: dict[str, Any], blocks: list[dict[str, Any]]):
    for each in (result, {**result, "content": blocks}):
        observed = observation_of(each, tool="x")
        assert observed.content
        assert observed.is_error == (each.get("isError") is True)
