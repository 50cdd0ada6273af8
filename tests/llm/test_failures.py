"""What servers say when they fail, sorted by what a caller can do."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.llm.failures import (
    WireError,
    kind_of,
    may_retry,
    read_error_body,
    read_retry_after,
    read_wire_error,
    redact,
)
from dialoom.llm.profile import DEFAULT_PROFILE

NOW = 1_700_000_000.0


def kind(status: int | None, body: str) -> str:
    return kind_of(status, read_error_body(body.encode()), DEFAULT_PROFILE.quota_codes)


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, '{"error":{"message":"x","code":"context_length_exceeded"}}', "context_window"),
        (400, '{"error":{"code":400,"message":"m","type":"exceed_context_size_error"}}', "context_window"),
        (
            400,
            '{"object":"error","message":"This model\'s maximum context length is 2048 tokens.","code":400}',
            "context_window",
        ),
        (500, '{"error":"input length exceeds the context length"}', "context_window"),
        (400, '{"error":"prompt is too long: 9001 tokens"}', "context_window"),
        (413, "too many input tokens", "context_window"),
        (
            429,
            '{"error":{"message":"tokens per minute: context window budget","type":"tokens"}}',
            "rate_limit",
        ),
        (429, '{"error":{"message":"no credit","code":"insufficient_quota"}}', "quota"),
        (429, "slow down", "rate_limit"),
        (402, "", "quota"),
        (401, '{"error":{"message":"bad key"}}', "auth"),
        (403, "", "auth"),
        (407, "", "auth"),
        (400, '{"error":{"code":"invalid_api_key"}}', "auth"),
        (400, '{"error":{"code":"content_filter"}}', "content_filter"),
        (404, '{"error":{"message":"model not found"}}', "bad_request"),
        (408, "", "timeout"),
        (301, "", "invalid_response"),
        (500, "", "server_error"),
        (503, '{"error":{"message":"down","type":"overloaded_error"}}', "overloaded"),
        (529, "", "overloaded"),
        (None, '{"error":{"message":"backend worker died"}}', "server_error"),
        (None, '{"error":{"message":"slow","type":"rate_limit_error"}}', "rate_limit"),
    ],
)
def test_a_failure_is_sorted_by_its_code_its_words_and_its_status(
    status: int | None, body: str, expected: str
) -> None:
    assert kind(status, body) == expected


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error":{"message":"m","type":"T","code":502}}',
         WireError(message="m", words=frozenset({"t"}), status=502)),
        (b'{"error":"words"}', WireError(message="words")),
        (b'[{"error":{"message":"in a list","status":"UNAVAILABLE"}}]',
         WireError(message="in a list", words=frozenset({"unavailable"}))),
        (b'{"detail":"Not Found"}', WireError(message="Not Found")),
        (b'{"message":"plain","code":200}', WireError(message="plain")),
        (b'"only text"', WireError(message="only text")),
        (b"{}", WireError(message="")),
        (b"[]", WireError(message="")),
        (b"7", WireError(message="")),
        (b"Bad gateway\n", WireError(message="Bad gateway")),
        (b"\xff", WireError(message="\ufffd")),
        (b"<html><TITLE>502 Bad\ngateway</TITLE>", WireError(message="an HTML page (502 Bad gateway)")),
        (b" <!DOCTYPE html>", WireError(message="an HTML page (without a title)")),
        (b'{"error":' * 50 + b"1" + b"}" * 50, WireError(message="")),
        (b"[" * 100_000, WireError(message="[" * 100_000)),
    ],
    ids=lambda value: value[:40].decode("latin-1") if isinstance(value, bytes) else "",
)  # fmt: skip
def test_an_error_is_read_in_every_shape_servers_use(body: bytes, said: WireError) -> None:
    assert read_error_body(body) == said


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "message", "code", "type", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(json_values)
def test_no_json_breaks_the_reader_of_errors(value: object) -> None:
    assert isinstance(read_wire_error(value), WireError)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "86400"}, 86400.0),
        ({"retry-after-ms": "300", "retry-after": "9"}, 0.3),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:22 GMT"}, 2.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:00 GMT"}, 0.0),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e300"}, None),
        ({"retry-after": "Mon, 99 Nov 2023 99:99:99 GMT"}, None),
    ],
)
def test_the_wait_a_server_asks_for_is_read_in_seconds(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert read_retry_after(headers, NOW) == seconds


@given(st.text(max_size=30))
def test_no_retry_after_breaks_its_reader(value: str) -> None:
    wait = read_retry_after({"retry-after": value}, NOW)
    assert wait is None or 0 <= wait < 1e12


@pytest.mark.parametrize(
    ("status", "headers", "answer"),
    [
        (503, {"x-should-retry": "false"}, False),
        (400, {"x-should-retry": "TRUE"}, True),
        (501, {}, False),
        (500, {"x-should-retry": "maybe"}, None),
    ],
)
def test_a_server_may_say_itself_whether_to_ask_again(
    status: int, headers: dict[str, str], answer: bool | None
) -> None:
    assert may_retry(status, headers) is answer


@pytest.mark.parametrize(
    "text",
    [
        "bad key sk-ab***yz",
        "Bearer abc.def refused",
        "key my-own-secret",
        "gsk-1234567",
        "(sk-proj-Ab_1-2345)",
    ],
)
def test_nothing_that_looks_like_a_key_is_shown(text: str) -> None:
    shown = redact(text, ["my-own-secret", ""])
    assert "***" in shown
    assert not any(piece in shown for piece in ("ab*", "abc.def", "my-own", "1234567", "proj"))


def test_plain_words_are_shown_as_they_are() -> None:
    assert redact("the desk-top risk is low", []) == "the desk-top risk is low"
    assert msgspec.json.encode(WireError(message="m")) == b'{"message":"m","words":[],"status":null}'
