"""Texts become vectors. The embedder here needs no model: the same bytes give the same vector everywhere."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dialoom.base.text import replace_surrogates
from dialoom.rag.errors import EmbedderContractError, InvalidOptionsError
from dialoom.rag.question_words import about
from dialoom.rag.rows import unit_rows
from dialoom.rag.types import FloatMatrix, FloatVector

_BLOCK = 16  # texts of two kilobytes: their counts stay near the processor
_LONGEST_RUN = 4_000_000
# Odd 16-bit multipliers of our own, the best of 24 sets drawn; another set is another model.
_FIRST, _SECOND, _THIRD, _MIX = (np.uint16(value) for value in (0x7201, 0xB709, 0x72DB, 0x5B51))

_Counts = NDArray[np.intp]


class Embedder(Protocol):
    """Turns texts into unit vectors of one length that can be compared by their dot product.

    `id` names the embedder, `model` what it computes with; both are kept in the index's manifest.
    """

    @property
    def id(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def dim(self) -> int: ...

    async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        """One float32 row of length `dim` per text, in order, each of length 1 (or 0 for an empty text)."""
        ...

    async def embed_query(self, text: str) -> FloatVector:
        """The vector of a question; some models embed questions another way than documents."""
        ...


@runtime_checkable
class LanguageLimited(Protocol):
    """An embedder that says what it was trained on, by two-letter codes such as `en`; none for not said."""

    @property
    def languages(self) -> tuple[str, ...]: ...


class HashEmbedder:
    """Counts of hashed byte trigrams: offline, deterministic, at about a hundred megabytes a second.

    Bytes and not characters, so that one Chinese character is one trigram. Each trigram adds or takes one in
    one of `dim` places; the signed square root of the counts, scaled to length 1, is the vector. A question
    is embedded without its function words. `dim` is a power of two from 64 to 32768, or
    `InvalidOptionsError` is raised.
    """

    id = "hash"

    def __init__(self, dim: int = 1024) -> None:
        if not 64 <= dim <= 32_768 or dim & (dim - 1):
            raise InvalidOptionsError(f"dim must be a power of two from 64 to 32768, not {dim}")
        self.dim = dim
        self.model = f"hash-v1/{dim}/sqrt"
        self._shift = np.uint16(16 - dim.bit_length())

    async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        return self.embed(texts)

    async def embed_query(self, text: str) -> FloatVector:
        return self.embed([about(text)])[0]

    def embed(self, texts: Sequence[str]) -> FloatMatrix:
        """The same without waiting: one row per text."""
        vectors = np.empty((len(texts), self.dim), np.float32)
        for start in range(0, len(texts), _BLOCK):
            encoded = [_encoded(text) for text in texts[start : start + _BLOCK]]
            self._embed_block(encoded, vectors[start : start + len(encoded)])
        return vectors

    def _embed_block(self, encoded: Sequence[bytes], out: FloatMatrix) -> None:
        if sum(map(len, encoded)) <= _LONGEST_RUN:
            counts = self._count(encoded)
        else:
            counts = np.concatenate([self._count_long(text) for text in encoded])
        np.subtract(counts[:, 0], counts[:, 1], out=out, casting="unsafe")
        sizes = np.abs(out)
        lengths = np.sqrt(sizes.sum(axis=1))  # of the square roots: their squares are the counts again
        np.sqrt(np.maximum(sizes, 1.0, out=sizes), out=sizes)
        out /= sizes
        out /= np.maximum(lengths, 1e-6)[:, None]
        out[[not text for text in encoded]] = 0.0

    def _count(self, encoded: Sequence[bytes]) -> _Counts:
        """Shape (n, 2, dim): how often each place was added to, and taken from, for each text.

        Two NULs stand before and after each text and mark its edges, so a text's trigrams never hold a
        byte of its neighbour.
        """
        return self._bins(b"\0\0" + b"\0\0".join(encoded) + b"\0\0", [len(text) + 2 for text in encoded])

    def _count_long(self, text: bytes) -> _Counts:
        """The counts of one text, piece by piece: the working arrays are many times its size."""
        framed = b"\0\0" + text + b"\0\0"
        counts = np.zeros((1, 2, self.dim), np.intp)
        for start in range(0, len(text) + 2, _LONGEST_RUN):
            piece = framed[start : start + _LONGEST_RUN + 2]
            counts += self._bins(piece, [len(piece) - 2])
        return counts

    def _bins(self, framed: bytes, trigrams: Sequence[int]) -> _Counts:
        data = np.frombuffer(framed, np.uint8)
        # A to Z become a to z: 26 letters from 65, 32 below their small ones
        data = (data | ((data - np.uint8(65) < 26).view(np.uint8) << np.uint8(5))).astype(np.uint16)
        hashed, part = data[:-2] * _FIRST, data[1:-1] * _SECOND
        hashed += part
        hashed += np.multiply(data[2:], _THIRD, out=part)
        hashed ^= np.right_shift(hashed, np.uint16(7), out=part)
        hashed *= _MIX
        hashed >>= self._shift
        width = 2 * self.dim
        places = np.repeat(np.arange(0, len(trigrams) * width, width, dtype=np.intp), trigrams)
        places += hashed
        return np.bincount(places, minlength=len(trigrams) * width).reshape(len(trigrams), 2, self.dim)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return replace_surrogates(text).encode()


def check_vectors(vectors: FloatMatrix, *, texts: int, embedder: Embedder) -> FloatMatrix:
    """The vectors as float32 of shape (texts, dim), or `EmbedderContractError` when they are not that."""
    matrix = np.asarray(vectors, np.float32)
    if matrix.shape != (texts, embedder.dim):
        wanted = f"{(texts, embedder.dim)} from {embedder.id}"
        raise EmbedderContractError(f"got vectors of shape {matrix.shape}, not {wanted}; fix the embedder")
    if not np.isfinite(matrix).all():
        raise EmbedderContractError(f"{embedder.id} gave a vector with NaN or infinity; fix the embedder")
    return matrix


def languages_of(embedder: Embedder) -> tuple[str, ...]:
    """What an embedder says that it was trained on; none for not said."""
    return embedder.languages if isinstance(embedder, LanguageLimited) else ()


def places_of_words(texts: Sequence[str]) -> list[int]:
    """The places of the texts that are not blank: of the others no model can say anything."""
    return [place for place, text in enumerate(texts) if text.strip()]


def unit_rows_at(places: Sequence[int], vectors: FloatMatrix, *, texts: int) -> FloatMatrix:
    """One row per text: the vectors at their places, each of length 1, and zeros elsewhere."""
    rows = np.zeros((texts, vectors.shape[1]), np.float32)
    rows[places] = unit_rows(vectors)
    return rows
