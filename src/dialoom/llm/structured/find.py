"""The JSON value in an answer that also holds fences, words or several values."""

import re
from collections.abc import Iterator
from itertools import islice
from json import JSONDecoder
from typing import NamedTuple, NoReturn

import msgspec

from dialoom.llm.json_schema import JsonSchema, extract_json

MAX_TEXT = 1_000_000
MAX_PLACES = 100
_FENCED = re.compile(r"```[\w-]*\s(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[{\[]")


class Found(NamedTuple):
    """A value that was found; it may be None, JSON's `null`."""

    value: object


def find_json(text: str, schema: JsonSchema) -> Found | None:
    """Return the first value in `text` that matches `schema`, else the likeliest one, None without any.

    Looked at in this order: the whole text, fenced blocks, objects and arrays between the words. At most
    `MAX_TEXT` characters and `MAX_PLACES` places are looked at.
    """
    text = text[:MAX_TEXT]
    for found in _candidates(text):
        if schema.accepts(found.value):
            return found
    likeliest = extract_json(text)
    return None if likeliest is None else Found(likeliest)


def _candidates(text: str) -> Iterator[Found]:
    for whole in (text, *(match[1] for match in islice(_FENCED.finditer(text), 20))):
        try:
            yield Found(msgspec.json.decode(whole))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
    decoder = JSONDecoder(parse_constant=_refuse_constant)
    end = 0
    for _ in range(MAX_PLACES):
        opening = _OPENING.search(text, end)
        if opening is None:
            return
        end = opening.end()
        try:
            value, end = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        yield Found(value)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
