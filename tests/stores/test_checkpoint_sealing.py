"""Encrypted checkpoints: unreadable without the key, unusable when moved, readable after a key change."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from dialoom.base.errors import MissingExtraError, UsageError
from dialoom.graph.codec import UnreadableError
from dialoom.stores.jsonl_checkpoints import JsonlCheckpointStore
from dialoom.stores.sealing import AesGcmSealer
from dialoom.stores.sqlite_checkpoints import SqliteCheckpointStore
from dialoom.testing.checkpoint_contract import checkpoint_after, say

OLD, NEW = {"2025": b"o" * 32}, {"2025": b"o" * 32, "2026": b"n" * 32}
needs_cryptography = pytest.mark.skipif(
    find_spec("cryptography") is None,
    reason='NOT TESTED: encryption of checkpoints; the package "cryptography" is not installed',
)
BOTH = pytest.mark.parametrize("kind", [SqliteCheckpointStore, JsonlCheckpointStore])


@needs_cryptography
@BOTH
def test_what_was_said_is_not_in_the_file_and_comes_back_with_the_key(
    kind: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "threads"
    first = checkpoint_after(None, "a", say("a secret word"))
    with kind(path, sealer=AesGcmSealer(OLD)) as store:
        store.save(first)
    assert all(b"a secret word" not in each.read_bytes() for each in tmp_path.iterdir())
    second = checkpoint_after(first, "b", say("more"))
    with kind(path, sealer=AesGcmSealer(NEW)) as store:
        assert store.load("alice") == first
        store.save(second)
        store.prune(keep_last=1)
        assert list(store.history("alice")) == [second]


@needs_cryptography
@BOTH
def test_without_the_right_key_a_thread_is_unreadable_and_says_which(
    kind: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "threads"
    with kind(path, sealer=AesGcmSealer(NEW)) as store:
        store.save(checkpoint_after(None, "a", say("secret")))
    with (
        kind(path, sealer=AesGcmSealer(OLD)) as store,
        pytest.raises(UnreadableError, match="it is encrypted with key '2026', which was not given"),
    ):
        store.load("alice")
    with (
        kind(path, sealer=AesGcmSealer({"2026": b"x" * 32})) as store,
        pytest.raises(UnreadableError, match="key '2026' does not open it; it was changed, or moved here"),
    ):
        store.load("alice")
    with kind(path) as store, pytest.raises(UnreadableError):
        store.load("alice")


@needs_cryptography
def test_a_checkpoint_moved_to_another_thread_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "threads"
    with SqliteCheckpointStore(path, sealer=AesGcmSealer(OLD)) as store:
        for name in ("alice", "bob"):
            store.save(checkpoint_after(None, "a", say(name), thread_id=name))
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE thread SET id = 'x' WHERE id = 'alice'")
        file.execute("UPDATE thread SET id = 'alice' WHERE id = 'bob'")
    with (
        SqliteCheckpointStore(path, sealer=AesGcmSealer(OLD)) as store,
        pytest.raises(UnreadableError, match="it was changed, or moved here"),
    ):
        store.load("alice")


@needs_cryptography
def test_what_is_not_encrypted_is_not_taken_for_it(tmp_path: Path) -> None:
    with SqliteCheckpointStore(tmp_path / "threads") as store:
        store.save(checkpoint_after(None, "a", say("plain")))
    with (
        SqliteCheckpointStore(tmp_path / "threads", sealer=AesGcmSealer(OLD)) as store,
        pytest.raises(UnreadableError, match="its data is not encrypted as it should be"),
    ):
        store.load("alice")


class Mirror:
    """A sealer of one's own: it turns bytes round, and checks the place."""

    def seal(self, data: bytes, place: bytes) -> bytes:
        return place + data[::-1]

    def unseal(self, sealed: bytes, place: bytes) -> bytes:
        if not sealed.startswith(place):
            raise UnreadableError("it belongs somewhere else")
        return sealed[len(place) :][::-1]


@BOTH
def test_a_sealer_of_ones_own_keeps_what_it_was_given(kind: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "threads"
    first = checkpoint_after(None, "a", say("a secret word"))
    branch = checkpoint_after(first, "c", say("branch"), version=3)
    with kind(path, sealer=Mirror()) as store:
        for checkpoint in (first, checkpoint_after(first, "b", say("more")), branch):
            store.save(checkpoint)
    assert b"a secret word" not in path.read_bytes()
    with kind(path, sealer=Mirror()) as store:
        assert store.load("alice") == branch
        assert store.load("alice", "a") == first


@pytest.mark.parametrize("keys", [{}, {"": b"x" * 32}, {"k" * 300: b"x" * 32}, {"short": b"x" * 31}])
def test_keys_that_do_not_fit_are_refused_without_being_shown(keys: dict[str, bytes]) -> None:
    with pytest.raises(UsageError) as refused:
        AesGcmSealer(keys)
    assert "xxx" not in str(refused.value)


@pytest.mark.skipif(find_spec("cryptography") is not None, reason="it is installed")
def test_without_the_package_the_error_says_how_to_install_it() -> None:
    with pytest.raises(MissingExtraError, match=r'run: pip install "dialoom\[encryption\]"'):
        AesGcmSealer(OLD)


@needs_cryptography
def test_a_damaged_encrypted_line_ends_its_thread_alone(tmp_path: Path) -> None:
    path = tmp_path / "threads.jsonl"
    bob = checkpoint_after(None, "b", thread_id="bob")
    with JsonlCheckpointStore(path, sealer=AesGcmSealer(OLD)) as store:
        first = checkpoint_after(None, "a")
        for checkpoint in (first, checkpoint_after(first, "a2"), bob):
            store.save(checkpoint)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"sealed":"', b'"sealed":"A')
    path.write_bytes(b"".join(lines))
    with JsonlCheckpointStore(path, sealer=AesGcmSealer(OLD)) as store:
        with pytest.raises(UnreadableError, match="thread 'alice' cannot be read: line 2 of"):
            store.load("alice")
        assert (store.load("alice", "a"), store.load("bob")) == (first, bob)
