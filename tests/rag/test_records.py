"""JSONL files."""

import json

import pytest

from dialoom.rag.errors import LoadError
from tests.rag.reading import read, read_one, warned


def lines(*records: object) -> bytes:
    return "\n".join(json.dumps(record) for record in records).encode()


@pytest.mark.promise("rag-008")
def test_each_record_is_a_document_named_by_file_and_id() -> None:
    loaded = read("faq.jsonl", lines({"id": "a", "text": "one"}, {"text": "two"}, {"id": 7, "text": "three"}))
    assert [(document.id, document.text) for document in loaded.documents] == [
        ("/kb/faq.jsonl#a", "one"),
        ("/kb/faq.jsonl#2", "two"),
        ("/kb/faq.jsonl#7", "three"),
    ]
    assert loaded.documents[0].metadata == {"source": "/kb/faq.jsonl", "record": "a", "line": 1}


def test_the_text_is_title_question_text_answer_and_then_what_else_is_said() -> None:
    record = {
        "id": "q",
        "lang": "en",
        "answer": "Three days.",
        "question": "How long?",
        "title": "Refunds",
        "priority": 2,
        "open": True,
        "tags": ["x", "y"],
        "none": None,
        "long": "word " * 60,
        "deep": {"k": "v" * 300},
        "source": "ignored",
    }
    document = read_one("faq.jsonl", lines(record))
    assert document.text.split("\n")[:4] == ["Refunds", "How long?", "Three days.", "lang: en"]
    assert document.metadata == {
        "source": "/kb/faq.jsonl",
        "record": "q",
        "line": 1,
        "lang": "en",
        "title": "Refunds",
        "priority": 2,
        "open": True,
        "tags": '["x", "y"]',
        "none": None,
    }


def test_bad_lines_are_named_by_number_and_skipped() -> None:
    data = b'{"id":"a","text":"one"}\n{"id":\n\n[1]\n{"n": 1}\n{"id":"c","text":"three"}\n'
    loaded = read("a.jsonl", data)
    assert [document.metadata["record"] for document in loaded.documents] == ["a", "c"]
    assert [(warning.code, warning.line) for warning in loaded.warnings] == [
        ("bad_line", 2),
        ("bad_line", 4),
        ("bad_line", 5),
    ]


def test_of_two_records_with_one_id_the_first_is_kept() -> None:
    loaded = read("a.jsonl", lines({"id": "a", "text": "first"}, {"id": "a", "text": "second"}))
    assert [document.text for document in loaded.documents] == ["first"]
    assert [(warning.code, warning.line) for warning in loaded.warnings] == [("duplicate_id", 2)]


def test_a_json_array_is_read_as_well() -> None:
    loaded = read("a.jsonl", b'[{"id":"a","text":"one"},\n {"id":true,"text":"two"}]')
    assert [document.id for document in loaded.documents] == ["/kb/a.jsonl#a", "/kb/a.jsonl#2"]
    for broken in (b'[{"id":', b"[1]", b"[" * 100_000):
        with pytest.raises(LoadError, match="not a JSON array") as caught:
            read("a.jsonl", broken)
        assert caught.value.code == "corrupt"


def test_half_a_surrogate_pair_is_repaired() -> None:
    document = read_one("a.jsonl", b'{"id":"\\ud83d","text":"bad \\ud83d end","x\\ud83d":"y"}')
    assert (document.id, document.text) == ("/kb/a.jsonl#�", "bad � end\nx�: y")
    assert document.metadata["x�"] == "y"


def test_a_deeply_nested_line_is_a_bad_line() -> None:
    deep = b'{"a":' + b"[" * 100_000 + b'"\\u0041"' + b"]" * 100_000 + b"}"
    loaded = read("a.jsonl", deep + b'\n{"text":"ok"}')
    assert ([document.text for document in loaded.documents], warned(loaded)) == (["ok"], ["bad_line"])


def test_a_file_of_bad_lines_warns_of_some_and_counts_the_rest() -> None:
    loaded = read("a.jsonl", b"no\n" * 250)
    assert warned(loaded) == ["bad_line"] * 101 + ["empty"]
    assert loaded.warnings[100].message == "150 more lines of /kb/a.jsonl could not be read"


def test_many_records_look_at_the_time_and_the_size() -> None:
    many = lines(*({"text": "word"} for _ in range(1500)))
    assert len(read("a.jsonl", many).documents) == 1500
    with pytest.raises(LoadError) as caught:
        read("a.jsonl", many, max_extracted_bytes=400)
    assert caught.value.code == "limit"
