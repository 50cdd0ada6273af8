"""The memory store keeps to the contract of all stores."""

import pytest

from dialoom.graph import MemoryCheckpointStore, Op
from dialoom.testing.checkpoint_contract import NOW, PrunableStoreContract, checkpoint_after
from dialoom.testing.clock import ManualClock


class TestMemoryCheckpointStore(PrunableStoreContract):
    @pytest.fixture
    def store(self) -> MemoryCheckpointStore:
        return MemoryCheckpointStore(clock=ManualClock(NOW))


def test_it_keeps_changes_and_not_a_copy_of_the_state_for_each() -> None:
    store = MemoryCheckpointStore()
    last = None
    for at in range(50):
        last = checkpoint_after(last, f"c{at}", Op("log", "extend", [f"line {at}"]))
        store.save(last)
    kept = sum(len(op.value) for held in store.history("alice") for op in held.ops)
    assert kept == 50
    loaded = store.load("alice")
    assert loaded is not None
    assert loaded.state == {"log": [f"line {at}" for at in range(50)]}
