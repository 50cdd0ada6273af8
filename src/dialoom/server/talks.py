"""The dialogs of a server: opened when they are needed, followed while they run, cancelled by a call only.

A run belongs to nobody's connection. Whoever leaves and comes back finds it where it is.
"""

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, TypeAlias, cast
from weakref import WeakSet, WeakValueDictionary

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import DialoomError, StoreError, UsageError
from dialoom.conversation.entries import CardEntry, Entry, TextEntry
from dialoom.conversation.grounds import KEY
from dialoom.conversation.header import HeaderChange, to_rfc3339
from dialoom.dialog import (
    Center,
    Dialog,
    DialogEvent,
    RunFailed,
    RunFinished,
    RunInProgressError,
    RunStarted,
    Skill,
)
from dialoom.graph import Checkpoint
from dialoom.server.attached import ReadAttached
from dialoom.server.choice import PLAINLY, Choice, Manner, Policy
from dialoom.server.deadlines import Deadlines
from dialoom.server.family import version_title
from dialoom.server.hub import EventHub
from dialoom.server.run_tale import RunView
from dialoom.server.tales import Tales, busy
from dialoom.server.watched import WatchedStore, custom

_log = logging.getLogger("dialoom.server")

MAX_OPEN = 500
MAX_KEYS = 2_000
MAX_QUEUED = 10
"""So many messages may be on their way into one conversation at once, those that wait among them."""


Ground: TypeAlias = Callable[[str, str], Awaitable[list[object]]]
"""Finds the numbered passages that, in the conversation of this id, a question is to be answered from.

Each has `index`, `id`, `title` and `text`.
"""


class Sent(NamedTuple):
    """Where something that was said stands, and the run that answers it."""

    place: int
    run_id: str
    conversation_id: str


