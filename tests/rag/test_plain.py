"""Text and Markdown files."""

import time

import pytest

from tests.rag.reading import heads, read, read_one, warned


@pytest.mark.promise("rag-006")
def test_a_text_file_is_one_document_named_by_its_path() -> None:
    document = read_one("notes/a.TXT", b"one\r\ntwo\n")
    assert (document.id, document.text) == ("/kb/notes/a.TXT", "one\ntwo\n")
    assert document.metadata == {"source": "/kb/notes/a.TXT", "encoding": "utf-8"}


def test_a_file_without_a_word_is_no_document_but_a_warning() -> None:
    for data in (b"", b" \n\t", "\u3000\u200b\ufeff".encode()):
        loaded = read("a.log", data)
        assert (loaded.documents, warned(loaded)) == ([], ["empty"])


def test_bytes_that_could_not_be_read_are_said() -> None:
    loaded = read("a.log", ("退款" * 20).encode() + b"\xff")
    assert [(warning.code, warning.source) for warning in loaded.warnings] == [("decode", "/kb/a.log")]
    assert "1 bytes of /kb/a.log are not valid utf-8" in loaded.warnings[0].message


MARKDOWN = """\
---
title: not a heading
---
# Refunds #

Prose
over two lines
---
Time to pay
===========
```python
# not a heading
```
~~~
# nor this
~~~~
## C#
#hashtag
   ### Three ###
# ##
####### seven

One line
---
- - -
"""


@pytest.mark.promise("rag-007")
def test_markdown_headings_are_found_where_they_stand() -> None:
    document = read_one("a.md", MARKDOWN.encode())
    assert heads(document) == [(1, "Refunds"), (1, "Time to pay"), (2, "C#"), (3, "Three"), (2, "One line")]
    assert (document.text, document.metadata["title"]) == (MARKDOWN, "Refunds")


def test_a_document_that_begins_with_a_rule_keeps_its_headings() -> None:
    assert heads(read_one("a.md", b"---\n\n# One\n---\n")) == [(1, "One")]
    assert heads(read_one("a.md", b"no heading")) == []


def test_a_hostile_heading_line_takes_no_time() -> None:
    started = time.process_time()
    read("a.md", b"# " + b" " * 300_000 + b"x\n" + b"=" * 300_000 + b"x")
    assert time.process_time() - started < 5
