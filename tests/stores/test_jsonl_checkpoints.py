"""Checkpoints as JSON lines: the contract of all stores, and what only a file can get wrong."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dialoom.graph import CheckpointStore
from dialoom.stores.jsonl_checkpoints import JsonlCheckpointStore
from dialoom.testing.checkpoint_contract import NOW, PrunableStoreContract
from dialoom.testing.clock import ManualClock


class TestJsonlCheckpointStore(PrunableStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[JsonlCheckpointStore]:
        self.path = tmp_path / "threads.jsonl"
        self.opened = [JsonlCheckpointStore(self.path, clock=ManualClock(NOW))]
        yield self.opened[0]
        for store in self.opened:
            store.close()

    def reopen(self, store: CheckpointStore) -> CheckpointStore:
        self.opened.append(JsonlCheckpointStore(self.path, clock=ManualClock(NOW)))
        return self.opened[-1]