class Talks:
    """Every change of a conversation goes through its dialog here, so that what is in memory is right."""

    def __init__(
        self,
        center: Center,
        store: WatchedStore,
        hub: EventHub,
        *,
        read_attached: ReadAttached | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._center = center
        self._deadlines = Deadlines(clock)
        self._store = store
        self._hub = hub
        self._ground: Ground | None = None
        self._read_attached = read_attached
        self.runs = Tales(hub, now=lambda: to_rfc3339(clock.now()))
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._followed: WeakSet[Dialog] = WeakSet()
        self._used: OrderedDict[str, None] = OrderedDict()
        self._sent: OrderedDict[tuple[str, str], Sent] = OrderedDict()
        self._queued: Counter[str] = Counter()
        self._patient: set[str] = set()

    def answer_from(self, ground: Ground) -> None:
        """Answer every question from now on from what `ground` finds."""
        self._ground = ground

    async def open(self, conversation_id: str, *, whole: bool = False) -> Dialog:
        """Return the dialog of a stored conversation, followed, as it stands in the store by now.

        Questions that nobody waits for any more are shown as expired. Raises `ConversationNotFoundError`.
        """
        dialog = await self._center.open(conversation_id)
        if dialog not in self._followed:
            self._followed.add(dialog)
            dialog.events.connect(lambda event: self._on(dialog, event))
        if whole:
            await dialog.load()
        if not dialog.is_running:
            await dialog.settle()
            self._look_at(dialog)
        self._used[conversation_id] = None
        self._used.move_to_end(conversation_id)
        await self._release_some()
        return dialog

    async def send(
        self,
        conversation_id: str,
        text: str,
        *,
        attachments: list[object],
        key: str,
        manner: Manner = PLAINLY,
    ) -> Sent:
        """Say `text` and have it answered; return, once it is stored, where it stands.

        The same key again says nothing again, while it is among the newest 2,000. Raises `ProblemError` for
        what `manner` does not allow, and what the dialog does.
        """
        if self._queued[conversation_id] >= MAX_QUEUED:
            raise busy(self.runs.running(conversation_id))
        self._queued[conversation_id] += 1
        try:
            return await self._send(conversation_id, text, attachments, key=key, manner=manner)
        finally:
            self._queued[conversation_id] -= 1
            self._queued += Counter()  # forgets those in which nobody sends

    async def _send(
        self, conversation_id: str, text: str, attachments: list[object], *, key: str, manner: Manner
    ) -> Sent:
        known = (conversation_id, key)
        if manner.policy == "reject" and conversation_id in self._patient and known not in self._sent:
            raise busy(self.runs.running(conversation_id))  # somebody is before it, and it is not to wait
        async with self._turns.setdefault(conversation_id, asyncio.Lock()):
            if key and known in self._sent:
                return self._sent[known]
            if not text.strip():
                raise UsageError("there is nothing to send; write a text")
            dialog = await self._free(conversation_id, manner.policy)
            sent = await self._say(await self._behind(dialog, manner.parent), text, attachments, manner)
            if key:
                self._sent[known] = sent
                _trim(self._sent)
            return sent

    async def _free(self, conversation_id: str, policy: Policy) -> Dialog:
        """Return a dialog that is not answering: as it is, after its answer, or when that was stopped."""
        while (dialog := await self.open(conversation_id)).is_running:
            handle = self.runs.handle(self.runs.running(conversation_id))
            if policy == "reject" or handle is None:
                raise busy(self.runs.running(conversation_id))
            if policy == "interrupt":
                handle.cancel()
            self._hub.publish(conversation_id, custom("run.queued", {"behind": handle.run_id}))
            self._patient.add(conversation_id)
            try:
                await handle
            finally:
                self._patient.discard(conversation_id)
        return dialog

    async def _behind(self, dialog: Dialog, parent: int | None) -> Dialog:
        """Return where something behind the entry `parent` is said: here, or in a branch."""
        if parent is None or parent == dialog.message_count - 1:
            return dialog
        if parent >= dialog.message_count:
            raise UsageError(f"there is no entry {parent} yet; load the conversation again")
        return await self.open((await self._version(await dialog.branch(parent + 1))).id)

    async def _say(self, dialog: Dialog, text: str, attachments: list[object], manner: Manner) -> Sent:
        question = await self._question(dialog.id, text, attachments)
        manner.choice.make(dialog)
        dialog.append_message(question)
        handle = self.runs.begin(dialog, dialog.run())
        try:
            await dialog.save()
        except StoreError:  # the caller is told that nothing was said, so nothing is to be stored later
            handle.cancel()
            await handle
            dialog.truncate_to(_place(dialog, question))
            raise
        return Sent(_place(dialog, question), handle.run_id, dialog.id)

    async def again(self, conversation_id: str) -> tuple[str, str]:
        """Have the newest answer made anew in a branch; return the branch's id and the run's."""
        dialog = await self.open(conversation_id, whole=True)
        return await self._run_branch(await self._version(await dialog.regenerate()))

    async def edit(self, conversation_id: str, index: int, text: str) -> tuple[str, str]:
        """Say something else in place of a message, in a branch; return the branch's id and the run's."""
        dialog = await self.open(conversation_id, whole=True)
        before = dialog.message(index)
        if not isinstance(before, TextEntry) or before.role != "user":
            raise UsageError(f"entry {index} is not a text of the user; edit one that is")
        question = await self._question(conversation_id, text, _attached(before))
        branch = await self._version(await dialog.branch(index))
        return await self._run_branch(branch.append_message(question))

    async def branch(self, conversation_id: str, at: int) -> str:
        """Return the id of a branch with the first `at` entries."""
        dialog = await self.open(conversation_id, whole=True)
        return (await self._version(await dialog.branch(at))).id

    async def fork(self, checkpoint: Checkpoint) -> str:
        """Return the id of a conversation that goes on from where a run of another stood."""
        dialog = await self.open(checkpoint.thread_id, whole=True)
        return (await self._version(await dialog.fork(checkpoint))).id

    async def resume(self, conversation_id: str) -> str:
        """Go on with what a crash or a restart cut short; return the run's id."""
        dialog = await self.open(conversation_id)
        return self.runs.begin(dialog, dialog.resume()).run_id

    async def cancel(self, run_id: str) -> RunView:
        """Stop a run; what it said so far is kept and marked. Nothing happens when it is over.

        One that waits for a person is given up: what it asked is shown as expired.
        """
        view = self.runs.find(run_id)
        handle = self.runs.handle(run_id)
        if handle is not None:
            handle.cancel()
        elif view.status == "waiting" and self.runs.newest(view.conversation_id) == run_id:
            dialog = await self.open(view.conversation_id)
            dialog.cancel()
            await dialog.save()
            self._look_at(dialog)
        return self.runs.find(run_id)

    async def close_questions(self, conversation_id: str) -> None:
        """See that lost questions expire, for somebody who looks on: what cannot be opened is still shown."""
        try:
            await self.open(conversation_id)
        except DialoomError:
            _log.warning("what a run waits for is not known", extra={"conversation": conversation_id})

    async def expire_overdue(self) -> None:
        """Give runs up whose questions nobody answered in time; goes on until it is cancelled."""
        await self._deadlines.watch(self.open)

    async def act(
        self, conversation_id: str, card_id: str, action: str, fields: Mapping[str, object]
    ) -> None:
        """Do an action on a card; a run that waits for it goes on. Raises what the dialog does."""
        dialog = await self.open(conversation_id, whole=True)
        if card_id in dialog.waiting:
            self.runs.begin(dialog, dialog.answer(card_id, action, fields))
        else:
            dialog.act(card_id, action, fields)
        await dialog.save()

    async def show(self, conversation_id: str, entry: CardEntry) -> int:
        """Show a card; return its index."""
        dialog = await self.open(conversation_id)
        dialog.append_message(entry)
        try:
            await dialog.save()
        except StoreError:
            dialog.truncate_to(_place(dialog, entry))
            raise
        return _place(dialog, entry)

    async def show_later(self, conversation_id: str, entry: CardEntry) -> int:
        """Show a card once no answer is under way, so that it never stands between a call and its result."""
        while True:
            handle = self.runs.handle(self.runs.running(conversation_id))
            if handle is not None:
                await handle
            try:
                return await self.show(conversation_id, entry)
            except RunInProgressError:
                if self.runs.running(conversation_id) is None:
                    raise  # of a run that is not ours to wait for
                # another answer began while the dialog was opened

    async def try_again(self, conversation_id: str) -> str:
        """Go on with a run that failed, or have the messages answered anew; return the run's id."""
        dialog = await self.open(conversation_id)
        handle = dialog.resume() if dialog.is_unfinished else dialog.run()
        return self.runs.begin(dialog, handle).run_id

    async def teach(self, conversation_id: str, skill: Skill, *, wanted: bool) -> None:
        """Give a conversation a skill of its own, or take that back."""
        dialog = await self.open(conversation_id)
        if wanted:
            dialog.add_skill(skill)
        else:
            dialog.remove_skill(skill.name)
        await dialog.save()

    async def waits_for(self, conversation_id: str, card_id: str) -> bool:
        """Tell whether a paused run waits for this card."""
        return card_id in (await self.open(conversation_id)).waiting

    async def choose(self, conversation_id: str, choice: Choice, title: str | None) -> None:
        """Set a conversation's title and choices."""
        dialog = await self.open(conversation_id)
        choice.make(dialog)
        if title is not None:
            dialog.set_title(title)
        await dialog.save()

    async def update(self, conversation_id: str, change: HeaderChange) -> None:
        """Change a header; the conversation's dialog, which knows the old one, is opened anew when needed."""
        self.runs.check_idle(conversation_id)
        await self._store.update(conversation_id, change)
        if any(each.id == conversation_id for each in self._center.dialogs):
            await self._center.release_dialog(conversation_id)

    async def remove(self, conversation_id: str) -> None:
        """Delete a conversation for good. Raises `ProblemError` while it is answering."""
        self.runs.check_idle(conversation_id)
        await self._center.remove_dialog(conversation_id)
        self.runs.forget(conversation_id)
        self._used.pop(conversation_id, None)

    async def aclose(self) -> None:
        """Store what is due. A run that goes on is left to end with the loop, so that it can be resumed."""
        if self.runs.going:
            for dialog in self._center.dialogs:
                if not dialog.is_running:
                    await dialog.aclose()
        else:
            await self._center.aclose()

    async def _question(self, conversation_id: str, text: str, attachments: list[object]) -> TextEntry:
        """Return what a person says, with the passages to answer it from: attached files come first."""
        meta: dict[str, object] = {"attachments": attachments} if attachments else {}
        passages = [*(await self._read_attached(attachments) if self._read_attached else ())]
        if self._ground is not None:
            passages += cast("list[dict[str, object]]", await self._ground(conversation_id, text))
        if passages:
            meta[KEY] = [{**each, "index": at} for at, each in enumerate(passages, 1)]
        return TextEntry(role="user", content=text, meta=meta)

    async def _version(self, branch: Dialog) -> Dialog:
        """Give a branch a title by which it is known in a list, and return it."""
        if title := await version_title(self._store, branch.header):
            await branch.set_title(title).save()
        return branch

    async def _run_branch(self, twin: Dialog) -> tuple[str, str]:
        branch = await self.open(twin.id)
        handle = self.runs.begin(branch, branch.run())
        await branch.save()
        return branch.id, handle.run_id

    def _on(self, dialog: Dialog, event: DialogEvent) -> None:
        if not self.runs.tell(event):
            return
        if isinstance(event, RunFinished | RunFailed):
            self._look_at(dialog)
        if isinstance(event, RunStarted | RunFinished | RunFailed):
            self._store.tell_header(dialog.header)

    def _look_at(self, dialog: Dialog) -> None:
        """Know until when a dialog waits, and tell when it does so no more."""
        self._deadlines.put(dialog.id, dialog.waits_until)
        self.runs.settle(dialog)

    async def _release_some(self) -> None:
        """Let dialogs that rested longest go from memory; they are opened again when needed."""
        while len(self._used) > MAX_OPEN:
            oldest = next(iter(self._used))
            dialog = next((each for each in self._center.dialogs if each.id == oldest), None)
            if dialog is not None and dialog.is_running:
                self._used.move_to_end(oldest)
                return
            del self._used[oldest]
            if dialog is not None:
                await self._center.release_dialog(oldest)


def _place(dialog: Dialog, entry: Entry) -> int:
    """Return where what was just appended stands; taken back at once by another program, at the end."""
    index = dialog.index_of(entry)
    return dialog.message_count if index is None else index


def _attached(entry: TextEntry) -> list[object]:
    kept = entry.meta.get("attachments")
    return list(cast("list[object]", kept)) if isinstance(kept, list) else []


def _trim(kept: OrderedDict[tuple[str, str], Sent]) -> None:
    while len(kept) > MAX_KEYS:
        kept.popitem(last=False)
