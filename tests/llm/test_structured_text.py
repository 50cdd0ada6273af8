"""JSON is found between words, and shown while it grows."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.llm import MockProvider, TextDelta, user
from dialoom.llm.json_schema import JsonSchema
from dialoom.llm.structured import PartialJson, find_json
from dialoom.llm.structured.partial import MAX_TEXT

NUMBER = JsonSchema({"type": "integer"})
OBJECT = JsonSchema({"type": "object", "required": ["a"]})
ANY = JsonSchema(True)
CHARS = 'ab0"\\{}[]:, \n\u2028你😀'
"""Few characters but telling ones; the tables of all of them take a fresh checkout seconds to make."""
JSON_OBJECTS = st.dictionaries(
    st.text(CHARS, max_size=5),
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.text(CHARS, max_size=8)
    | st.lists(st.integers()),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize(
    ("text", "schema", "found"),
    [
        ("7", NUMBER, 7),
        ("null", ANY, None),
        ('```json\n{"a":1}\n```', OBJECT, {"a": 1}),
        ('First {"b":1}, then {"a":2} and {"a":3}.', OBJECT, {"a": 2}),
        ('[1] {"b":{"a":5}}', OBJECT, {"b": {"a": 5}}),  # nothing matches: the longest is told about
        ('{"a":NaN} {"a":1}', OBJECT, {"a": 1}),
    ],
)
def test_the_first_value_that_matches_is_found(text: str, schema: JsonSchema, found: Any) -> None:
    value = find_json(text, schema)
    assert value is not None
    assert value.value == found


@pytest.mark.parametrize("text", ["", "no json", "{", "{" * 5000, "[" * 200_000])
def test_without_json_nothing_is_found(text: str) -> None:
    assert find_json(text, ANY) is None


def test_a_partial_answer_shows_what_it_holds_so_far() -> None:
    view = PartialJson()
    seen: list[Any] = []
    for piece in ("Here:", ' ```json\n{"city"', ': "Ro', 'me", "days": 1', "2}", "\n```"):
        view.feed(piece)
        seen.append(view.value)
    assert seen == [
        None,
        {},
        {"city": "Ro"},
        {"city": "Rome", "days": 1},
        {"city": "Rome", "days": 12},
        {"city": "Rome", "days": 12},
    ]


@pytest.mark.promise("llm-054")
async def test_a_structured_answer_is_parsed_bit_by_bit_while_it_streams() -> None:
    llm = MockProvider().queue_text('{"city": "Rome", "days": 3}', chunks=9)
    view, shown = PartialJson(), []
    async with llm.stream([user("Where?")]) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                view.feed(event.text)
                shown.append(view.value)
    assert shown[-1] == {"city": "Rome", "days": 3}
    assert {"city": "Ro"} in shown
    assert len(shown) == 9


@settings(deadline=None)  # the first example imports the parser
@given(JSON_OBJECTS, st.integers(1, 7))
def test_however_it_is_cut_the_end_is_the_value_itself(value: dict[str, Any], size: int) -> None:
    text = json.dumps(value)
    view = PartialJson()
    for at in range(0, len(text), size):
        view.feed(text[at : at + size])
        assert isinstance(view.value, dict)
    assert view.value == value


@settings(deadline=None)
@given(st.text(CHARS, max_size=60))
def test_no_text_breaks_the_view(text: str) -> None:
    view = PartialJson()
    for char in text:
        view.feed(char)
    assert view.value is None or isinstance(view.value, dict | list)


def test_what_is_no_json_has_no_value_and_the_text_is_bounded() -> None:
    view = PartialJson()
    view.feed("{nonsense")
    assert view.value is None
    long = PartialJson()
    long.feed('["' + "x" * (MAX_TEXT + 5))
    shown: Any = long.value
    assert len(shown[0]) == MAX_TEXT - 2
