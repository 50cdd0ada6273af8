"""The answer of `/embeddings`: ordered by index, counted, of one length, finite."""

import base64
import struct
from collections.abc import Sequence
from math import isfinite

import msgspec

from dialoom.base.text import one_line
from dialoom.llm.json_values import count_of, fields_of
from dialoom.llm.usage import Usage


class Embeddings(msgspec.Struct, frozen=True, kw_only=True):
    """One vector per text, in the order of the texts. `model` is the server's word for what made them."""

    vectors: tuple[list[float], ...]
    usage: Usage = Usage()
    model: str = ""


class MalformedVectorsError(Exception):
    """The body holds no vectors, or not those that were asked for."""


class _Item(msgspec.Struct):
    embedding: list[float] | str
    index: int | None = None


class _Answer(msgspec.Struct):
    data: list[_Item]
    model: str | None = None
    usage: object = None


_decoder = msgspec.json.Decoder(_Answer)


def read_vectors(body: bytes, texts: int) -> Embeddings:
    """Read the answer to `texts` texts. Raises `MalformedVectorsError`."""
    try:
        answer = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise MalformedVectorsError(one_line(str(error), 120)) from error
    if len(answer.data) != texts:
        raise MalformedVectorsError(f"{len(answer.data)} vectors for {texts} texts")
    vectors = tuple(_numbers(item.embedding) for item in _ordered(answer.data))
    if len({len(vector) for vector in vectors}) != 1 or not vectors[0]:
        raise MalformedVectorsError("vectors that are empty or of different lengths")
    if not all(isfinite(number) for vector in vectors for number in vector):
        raise MalformedVectorsError("a vector that is not finite")
    tokens = count_of(fields_of(answer.usage).get("prompt_tokens"))
    return Embeddings(vectors=vectors, usage=Usage(input_tokens=tokens), model=answer.model or "")


def _ordered(items: Sequence[_Item]) -> Sequence[_Item]:
    if all(item.index is None for item in items):  # some servers count on the order
        return items
    by_index = {item.index: item for item in items}
    if set(by_index) != set(range(len(items))):
        raise MalformedVectorsError("indexes that are missing or given twice")
    return [by_index[index] for index in range(len(items))]


def _numbers(embedding: list[float] | str) -> list[float]:
    """Return the numbers; some servers write them as base64 of little-endian 32-bit floats."""
    if isinstance(embedding, list):
        return embedding
    try:
        raw = base64.b64decode(embedding, validate=True)
        return list(struct.unpack(f"<{len(raw) // 4}f", raw))
    except (ValueError, struct.error) as error:
        raise MalformedVectorsError("base64 that holds no floats") from error
