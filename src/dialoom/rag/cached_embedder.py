"""Vectors that were paid for once: a text that was embedded before is not embedded again."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from dialoom.rag.embed import Embedder, HashEmbedder, check_vectors, languages_of
from dialoom.rag.errors import InvalidOptionsError
from dialoom.rag.types import FloatMatrix, FloatVector


class VectorCache(Protocol):
    """Bytes by keys of bytes. It may forget anything at any time, and must never make a caller fail.

    Any thread may call it, and several processes may share what it keeps.
    """

    def get(self, keys: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """What is known of these keys."""
        ...

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Know these from now on."""
        ...


class CachedEmbedder:
    """An embedder that looks into a cache first. Documents only: a question is seldom asked twice.

    Keys are made of who embeds, with which model, and the text, so that several embedders may share a cache.
    Raises what the embedder does; a vector of another length in the cache is computed anew.
    `HashEmbedder` is refused with `InvalidOptionsError`: it is faster than any look-up.
    """

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        if isinstance(embedder, HashEmbedder):
            raise InvalidOptionsError("hash vectors cost less than a look-up; leave out the cache")
        self.id, self.model, self.dim = embedder.id, embedder.model, embedder.dim
        self.languages = languages_of(embedder)
        self._embedder = embedder
        self._cache = cache
        self._space = f"{self.id}\0{self.model}\0{self.dim}\0".encode(errors="surrogatepass")

    async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        keys = [self._key(text) for text in texts]
        known = await asyncio.to_thread(self._cache.get, keys)
        width = 4 * self.dim
        rows = {key: np.frombuffer(row, "<f4") for key, row in known.items() if len(row) == width}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in rows}
        if missing:
            vectors = await self._embedder.embed_documents([*missing.values()])
            made = check_vectors(vectors, texts=len(missing), embedder=self)
            rows |= zip(missing, made, strict=True)
            fresh = {key: row.astype("<f4").tobytes() for key, row in zip(missing, made, strict=True)}
            await asyncio.to_thread(self._cache.put, fresh)
        return np.array([rows[key] for key in keys], np.float32).reshape(len(keys), self.dim)

    async def embed_query(self, text: str) -> FloatVector:
        return await self._embedder.embed_query(text)

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(self._space + text.encode(errors="surrogatepass")).digest()
