"""A dialog: the live handle of one conversation. It answers, asks, branches, and goes on after a crash."""

import asyncio
from collections.abc import Mapping
from typing import Protocol, Self

import msgspec

from dialoom.base.cancel import CancelScope
from dialoom.base.errors import UsageError
from dialoom.base.ids import new_id
from dialoom.base.text import one_line
from dialoom.conversation import Conversation, Header, HeaderChange, TextEntry
from dialoom.conversation.cards import Card
from dialoom.dialog.announcer import Announcer
from dialoom.dialog.asking import Standing, expire_lost, paused
from dialoom.dialog.errors import AlreadyAnsweredError, DialogClosedError, RunInProgressError
from dialoom.dialog.fork import begin_thread, said_at
from dialoom.dialog.handle import RunHandle
from dialoom.dialog.journal import Journal
from dialoom.dialog.kit import EMPTY_KIT
from dialoom.dialog.live_stream import LiveStream, Signals
from dialoom.dialog.outbox import key_of
from dialoom.dialog.policy import RunBase
from dialoom.dialog.questions import Cards, answer_to
from dialoom.dialog.run import DialogRun, Ended
from dialoom.dialog.settings import KEY, Begun
from dialoom.dialog.spoken import Spoken, words
from dialoom.dialog.standing import turn_of
from dialoom.graph import Checkpoint


class Home(Protocol):
    """The center of a dialog, as far as the dialog knows it."""

    async def open(self, dialog_id: str) -> "Dialog": ...

    def rename(self, dialog_id: str, new: str) -> None:
        """Know a dialog under another id from now on. Raises `UsageError` when that id is taken."""
        ...


