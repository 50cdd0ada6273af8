"""What servers send amiss, read as far as it can be: lines that are no message or several, broken answers."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import (
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
    methods,
)

from dialoom.mcp import Oversize, Skipped
from dialoom.mcp.sdk.parse import LONGEST_SALVAGE, find_id, parse_line
from dialoom.mcp.sdk.repair import MOST_PENDING, FrameRepair

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


def answer(request_id: int, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def as_json(line: bytes) -> list[Any]:
    return [message.model_dump(by_alias=True, exclude_unset=True) for message in parse_line(line).messages]


@pytest.mark.parametrize(
    ("line", "messages", "noise"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', [answer(1)], ""),
        (b"Server ready on stdio", [], "Server ready on stdio"),
        (b'INFO done {"jsonrpc": "2.0", "id": 1, "result": {}}', [answer(1)], "INFO done"),
        (b'{"jsonrpc":"2.0","id":1,"result":{}} [12 ms]', [answer(1)], "[12 ms]"),
        (
            b'{"id":1,"jsonrpc":"2.0","result":{}}{ "jsonrpc":"2.0","id":2,"result":{}}',
            [answer(1), answer(2)],
            "",
        ),
        (
            b'[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}},7]',
            [answer(1), answer(2)],
            "",
        ),
        (b'{"method": {"jsonrpc":"2.0","id":1,"result":{}}', [answer(1)], '{"method" :'),
        (b'{"result": "not one of ours"}', [], '{"result": "not one of ours"}'),
        (b"\xff\xfe", [], "\ufffd\ufffd"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xff"}}', [answer(1, a="\ufffd")], ""),
        (b"[" * 5000, [], "[" * 5000),
    ],
)
def test_a_line_gives_its_messages_and_the_words_around_them(
    line: bytes, messages: list[Any], noise: str
) -> None:
    assert as_json(line) == messages
    assert parse_line(line).noise.replace(" ", "") == noise.replace(" ", "")


def test_a_long_line_that_is_no_message_is_not_searched() -> None:
    line = b"x" * LONGEST_SALVAGE + b'{"jsonrpc":"2.0","id":1,"result":{}}'
    assert parse_line(line) == ((), f"{len(line)} bytes that are no message")


@given(st.text(alphabet=st.characters(blacklist_characters="{[\n\r", blacklist_categories=("Cs",))), JSON)
def test_words_before_a_message_do_not_hide_it(words: str, value: Any) -> None:
    line = words.encode() + json.dumps(answer(7, value=value)).encode()
    assert as_json(line) == [answer(7, value=value)]


@pytest.mark.parametrize(
    ("head", "tail", "found"),
    [
        (b'{"jsonrpc":"2.0","id":41,"result":{', b"}}", 41),
        (b'{"jsonrpc":"2.0","result":{', b'},"id": "a-1"}', "a-1"),
        (b'{"id":41,', b"}}", 41),
        (b"xxxxx", b"yyyyy", None),
        (b'{"jsonrpc":"2.0","result":{"id":7,', b'"id":8}}', None),
    ],
)
def test_the_id_of_a_message_that_is_too_long_is_found_at_its_ends(
    head: bytes, tail: bytes, found: Any
) -> None:
    assert find_id(Oversize(head, tail, 99)) == found


def mended(method: str, result: Any, *, modern: bool = False) -> tuple[Any, FrameRepair]:
    """What becomes of `result` as the answer to `method`."""
    repair = FrameRepair()
    params = {"_meta": META} if modern else {}
    repair.sent(JSONRPCRequest(jsonrpc="2.0", id=1, method=method, params=params))
    message = repair.received(JSONRPCResponse(jsonrpc="2.0", id=1, result=result))
    assert isinstance(message, JSONRPCResponse)
    return message.result, repair


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize(
    "method", ["tools/call", "tools/list", "resources/list", "resources/templates/list", "prompts/list"]
)
@given(
    result=st.dictionaries(
        st.sampled_from(
            [
                "tools",
                "resources",
                "resourceTemplates",
                "prompts",
                "content",
                "structuredContent",
                "isError",
                "nextCursor",
                "_meta",
                "ttlMs",
                "resultType",
            ]
        ),
        JSON,
    )
)
def test_whatever_a_server_answers_the_sdk_can_read_what_is_left(
    method: str, modern: bool, result: Any
) -> None:
    left, _ = mended(method, result, modern=modern)
    methods.parse_server_result(method, "2026-07-28" if modern else "2025-11-25", left)


def test_what_is_right_is_not_touched() -> None:
    right = {
        "tools": [{"name": "a", "inputSchema": {"type": "object", "x-own": 1}}],
        "nextCursor": "2",
        "x": 1,
    }
    left, repair = mended("tools/list", right)
    assert left == right
    assert list(repair.dropped) == []


def test_a_listing_keeps_its_cursor_and_its_good_items() -> None:
    broken = {"name": "b"}
    left, repair = mended(
        "prompts/list",
        {"prompts": [{"name": "a"}, broken, {"name": 7}], "nextCursor": "2", "_meta": {"x": 1}, "ttlMs": 5},
    )
    assert left == {
        "prompts": [{"name": "a"}, broken],
        "nextCursor": "2",
        "_meta": {"x": 1},
        "ttlMs": 5,
        "resultType": "complete",
        "cacheScope": "private",
    }
    assert list(repair.dropped) == [Skipped("prompts", "", "prompts.0.name: Input should be a valid string")]


def test_a_new_listing_forgets_what_the_last_one_left_out_and_the_next_page_does_not() -> None:
    _, repair = mended("tools/list", {"tools": [{"name": "broken"}]})
    next_page = JSONRPCRequest(jsonrpc="2.0", id=2, method="tools/list", params={"cursor": "2"})
    repair.sent(next_page)
    assert [each.name for each in repair.dropped] == ["broken"]
    repair.sent(JSONRPCRequest(jsonrpc="2.0", id=3, method="prompts/list"))
    assert [each.name for each in repair.dropped] == ["broken"]
    repair.sent(JSONRPCRequest(jsonrpc="2.0", id=4, method="tools/list"))
    assert list(repair.dropped) == []


@pytest.mark.parametrize(
    ("modern", "structured"), [(True, {"structuredContent": 7}), (False, {})], ids=["newest", "older"]
)
def test_structure_that_a_revision_does_not_know_becomes_words(modern: bool, structured: Any) -> None:
    left, _ = mended(
        "tools/call", {"structuredContent": 7, "isError": "yes", "_meta": {"x": 1}}, modern=modern
    )
    content = [] if modern else [{"type": "text", "text": "7"}]
    assert left == {
        "resultType": "complete",
        "content": content,
        "isError": True,
        "_meta": {"x": 1},
        **structured,
    }


def test_content_that_is_no_list_is_one_block() -> None:
    assert mended("tools/call", {"content": "just words"})[0]["content"] == [
        {"type": "text", "text": "just words"}
    ]


def test_a_greeting_without_a_name_or_abilities_is_taken() -> None:
    left, repair = mended("initialize", {"protocolVersion": "2025-06-18", "capabilities": None})
    assert left == {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "serverInfo": {"name": "", "version": ""},
    }
    assert repair.capabilities == {}


def test_an_answer_whose_id_came_back_as_text_belongs_to_its_request() -> None:
    repair = FrameRepair()
    repair.sent(JSONRPCRequest(jsonrpc="2.0", id=3, method="tools/list"))
    assert repair.only_pending == 3
    message = repair.received(JSONRPCResponse(jsonrpc="2.0", id="3", result={"tools": [{"name": "broken"}]}))
    assert isinstance(message, JSONRPCResponse)
    assert message.result["tools"] == []
    assert repair.only_pending is None


def test_what_is_over_is_forgotten_and_what_never_ends_is_bounded() -> None:
    repair = FrameRepair()
    for number in range(MOST_PENDING + 1):
        repair.sent(JSONRPCRequest(jsonrpc="2.0", id=number, method="tools/call"))
    assert repair.only_pending is None
    for number in range(2, MOST_PENDING + 1):
        cancelled = {"requestId": number}
        repair.sent(JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=cancelled))
    assert repair.only_pending == 1
    problem = {"code": -1, "message": "no"}
    repair.received(jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", "id": 1, "error": problem}))
    assert repair.only_pending is None
    nameless = JSONRPCError.model_validate({"jsonrpc": "2.0", "id": None, "error": problem})
    assert repair.received(nameless) is nameless
    notice = JSONRPCNotification(jsonrpc="2.0", method="notifications/progress")
    repair.sent(notice)
    assert repair.received(notice) is notice
