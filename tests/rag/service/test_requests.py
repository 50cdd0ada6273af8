"""Who may ask, and what counts as a request."""

import json
import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.rag import InMemoryVectorStore
from dialoom.rag.service import RagService, RequestError, ServiceAccess, access_from
from dialoom.rag.service.requests import AnyRequest
from tests.rag.service.test_service import opened, settings


def refused(service: RagService, line: bytes) -> tuple[object, str]:
    with pytest.raises(RequestError) as caught:
        service.accept(line)
    return caught.value.id, caught.value.code


@pytest.mark.promise("service-018", "service-020", "service-021", "service-030")
async def test_every_request_has_to_carry_the_token() -> None:
    service = await opened(InMemoryVectorStore(), access=ServiceAccess(token="sesame"))
    for auth in (
        b"",
        b'"auth":"",',
        b'"auth":"sesamE",',
        b'"auth":5,',
        b'"auth":null,',
        b'"auth":["sesame"],',
    ):
        assert refused(service, b'{"id":7,%b"op":"health"}' % auth) == (7, "unauthorized")
        assert refused(service, b'{"id":"x",%b"op":"nonsense"}' % auth) == ("x", "unauthorized")
    assert service.accept(b'{"id":7,"auth":"sesame","op":"health"}').id == 7
    assert "sesame" not in repr(ServiceAccess(token="sesame"))


@pytest.mark.promise("service-019")
def test_the_token_comes_from_a_flag_or_from_the_environment() -> None:
    env = {"DIALOOM_RAG_TOKEN": "new", "QAGENT_RAG_TOKEN": "old"}
    assert access_from(env).token == "new"
    assert access_from({"DIALOOM_RAG_TOKEN": "", "QAGENT_RAG_TOKEN": "old"}).token == "old"
    assert access_from(env, token="flag").token == "flag"
    assert access_from({}) == ServiceAccess()
    assert access_from({"QAGENT_RAG_READ_ONLY": " TRUE "}).read_only
    assert access_from({"DIALOOM_RAG_READ_ONLY": "0"}, read_only=True).read_only
    assert not access_from({"DIALOOM_RAG_READ_ONLY": "no"}).read_only
    with pytest.raises(UsageError, match="DIALOOM_RAG_READ_ONLY is 'ja'; set it to 1 or 0"):
        access_from({"DIALOOM_RAG_READ_ONLY": "ja"})
    assert ServiceAccess(token="sesame").__rich_repr__() == [("token", "set"), ("read_only", False)]


@pytest.mark.parametrize(
    ("line", "name", "code"),
    [
        (b"", None, "bad_json"),
        (b"nonsense", None, "bad_json"),
        (b"[1]", None, "bad_json"),
        (b'{"id": 5, "op": ', 5, "bad_json"),
        (b'{"id": "a b" nonsense', None, "bad_json"),
        (b'{"id": "\xff", nonsense', None, "bad_json"),
        (b'{"id": "a b", "op": nonsense', "a b", "bad_json"),
        (b'{"id": 1, "x": ' + b"[" * 100_000, 1, "bad_json"),
        (b'{"id": 1}', 1, "bad_request"),
        (b'{"id": 1, "op": "query", "query": "a", "top_k": 2}', 1, "bad_request"),
        (b'{"id": 1, "op": "health", "\xff": 2}', 1, "bad_request"),
        (b'{"id": 1, "op": "nonsense"}', 1, "unknown_op"),
        (b'{"id": 1, "op": 5}', 1, "unknown_op"),
        (b'{"id": 1, "op": "query"}', 1, "bad_request"),
        (b'{"id": 1, "op": "query", "query": 5}', 1, "bad_request"),
        (b'{"id": 1, "op": "query", "query": "\xff"}', 1, "bad_request"),
        (b'{"id": 1, "op": "query", "query": "a", "session_id": ""}', 1, "bad_request"),
        (b'{"id": 1, "op": "ingest", "paths": []}', 1, "bad_request"),
        (b'{"id": 1, "op": "ingest", "paths": "kb"}', 1, "bad_request"),
        (b'{"id": 1, "op": "search", "query": "a", "k": 0}', 1, "bad_request"),
        (b'{"id": true, "op": "health"}', None, "bad_request"),
        (b'{"id": {}, "op": "health"}', None, "bad_request"),
    ],
)
async def test_what_is_no_request_is_refused_with_its_id(line: bytes, name: object, code: str) -> None:
    service = await opened(InMemoryVectorStore())
    assert refused(service, line) == (name, code)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            b'{"op": "query", "query": "a", "sesion_id": "u"}',
            "'sesion_id', which is not known; perhaps session_id is meant",
        ),
        (b'{"op": "shutdown", "at once\\n": 1}', "'at once', which is not known; there are op, auth, id"),
        (b'{"query": "a"}', "Object missing required field `op`"),
        (
            b'{"op": "fly"}',
            "Invalid value 'fly' - at `$.op`; there are health, stats, ingest, query, search, sync",
        ),
    ],
)
async def test_a_field_or_an_op_that_is_not_known_or_missing_is_named(line: bytes, told: str) -> None:
    service = await opened(InMemoryVectorStore())
    with pytest.raises(RequestError, match=re.escape(told)):
        service.accept(line)


@given(
    st.one_of(
        st.binary(max_size=200),
        st.text(max_size=200).map(str.encode),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=9),
            lambda inner: (
                st.lists(inner) | st.dictionaries(st.sampled_from(["id", "op", "auth", "query"]), inner)
            ),
        ).map(lambda value: json.dumps(value).encode()),
    )
)
def test_any_line_is_a_request_or_is_refused(line: bytes) -> None:
    service = RagService(settings(InMemoryVectorStore()))
    with suppress(RequestError):
        assert isinstance(service.accept(line), AnyRequest)
