"""Questions of a run brought before people, and what a restart finds of a run that did not end."""

from collections.abc import Collection

import msgspec

from dialoom.conversation import Append, TextEntry
from dialoom.conversation.header import to_rfc3339
from dialoom.dialog.journal import Journal
from dialoom.dialog.outbox import key_of, outbox
from dialoom.dialog.policy import RunBase
from dialoom.dialog.questions import ASKED, Cards, Waiting, asking
from dialoom.dialog.standing import turn_of
from dialoom.graph import Checkpoint


class Standing(msgspec.Struct, frozen=True):
    """Where a run stands that did not end: its newest checkpoint, and the questions it waits with.

    `answered` is the id of a card whose answer was given just now, and not passed on yet.
    """

    checkpoint: Checkpoint
    waiting: tuple[Waiting, ...] = ()
    answered: str = ""

    @property
    def can_go_on(self) -> bool:
        """Whether there is anything left to do, and not only to be forgotten."""
        return not self.checkpoint.frontier.is_over

    @property
    def open_cards(self) -> tuple[str, ...]:
        """The ids of the cards that a person has to answer."""
        return tuple(each.card_id for each in self.waiting if not each.is_answered)


async def ask(
    base: RunBase, journal: Journal, checkpoint: Checkpoint, *, passed_on: Collection[str] = ()
) -> tuple[Standing, tuple[int, ...]]:
    """Show a card for each question of `checkpoint`, whose messages were delivered, that has none.

    Returns where the run stands, and the indexes of the new entries. `passed_on` are the cards whose answers
    the run was told already.
    """
    cards = await cards_of(base, journal, checkpoint)
    seconds = base.policy.approval_seconds
    until = None if seconds is None else to_rfc3339(base.clock.now() + seconds)
    waiting, shown = cards.ask(checkpoint, passed_on=passed_on, until=until)
    return Standing(checkpoint, waiting), await journal.deliver(shown)


async def cards_of(base: RunBase, journal: Journal, checkpoint: Checkpoint) -> Cards:
    """Return the cards that were shown since the turn of `checkpoint` began."""
    seen = turn_of(checkpoint).seen
    await journal.hold(seen)
    return Cards(base.cards, base.forms, journal.transcript.since(seen))


async def let_go(base: RunBase, journal: Journal, checkpoint: Checkpoint) -> None:
    """Erase the checkpoints of a run that came to its end when a person told it a secret; others stay."""
    cards = await cards_of(base, journal, checkpoint)
    if cards.were_told_secrets:
        await base.stores.erase_thread(journal.id)


async def expire_lost(base: RunBase, journal: Journal, standing: Standing | None) -> tuple[int, ...]:
    """Show questions of runs, among the entries held, that no run waits with any more as expired.

    Returns the indexes of the new entries. Cards of other origin stay as they are.
    """
    held = Cards(base.cards, base.forms, asking(journal.transcript.since(0)))
    waited = standing.open_cards if standing else ()
    lost = [card_id for card_id in held.questions if card_id not in waited]
    if not lost:
        return ()
    log = await base.stores.conversations.load(journal.id)
    now = Cards(base.cards, base.forms, asking(log.entries))  # another program may have answered meanwhile
    keys = {record.key for record in log.records if isinstance(record, Append)}
    asked = [Waiting("", card_id) for card_id in lost if key_of(card_id, ASKED) in keys]
    return await journal.deliver(now.close(asked))


async def recover(base: RunBase, journal: Journal) -> Standing | None:
    """Deliver what a run that died had saved and not said; return where it stands, None when it is over.

    A run is over, too, when the conversation went on without it: the person said something new, took back
    what it answers, or closed its questions. It is forgotten then; the checkpoints of one that came to its
    end stay until the next turn begins, unless they hold a secret. Questions that it leaves open expire.
    """
    standing = await _standing(base, journal)
    await expire_lost(base, journal, standing)
    return standing


async def paused(base: RunBase, journal: Journal, known: Standing | None, *, moved: bool) -> Standing | None:
    """Return where a run `known` to stand somewhere stands by now.

    When the log has `moved`, another program may have gone on with it, or begun one.
    """
    newest = await base.stores.load_checkpoint(journal.id) if known or moved else None
    if newest is None:
        return None
    if known is not None and newest.id == known.checkpoint.id and not moved:
        return known
    own = known is not None and turn_of(newest) == turn_of(known.checkpoint)  # a step failed once stored
    # one of another program that waits for nobody is that program's to end
    return await recover(base, journal) if newest.interrupts or own else None


async def _standing(base: RunBase, journal: Journal) -> Standing | None:
    checkpoint = await base.stores.load_checkpoint(journal.id)
    if checkpoint is None:
        return None
    if await _is_current(journal, turn_of(checkpoint).seen):
        await journal.deliver(outbox(checkpoint, registry=base.cards))
        if checkpoint.frontier.is_over:
            await let_go(base, journal, checkpoint)
            return None
        standing, _ = await ask(base, journal, checkpoint)
        if standing.waiting or not checkpoint.interrupts:
            return standing
    await base.stores.erase_thread(journal.id)
    return None


async def _is_current(journal: Journal, seen: int) -> bool:
    """Whether the turn that began behind `seen` entries is still the newest thing in the conversation."""
    await journal.hold(seen)
    later = journal.transcript.since(seen)
    said = any(isinstance(entry, TextEntry) and entry.role == "user" for entry in later)
    return seen <= len(journal.transcript) and not said
