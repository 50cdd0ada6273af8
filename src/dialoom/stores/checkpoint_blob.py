"""A checkpoint as one sealed and summed piece of bytes."""

import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from dialoom.graph.checkpoint import Checkpoint
from dialoom.graph.codec import CheckpointCodec, UnreadableError, pack, unpack
from dialoom.graph.codec_types import TypeCodec
from dialoom.stores.array_types import ARRAY_TYPES
from dialoom.stores.sealing import Sealer, place_of

_SUM_BYTES: Final = 4


class Blob(NamedTuple):
    """Bytes to store, and how many there were before they were compressed."""

    data: bytes
    size: int


class BlobCodec:
    """Writes fields of a checkpoint as a checksum and a body, encrypted where there is a `sealer`."""

    def __init__(self, types: Iterable[type | TypeCodec], sealer: Sealer | None) -> None:
        self._codec = CheckpointCodec([*ARRAY_TYPES, *types])
        self._sealer = sealer

    def write(self, checkpoint: Checkpoint, *, omit: frozenset[str]) -> Blob:
        """Return all fields except `omit`. Raises StoreError for what cannot be stored."""
        plain = self._codec.encode(checkpoint, omit=omit)
        body = pack(plain)
        if self._sealer is not None:
            body = self._sealer.seal(body, place_of(checkpoint.thread_id, checkpoint.version))
        return Blob(zlib.crc32(body).to_bytes(_SUM_BYTES, "little") + body, len(plain))

    def read(self, blob: bytes, known: Mapping[str, Any]) -> Checkpoint:
        """Return the checkpoint, with what is `known` of it. Raises UnreadableError for a damaged blob."""
        body = blob[_SUM_BYTES:]
        if zlib.crc32(body).to_bytes(_SUM_BYTES, "little") != blob[:_SUM_BYTES]:
            raise UnreadableError("its data is damaged")
        if self._sealer is not None:
            body = self._sealer.unseal(body, place_of(known["thread_id"], known["version"]))
        return self._codec.decode(unpack(body), known)
