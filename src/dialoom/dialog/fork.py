"""Going on elsewhere from where a run stood: how much had been said there, and its thread begun anew."""

from collections.abc import Iterator
from itertools import count

from dialoom.agent import AgentSpec, agent_graph, pending_of
from dialoom.conversation import Append, CardEntry, Conversation
from dialoom.conversation.records import Log
from dialoom.dialog.outbox import key_of, outbox
from dialoom.dialog.policy import RunBase
from dialoom.dialog.questions import card_id_of
from dialoom.dialog.settings import settings_in
from dialoom.dialog.standing import turn_of
from dialoom.graph import Checkpoint
from dialoom.llm import OfflineProvider


async def said_at(base: RunBase, log: Conversation, checkpoint: Checkpoint) -> int:
    """Return how many of the visible entries of `log` were there when its run stood at `checkpoint`.

    What was still asked then is not among them: whoever goes on asks again, with all the time there is. The
    thread of a fork does not tell what was asked before it, so what the fork began with is counted.
    """
    begun = settings_in(log.header.settings).begun
    earlier = [
        each
        for each in await base.stores.load_history(checkpoint.thread_id)
        if each.version <= checkpoint.version
    ]
    visible = Log(log.records).visible
    known = {each.key: each for each in visible if each.key is not None}
    keys = {each.key for each in outbox(checkpoint, registry=base.cards)}
    keys.update(key for each in earlier for key in _answers(base, each, checkpoint, known))
    places = (at for at, each in enumerate(visible) if each.key in keys)
    turn = turn_of(checkpoint)
    started = min(begun.entries, len(visible)) if begun is not None and begun.turn == turn.id else 0
    return max((turn.seen, started, *(at + 1 for at in places)))


async def begin_thread(base: RunBase, checkpoint: Checkpoint, thread_id: str) -> None:
    """Save a thread that stands where `checkpoint` stood. Raises `ConflictError` when there is one."""
    spec = AgentSpec(provider=OfflineProvider(), name="dialog")  # asked nothing: the graph is not run
    await agent_graph(spec, base.stores.checkpoints, clock=base.clock).fork(checkpoint, thread_id)


def _answers(
    base: RunBase, earlier: Checkpoint, checkpoint: Checkpoint, known: dict[str, Append]
) -> Iterator[str]:
    """Yield the keys of answers to what `earlier` asked, those that `checkpoint` had been told."""
    refused = {each.id: each.refused for each in checkpoint.interrupts}
    for pending in map(pending_of, earlier.interrupts):
        for number in count():
            key = key_of(card_id_of(earlier, pending, number), "answer")
            if key not in known:
                break
            entry = known[key].entry
            assert isinstance(entry, CardEntry)
            error = getattr(base.cards.decode_entry(entry, base.forms), "error", None)
            if refused.get(pending.question) == (error or ""):
                break  # this very card was open then
            yield key
