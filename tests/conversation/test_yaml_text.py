"""YAML: what we write, everyone reads the same; what would harm, nobody reads here."""

import io
import json
import math
import subprocess
import sys
from datetime import UTC, date, datetime

import pytest
import ruamel.yaml
import ryaml
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.conversation import dump_yaml, load_yaml
from dialoom.conversation.plain import plain_value
from dialoom.testing.conversation_contract import AWKWARD_TEXTS
from tests.conversation.strategies import TEXTS, VALUES

DOCUMENTS = st.dictionaries(TEXTS, VALUES, max_size=5) | st.lists(VALUES, max_size=5)


@settings(max_examples=120, deadline=None)
@given(DOCUMENTS)
def test_what_is_written_reads_back_unchanged_here_and_elsewhere(document: object) -> None:
    written = dump_yaml(document)
    expected = plain_value(document)
    assert load_yaml(written) == expected
    assert ryaml.loads(written) == expected
    assert ruamel_reads(written) == expected
    assert yaml.safe_load(written) == expected


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_a_text_alone_stays_that_text(text: str) -> None:
    assert load_yaml(dump_yaml(text)) == plain_value(text)
    assert load_yaml(dump_yaml({"key": text}), scalars="text") == {"key": plain_value(text)}


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=80) | st.text(alphabet="[]{}:,-&*!|>'\"%@`#?a1 \n\t\ud800\x00", max_size=80))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    refusal = ""
    try:
        load_yaml(text)
    except UsageError as error:
        refusal = str(error)
    assert "\n" not in refusal


def test_people_read_their_own_words() -> None:
    document = {
        "title": "网格参数",
        "note": "第一行\nsecond: line",
        "answer": "no",
        "size": "1e3",
        "count": 25,
    }
    assert dump_yaml(document) == (
        'title: 网格参数\nnote: |-\n  第一行\n  second: line\nanswer: "no"\nsize: "1e3"\ncount: 25\n'
    )


def test_numbers_words_and_dates_are_those_of_yaml_1_2() -> None:
    text = (
        "[~, null, true, False, 017, 0o17, 0x1F, -1, 1.5, 1e3, .5, -.inf, yes, 1_000, 1:30, 2026-11-30, <<]"
    )
    assert load_yaml(text) == [
        *(None, None, True, False, 17, 15, 31, -1, 1.5, 1000.0, 0.5, -math.inf),
        *("yes", "1_000", "1:30", "2026-11-30", "<<"),
    ]
    assert math.isnan(load_yaml(".nan"))
    assert load_yaml("!!str 5") == "5"
    assert load_yaml("! 5") == "5"
    assert load_yaml("!!map {a: !!seq [b]}") == {"a": ["b"]}
    assert load_yaml("") is None
    assert load_yaml("a:") == {"a": None}
    assert load_yaml("1: one\ntrue: yes") == {"1": "one", "true": "yes"}


def test_unquoted_scalars_can_all_be_text() -> None:
    assert load_yaml("[1, ~, 'a', true]", scalars="text") == ["1", "~", "a", "true"]


def test_tuples_dates_and_nested_values_are_written() -> None:
    moment = datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert load_yaml(dump_yaml({"a": (1, [2]), "d": date(2026, 11, 30), "t": moment})) == {
        "a": [1, [2]],
        "d": "2026-11-30",
        "t": "2026-11-30T12:00:00+00:00",
    }
    assert load_yaml(dump_yaml([math.inf, -math.inf])) == [math.inf, -math.inf]