class Dialog(Spoken):
    """One conversation that can be continued; made and opened by a `Center`.

    It belongs to one event loop. One run at a time: a second is refused at once. Everything it says is in
    the store when it says so; a run that was cut short by a crash is gone on with by `resume`.
    """

    def __init__(
        self, home: Home, base: RunBase, journal: Journal, *, standing: Standing | None = None
    ) -> None:
        Signals.__init__(self)
        self._home = home
        self._base = base
        self._journal = journal
        self._journal.on_moved = self._moved
        self._standing = standing
        self._stream = LiveStream(self)
        self._handle: RunHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = ""

    @property
    def id(self) -> str:
        """The id of the dialog, of its conversation, and of its thread of runs."""
        return self._journal.id

    @property
    def header(self) -> Header:
        """Title and times of the conversation."""
        return self._journal.header

    def set_title(self, title: str) -> Self:
        self._check_open()
        self._journal.set_title(title)
        return self

    @property
    def is_closed(self) -> bool:
        return bool(self._closed)

    @property
    def is_running(self) -> bool:
        return self._handle is not None

    @property
    def waiting(self) -> tuple[str, ...]:
        """The ids of the cards that a paused run waits for; answer them with `answer`."""
        return self._standing.open_cards if self._standing and not self.is_running else ()

    @property
    def waits_until(self) -> float | None:
        """When what a paused run waits for expires, in seconds since the Unix epoch; None for never."""
        return self._cards().until(self.waiting) if self.waiting else None

    @property
    def is_unfinished(self) -> bool:
        """Whether `resume` has something to go on with: a run cut short, or words that nobody answered."""
        return not self.is_running and (self._can_go_on() or self._is_unanswered())

    def run(self) -> RunHandle:
        """Have the messages answered. Returns at once; the handle is awaited, read, or cancelled.

        Supersedes a run that is paused. Raises `RunInProgressError` while another goes on, after telling
        `run_failed`; whatever else fails is told by the handle and the signals.
        """
        return self._start(goes_on=False)

    def send(self, text: str) -> RunHandle:
        """Say `text` as the user and have it answered. Raises as `run` does, and then nothing was said."""
        self._check_can_start()
        self.append_message("user", words(text))
        return self.run()

    def resume(self) -> RunHandle:
        """Go on where a crash, a failure or a restart left off; what was done is not done again.

        Raises `UsageError` when there is nothing to go on with, and `RunInProgressError`.
        """
        self._check_can_start()
        if not self._can_go_on() and not self._is_unanswered():
            raise UsageError("this dialog has nothing to go on with; send it a text")
        return self._start(goes_on=self._can_go_on())

    def answer(self, card_id: str, action: str, fields: Mapping[str, object]) -> RunHandle:
        """Answer a card that a paused run waits for, and go on: `decide` an approval, `submit` a form.

        Raises `AlreadyAnsweredError`, which says what became of it, `UsageError` for an answer that does not
        fit (`InvalidAnswersError` for a form), and `RunInProgressError`.
        """
        self._check_open()
        self._expire_overdue()
        standing, card = self._standing, self._open_card(card_id)
        waiting = standing.waiting if standing else ()
        if standing is None or card_id not in standing.open_cards:
            raise UsageError(f"no run waits for card {one_line(card_id, 80)!r}; change it with act")
        self._check_can_start()
        answered = self._base.cards.act(card, action, fields)
        answer = answer_to(answered, fields, tool=self.get_tool)
        self._append(self._base.cards.encode(answered), key_of(card_id, "answer"))
        told = tuple(
            msgspec.structs.replace(each, is_answered=True, answer=answer)
            if each.card_id == card_id
            else each
            for each in waiting
        )
        self._standing = msgspec.structs.replace(standing, waiting=told, answered=card_id)
        return self._start(goes_on=True)

    def act(self, card_id: str, action: str, fields: Mapping[str, object]) -> Card:
        """Do `action` on a card that no run waits for; return its new state, which is appended.

        Raises `UsageError` and `AlreadyAnsweredError` as `answer` does.
        """
        self._check_idle()
        card = self._open_card(card_id)
        if card_id in self.waiting:
            raise UsageError("a run waits for this card; answer it")
        changed = self._base.cards.act(card, action, fields)
        self._append(self._base.cards.encode(changed))
        return changed

    def cancel(self) -> None:
        """Stop the run that goes on, if one does; what was said so far is kept and marked.

        One that is paused is given up: its questions expire.
        """
        if self._handle is not None:
            self._handle.cancel()
        elif self.waiting:
            self._give_up()

    async def settle(self) -> None:
        """Look what another program did here, and what is still waited for.

        Questions that no run waits with any more expire, and so do those whose time is over. Does nothing
        while a run goes on. Raises `StoreError`.
        """
        self._check_open()
        if self.is_running:
            return
        moved = await self._journal.catch_up()
        before = self.message_count
        standing = await paused(self._base, self._journal, self._standing, moved=moved)
        await expire_lost(self._base, self._journal, standing)
        for index in range(before, self.message_count):
            self.message_appended.emit(index)
        if not self.is_running:
            self._standing = standing
            self._expire_overdue()
            await self._journal.flush_changes()

    async def save(self) -> None:
        """Store what was changed here and is not stored yet. Raises `StoreError`; nothing is lost then."""
        self._check_open()
        await self._journal.flush()

    async def load(self) -> None:
        """Read all of a long dialog, of which opening reads the end only."""
        await self.settle()
        await self._journal.flush_changes()
        await self._journal.hold(0)

    async def branch(self, at: int | None = None) -> "Dialog":
        """Return a new dialog with the first `at` messages, all when None; this one stays as it is.

        It has the choices and the kit of this one, tools included, and `branch_from_id` names this one.
        """
        self._check_idle()
        if at is not None and not 0 <= at <= self.message_count:
            raise UsageError(f"cannot branch at {at}; this dialog has {self.message_count} messages")
        return await self._twin((await self._stored()).branch(at))

    async def fork(self, checkpoint: Checkpoint) -> "Dialog":
        """Return a new dialog that goes on from where a run of this one stood; this one stays as it is.

        It has what had been said there. What was asked there waits for an answer of its own, and `resume`
        goes on with what was under way. Raises `UsageError` for a checkpoint of something else.
        """
        self._check_idle()
        if checkpoint.thread_id != self.id:
            raise UsageError("this checkpoint is of another thread; open the dialog that it is of")
        stored = await self._stored()
        count = await said_at(self._base, stored, checkpoint)
        branch = stored.branch(count)
        await begin_thread(self._base, checkpoint, branch.id)  # first: without it its questions would expire
        return await self._twin(branch, begun=Begun(turn_of(checkpoint).id, count))

    async def regenerate(self) -> "Dialog":
        """Return a branch without the newest answer and what follows it, ready to `run`.

        Where the newest question got no answer, because its run was stopped or failed, nothing is left out.
        """
        self._check_idle()
        transcript = self._journal.transcript
        while (newest := transcript.newest_said()) is None and transcript.start:
            await self._journal.hold(transcript.start - 1)
        if newest is None:
            raise UsageError("this dialog has nothing to answer anew; send it a text")
        at, role = newest
        return await self.branch(None if role == "user" else at)

    async def edit(self, index: int, text: str) -> "Dialog":
        """Return a branch that ends with the user's message `index`, now saying `text`, ready to `run`."""
        self._check_idle()
        if 0 <= index < self.message_count:
            await self._journal.hold(index)
        entry = self.message(index)
        if not isinstance(entry, TextEntry) or entry.role != "user":
            raise UsageError(f"message {index} is not a text of the user; edit one that is")
        said = words(text)
        twin = await self.branch(index)
        return twin.append_message("user", said)

    async def aclose(self) -> None:
        """Stop a run that goes on, store what is due and let go of everything. Closing twice is no error.

        The center still lists a dialog that was closed here; close it there with `release_dialog`.
        """
        if not self._closed:
            await self._stop()
            try:
                await self._journal.flush_changes()
            finally:
                self._let_go("this dialog was closed; open it again with its center")

    async def remove(self) -> None:
        """Stop a run that goes on and forget the dialog for good, its stored conversation included.

        `Center.remove_dialog` does this, and takes the dialog out of its table.
        """
        await self._stop()
        self._let_go("this dialog was removed from its center; make or open another")
        if self._journal.is_stored:
            await self._base.stores.conversations.delete(self.id)
        await self._base.stores.erase_thread(self.id)

    def _start(self, *, goes_on: bool) -> RunHandle:
        self._check_can_start()
        scope = CancelScope()
        handle = self._handle = RunHandle(new_id(), scope)
        announcer = Announcer(self, self._stream, self._journal.transcript, handle=handle)
        run = DialogRun(
            self._base,
            self._journal,
            announcer,
            run_id=handle.run_id,
            scope=scope,
            before=self._standing,
            goes_on=goes_on,
        )
        self._task = asyncio.get_running_loop().create_task(self._carry(run, announcer, handle))
        return handle

    async def _carry(self, run: DialogRun, announcer: Announcer, handle: RunHandle) -> None:
        """Carry the run, and say in every case how it ended."""
        ended: Ended | None = None
        try:
            announcer.started(self.id)
            ended = await run.carry()
        finally:
            ended = ended or run.cut_off()
            self._standing, self._handle = ended.standing, None
            for each in ended.unsaid:
                self._append(each.entry, each.key)
            announcer.ended(ended.result)
            handle.end(ended.result)

    def _check_can_start(self) -> None:
        """Raise when no run can start now; while one goes on, tell it as a failure of a run of its own."""
        self._check_open()
        try:
            asyncio.get_running_loop()
        except RuntimeError as error:
            raise UsageError("a dialog runs on an event loop; call this in async code") from error
        if self._handle is not None:
            refused = RunInProgressError(self._handle.run_id)
            aside = RunHandle(new_id(), CancelScope())
            Announcer(self, self._stream, self._journal.transcript, handle=aside).failed(refused)
            raise refused

    def _check_open(self) -> None:
        if self._closed:
            raise DialogClosedError(self._closed)

    def _check_idle(self) -> None:
        self._check_open()
        if self._handle is not None:
            raise RunInProgressError(self._handle.run_id)

    def _can_go_on(self) -> bool:
        return self._standing is not None and self._standing.can_go_on

    def _is_unanswered(self) -> bool:
        """Whether the newest message is one that a model should answer."""
        last = self.last_message
        return self.message_count > 0 and isinstance(last, TextEntry) and last.role in {"user", "tool"}

    def _open_card(self, card_id: str) -> Card:
        """Return a card as it is now. Raises `UsageError` when it is not here or takes no answer."""
        card = self._cards().get(card_id)
        if not isinstance(card, Card):
            raise UsageError(f"there is no card {one_line(card_id, 80)!r} to be answered; see the messages")
        if card.is_closed:
            raise AlreadyAnsweredError(card.names.get("en", card.type), card.status or "done")
        return card

    def _took_back(self) -> None:
        self._give_up()

    def _cards(self) -> Cards:
        return Cards(self._base.cards, self._base.forms, self._journal.transcript.since(0))

    def _expire_overdue(self) -> None:
        until = self.waits_until
        if until is not None and until <= self._base.clock.now():
            self._give_up()

    def _give_up(self) -> None:
        """Go on with a paused run no more; the next one, or the next opening, forgets its checkpoints."""
        standing, self._standing = self._standing, None
        if standing is not None:
            for each in self._cards().close(standing.waiting):
                self._append(each.entry, each.key)

    def _become(self, dialog_id: str) -> None:
        self._home.rename(self._journal.id, dialog_id)
        self._journal = self._journal.renamed(dialog_id)
        self._journal.on_moved = self._moved
        self._standing = None

    async def _stored(self) -> Conversation:
        await self._journal.flush()
        return await self._base.stores.conversations.load(self.id)

    async def _twin(self, branch: Conversation, *, begun: Begun | None = None) -> "Dialog":
        """Store a branch and open it; questions in it that nobody waits with expire."""
        settings = self._journal.settings.until(len(branch.entries))
        settings = msgspec.structs.replace(settings, branch_from_id=self.id, begun=begun)
        branch.update(HeaderChange(settings={**branch.header.settings, KEY: settings.to_dict()}))
        await self._base.stores.conversations.create(branch)
        twin = await self._home.open(branch.id)
        for tool in self.own_kit().tools.values():
            twin.add_tool(tool)
        return twin

    async def _stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        if self._task is not None and self._task is not asyncio.current_task():
            await asyncio.wait({self._task})

    def _let_go(self, why: str) -> None:
        self._closed = why
        self._standing = None
        self._journal.set(msgspec.structs.replace(self._journal.settings, kit=EMPTY_KIT))
