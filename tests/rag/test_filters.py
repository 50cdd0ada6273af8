"""Conditions as data: what they mean, in memory and in SQL, and which are refused."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.rag.errors import InvalidOptionsError
from dialoom.rag.filters import (
    And,
    Condition,
    Contains,
    Eq,
    Gt,
    In,
    Lt,
    Ne,
    Not,
    Or,
    VisibleTo,
    parse_condition,
)
from dialoom.rag.types import Chunk, MetaValue
from dialoom.stores.sqlite_index import SqliteVectorStore

FIELDS = st.sampled_from(["lang", "标签", "page", "doc_id", "acl", "$.x.y", "it's"])
TEXTS = st.sampled_from(["", "en", "e", "中文", '["en"]', "d1", "1"])
NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([0.5, -1.5, 2.0, 1e300, 2**62]))
SCALARS = st.one_of(st.none(), st.booleans(), TEXTS, NUMBERS)
VALUES = st.one_of(SCALARS, st.lists(TEXTS, max_size=2))
SINGLE = st.one_of(
    st.builds(Eq, FIELDS, SCALARS),
    st.builds(Ne, FIELDS, SCALARS),
    st.builds(In, FIELDS, st.lists(SCALARS, max_size=3).map(tuple)),
    st.builds(Gt, FIELDS, st.one_of(TEXTS, NUMBERS)),
    st.builds(Lt, FIELDS, st.one_of(TEXTS, NUMBERS)),
    st.builds(Contains, FIELDS, TEXTS),
    st.builds(VisibleTo, st.lists(TEXTS, max_size=2).map(tuple)),
)
CONDITIONS = st.recursive(
    SINGLE,
    lambda inner: st.one_of(
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Not, inner),
    ),
    max_leaves=6,
)
METADATA = st.lists(
    st.dictionaries(st.sampled_from(["lang", "标签", "acl", "$.x.y", "it's"]), VALUES, max_size=3),
    min_size=1,
    max_size=5,
)


def piece(number: int, metadata: dict[str, MetaValue]) -> Chunk:
    page = number if number % 2 else None
    return Chunk(id=str(number), doc_id=f"d{number}", text="lamp", page=page, metadata=metadata)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteVectorStore]:
    with SqliteVectorStore(tmp_path_factory.mktemp("filters") / "index.sqlite") as store:
        yield store


@settings(max_examples=200, deadline=None)
@given(metadata=METADATA, condition=CONDITIONS)
def test_sql_lets_the_same_chunks_through_as_the_condition_itself(
    index: SqliteVectorStore, metadata: list[dict[str, MetaValue]], condition: Condition
) -> None:
    chunks = [piece(number, each) for number, each in enumerate(metadata)]
    wanted = [chunk.id for chunk in chunks if condition(chunk)]
    index.clear()
    index.add(chunks, np.ones((len(chunks), 2), np.float32))
    found = [hit.chunk.id for hit in index.search(np.ones(2, np.float32), 9, where=condition)]
    worded = [hit.chunk.id for hit in index.search_words("lamp", 9, where=condition)]
    assert (found, worded) == (wanted, wanted)


def test_a_page_is_a_number_and_an_id_a_text(tmp_path: Path) -> None:
    with SqliteVectorStore(tmp_path / "index.sqlite") as store:
        store.add([piece(1, {})], np.ones((1, 2), np.float32))
        wanted = [Eq("page", 1), Eq("page", "1"), Eq("id", "1"), Eq("id", 1), Gt("page", 0), Gt("id", 0)]
        found = [bool(store.search_words("lamp", 1, where=condition)) for condition in wanted]
    assert (
        found == [condition(piece(1, {})) for condition in wanted] == [True, False, True, False, True, False]
    )


@given(CONDITIONS)
def test_a_condition_comes_back_from_its_json(condition: Condition) -> None:
    assert parse_condition(msgspec.json.encode(condition)) == condition
    assert parse_condition(msgspec.to_builtins(condition)) == condition


CHUNK = piece(3, {"lang": "en", "year": 2024, "tags": ["a", "b"], "draft": False})


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (Eq("lang", "en"), True),
        (Eq("missing", None), True),
        (Eq("tags", "a"), False),
        (Ne("lang", "en"), False),
        (Ne("missing", "x"), True),
        (In("lang", ("zh", "en")), True),
        (In("lang", ()), False),
        (Gt("year", 2023.5), True),
        (Gt("lang", 1), False),
        (Lt("lang", "f"), True),
        (Lt("missing", 1), False),
        (Contains("tags", "a"), True),
        (Contains("lang", "n"), True),
        (Contains("year", "2"), False),
        (Eq("page", 3), True),
        (And(()), True),
        (Or(()), False),
        (Not(Eq("draft", False)), False),
    ],
)
def test_a_condition_says_what_it_means(condition: Condition, holds: bool) -> None:
    assert condition(CHUNK) is holds


def nested(depth: int) -> bytes:
    return b'{"op":"not","of":' * depth + b'{"op":"eq","field":"a","value":1}' + b"}" * depth


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"{", "cannot be read"),
        (b"\xff", "cannot be read"),
        (b'{"op": "like", "field": "a", "value": "b"}', "cannot be read"),
        (b'{"op": "eq", "field": "a", "value": 1, "or": 2}', "cannot be read"),
        ({"op": "eq", "field": "a", "value": [1]}, "cannot be read"),
        ({"op": "eq", "field": 'a"b', "value": 1}, "cannot name the field"),
        ({"op": "eq", "field": "", "value": 1}, "cannot name the field"),
        ({"op": "eq", "field": "a", "value": "\0"}, "NUL"),
        ({"op": "gt", "field": "a", "value": float("inf")}, "cannot compare with inf"),
        ({"op": "lt", "field": "a", "value": 2**63}, "below 2"),
        ({"op": "in", "field": "a", "values": list(range(300))}, "256 values"),
        (nested(40), "16 deep"),
        (nested(100_000), "16 deep"),
        ({"op": "or", "of": [{"op": "eq", "field": "a", "value": 1}] * 300}, "256 conditions"),
    ],
)
def test_a_condition_that_cannot_be_used_is_refused(source: bytes | dict[str, object], message: str) -> None:
    with pytest.raises(InvalidOptionsError, match=message):
        parse_condition(source)


def test_one_text_is_not_taken_for_the_names_of_who_asks() -> None:
    with pytest.raises(InvalidOptionsError, match=r"names are a tuple of texts; write \('finance',\)"):
        VisibleTo("finance")
