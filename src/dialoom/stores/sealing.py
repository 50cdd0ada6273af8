"""Encryption of what is stored: AES-GCM under keys with names, bound to the place it is stored at."""

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, Protocol

from dialoom.base.errors import MissingExtraError, UsageError
from dialoom.graph.codec import UnreadableError

_FORM: Final = b"\x01"
_NONCE_BYTES: Final = 12
_KEY_BYTES: Final = (16, 24, 32)


class Sealer(Protocol):
    """Keeps bytes secret and unchanged. `place` is not stored, but must be the same to unseal."""

    def seal(self, data: bytes, place: bytes) -> bytes: ...

    def unseal(self, sealed: bytes, place: bytes) -> bytes:
        """Return what was sealed. Raises UnreadableError for anything else."""
        ...


class AesGcmSealer:
    """AES-GCM with random nonces. `keys` are of 16, 24 or 32 bytes, by id; the last one seals.

    To change the key, add one at the end and keep the old ones as long as something is sealed with them. One
    key is good for four thousand million checkpoints. Keys never appear in messages or in `repr`.
    """

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        if not keys:
            raise UsageError("encryption needs a key; give keys={'2026-01': os.urandom(32)} and keep it safe")
        for name, key in keys.items():
            if not 0 < len(name.encode()) < 256 or len(key) not in _KEY_BYTES:
                raise UsageError(f"key {name!r} does not fit; an id has 1 to 255 bytes, a key 16, 24 or 32")
        try:
            cipher = import_module("cryptography.hazmat.primitives.ciphers.aead").AESGCM
        except ImportError as error:
            raise MissingExtraError("cryptography", "encryption") from error
        self._ciphers: dict[str, Any] = {name: cipher(key) for name, key in keys.items()}
        self._current = list(keys)[-1]

    def seal(self, data: bytes, place: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        name = self._current.encode()
        header = _FORM + bytes([len(name)]) + name
        return header + nonce + self._ciphers[self._current].encrypt(nonce, data, header + place)

    def unseal(self, sealed: bytes, place: bytes) -> bytes:
        if sealed[:1] != _FORM or len(sealed) < 2:
            raise UnreadableError("its data is not encrypted as it should be")
        end = 2 + sealed[1]
        name = sealed[2:end].decode(errors="replace")
        cipher = self._ciphers.get(name)
        if cipher is None:
            raise UnreadableError(f"it is encrypted with key {name!r}, which was not given")
        nonce, secret = sealed[end : end + _NONCE_BYTES], sealed[end + _NONCE_BYTES :]
        try:
            return cipher.decrypt(nonce, secret, sealed[:end] + place)
        except Exception as error:  # seam: the package raises classes of its own, and ValueError
            raise UnreadableError(f"key {name!r} does not open it; it was changed, or moved here") from error


def place_of(thread_id: str, version: int) -> bytes:
    """Return what binds sealed bytes to one checkpoint of one thread."""
    return f"{version}:{thread_id}".encode()
