"""The runs of a server: those that go on, and the newest of those that are over."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress

from dialoom.conversation.entries import Entry
from dialoom.dialog import Dialog, DialogEvent, NotLoadedError, RunFailed, RunFinished, RunHandle
from dialoom.server.hub import Event, EventHub
from dialoom.server.numbered import numbering_of
from dialoom.server.problems import ProblemError, not_found
from dialoom.server.run_tale import RunTale, RunView

MAX_REMEMBERED = 2_000


class Tales:
    """Knows each run by its id, and the newest of each conversation; tells the hub what they say.

    `now` gives the moment as text. 2,000 runs are known, those that go on among them.
    """

    def __init__(self, hub: EventHub, *, now: Callable[[], str]) -> None:
        self._hub = hub
        self._now = now
        self._tales: OrderedDict[str, RunTale] = OrderedDict()
        self._newest: dict[str, RunTale] = {}
        self._handles: dict[str, RunHandle] = {}

    @property
    def going(self) -> int:
        """How many runs go on."""
        return len(self._handles)

    def running(self, conversation_id: str) -> str | None:
        """Return the id of the run that goes on in a conversation."""
        tale = self._newest.get(conversation_id)
        return tale.run_id if tale is not None and tale.status == "running" else None

    def newest(self, conversation_id: str) -> str | None:
        """Return the id of the newest run of a conversation, whatever became of it."""
        tale = self._newest.get(conversation_id)
        return None if tale is None else tale.run_id

    def current(self, conversation_id: str) -> RunView | None:
        """Return the run that goes on or waits in a conversation."""
        tale = self._newest.get(conversation_id)
        return tale.view() if tale is not None and tale.is_going else None

    def find(self, run_id: str) -> RunView:
        """Return a run, also one that is over. Raises `ProblemError`."""
        tale = self._tales.get(run_id)
        if tale is None:
            raise not_found("run", run_id, then="its conversation has what became of it")
        return tale.view()

    def opened(self, run_id: str) -> list[Event]:
        """Return the beginnings of what has no end yet in a run that may be found."""
        return list(self._tales[run_id].opened())

    def handle(self, run_id: str | None) -> RunHandle | None:
        """Return what holds a run; None when it does not go on."""
        return self._handles.get(run_id or "")

    def check_idle(self, conversation_id: str) -> None:
        """Raise `ProblemError` while an answer is under way in a conversation."""
        if (run_id := self.running(conversation_id)) is not None:
            raise busy(run_id)

    def begin(self, dialog: Dialog, handle: RunHandle) -> RunHandle:
        """Know a run from now on; its events begin when the loop comes to it."""
        self._handles[handle.run_id] = handle
        tale = RunTale(
            handle.run_id,
            dialog.id,
            now=self._now,
            entry=dialog.message,
            numbering=lambda: numbering_of(_newest_first(dialog)),
            until=lambda: dialog.waits_until,
        )
        if (before := self._newest.get(dialog.id)) is not None:
            before.pass_on()
        self._tales[handle.run_id] = tale
        self._newest[dialog.id] = tale
        while len(self._tales) > MAX_REMEMBERED:
            _, old = self._tales.popitem(last=False)
            if self._newest.get(old.conversation_id) is old and not old.is_going:
                del self._newest[old.conversation_id]
        return handle

    def tell(self, event: DialogEvent) -> bool:
        """Tell what a run says; False for one that is not known: its caller was told that it was refused."""
        tale = self._tales.get(event.run_id)
        if tale is None:
            return False
        self._publish(tale, tale.tell(event))
        if isinstance(event, RunFinished | RunFailed):
            self._handles.pop(event.run_id, None)
        return True

    def settle(self, dialog: Dialog) -> None:
        """Tell when a dialog no longer waits, though its newest run did."""
        tale = self._newest.get(dialog.id)
        if tale is not None and tale.status == "waiting" and not dialog.is_running and not dialog.waiting:
            self._publish(tale, tale.give_up())

    def forget(self, conversation_id: str) -> None:
        """Know no newest run of a conversation that is gone."""
        self._newest.pop(conversation_id, None)

    def _publish(self, tale: RunTale, events: Iterator[Event]) -> None:
        for each in events:
            self._hub.publish(tale.conversation_id, each, runId=tale.run_id)


def busy(run_id: str | None) -> ProblemError:
    """Return the refusal of a second run beside the one that goes on."""
    return ProblemError(
        409, "run_active", "an answer is under way here; wait for it or cancel it", params={"runId": run_id}
    )


def _newest_first(dialog: Dialog) -> Iterator[Entry]:
    """Yield the messages of a dialog from its end, as far as it has read them."""
    with suppress(NotLoadedError):
        for at in reversed(range(dialog.message_count)):
            yield dialog.message(at)