def test_a_value_used_twice_is_written_twice() -> None:
    shared = {"a": [1]}
    assert load_yaml(dump_yaml([shared, shared])) == [shared, shared]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d\ude00"', "😀"),
        (r'"a\n\uD83D\uDE00b \U0001F600 \u00e9 \x41"', "a\n😀b 😀 é A"),
        (r'{"k\ud83d\ude00": ["\ud83d\ude00\ud83d\ude01", x]}', {"k😀": ["😀😁", "x"]}),
        (
            '\ufeff{a: 1,\r\n b: "\\ud83d\r\n  \\ude00é😀", c: "\\ud83d\\ude00"}',
            {"a": 1, "b": "� �é😀", "c": "😀"},
        ),
        (r"'\ud83d\ude00'", r"\ud83d\ude00"),
        (r"\ud83d\ude00", r"\ud83d\ude00"),
        ('|-\n  {"a": "\\ud83d\\ude00"}', r'{"a": "\ud83d\ude00"}'),
        (
            "['it''s \\ud83d\\ude00', \"it's \\\"\\ud83d\\ude00\\\"\"] # \"\\ud83d",
            [r"it's \ud83d\ude00", 'it\'s "😀"'],
        ),
        (r'"\\ud83d\\ude00"', r"\ud83d\ude00"),
        (r'"\\\ud83d\ude00\\"', "\\😀\\"),
        (r'"\ud83d" "', None),
        (r'"a\ud83d"', "a�"),
        (r'"\ude00\ud83d\ud83d\ude00\ud83d\u0041"', "��😀�A"),
    ],
)
def test_a_character_written_as_two_escapes_is_one_where_escapes_count(text: str, value: object) -> None:
    if value is None:
        with pytest.raises(UsageError, match="not readable as yaml: line 1: "):
            load_yaml(text)
    else:
        assert load_yaml(text) == value


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, max_size=5))
def test_all_that_json_escapes_is_read_as_what_it_says(texts: list[str]) -> None:
    """Python's `json` writes as .NET does: each character beyond U+FFFF in halves."""
    assert load_yaml(json.dumps(texts)) == plain_value(texts)


def test_a_text_full_of_halves_is_read_in_the_time_of_its_length() -> None:
    assert load_yaml('["' + r"\ud83d\ude00" * 200_000 + '"]') == ["😀" * 200_000]


BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "yaml line 2 has an alias; write the value out"),
        ("a: 1\na: 2", "yaml line 2 has the key 'a' a second time"),
        ("{[1]: 2}", "yaml line 1 has a key that is not text"),
        ("{{a: 1}: 2}", "yaml line 1 has a key that is not text"),
        ("[" * 65 + "]" * 65, "yaml line 1 has more than 64 levels"),
        ("--- 1\n--- 2", "yaml line 2 has a second document; keep one"),
        ("!!python/object:os.system x", "yaml line 1 has the tag tag:yaml.org,2002:python/object:os.syst…"),
        ("!!timestamp 2026-11-30", "yaml line 1 has the tag tag:yaml.org,2002:timestamp; write plain values"),
        ("!!set {a}", "yaml line 1 has the tag tag:yaml.org,2002:set; write plain values"),
        ("a: [1", "not readable as yaml: line 2: did not find expected ',' or ']'"),
        ("\x00", "not readable as yaml: "),
        ("\ud800", "not readable as yaml: "),
        ("9" * 5000, "not readable as yaml: Exceeds the limit"),
    ],
)
def test_what_could_harm_or_mislead_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        load_yaml(text)
    assert str(refusal.value).startswith(message)


def test_size_is_bounded_before_anything_is_built() -> None:
    with pytest.raises(UsageError, match="yaml of 11 characters is over the limit of 10"):
        load_yaml("x" * 11, max_chars=10)
    with pytest.raises(UsageError, match="yaml line 1 has more than 20 nodes; split it"):
        load_yaml("[" + "1," * 50 + "]", max_nodes=20)


def test_what_yaml_cannot_hold_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    for value, message in (
        ({1: "x"}, "the key 1 is not text"),
        ({"a": {1, 2}}, "a set"),
        (loop, "too many levels"),
        (10**5000, "cannot be written as yaml"),
    ):
        with pytest.raises(UsageError, match=message):
            dump_yaml(value)


PURE = """
import json, sys, yaml
del yaml.CSafeLoader, yaml.CSafeDumper
from dialoom.conversation import dump_yaml, load_yaml
documents, written = json.load(sys.stdin)
json.dump([[dump_yaml(each) for each in documents], [load_yaml(each) for each in written]], sys.stdout)
"""


def test_without_libyaml_the_same_is_written_and_read() -> None:
    texts = [plain_value(each) for each in AWKWARD_TEXTS]
    documents = [{"text": each, "nested": [[each], {"k": each}]} for each in texts]
    written = [*map(dump_yaml, documents), *map(json.dumps, documents)]
    done = subprocess.run(
        [sys.executable, "-c", PURE],
        input=json.dumps([documents, written]),
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    pure_written, pure_read = json.loads(done.stdout)
    assert pure_read == [*documents, *documents]
    assert [load_yaml(each) for each in pure_written] == documents


def ruamel_reads(text: str) -> object:
    return ruamel.yaml.YAML(typ="safe", pure=True).load(io.StringIO(text))
