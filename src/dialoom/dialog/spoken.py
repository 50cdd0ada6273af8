"""What was said in a dialog, as people read it, add to it and take it back."""

import logging
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Self, get_args

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.conversation import CardEntry, Entry, TextEntry
from dialoom.conversation.entries import decode_object
from dialoom.dialog.choices import Choices
from dialoom.dialog.live_stream import LiveStream, Signals
from dialoom.dialog.outbox import entries_of
from dialoom.dialog.prompts import MAX_NAME
from dialoom.dialog.saved import read_saved, saved_dict
from dialoom.dialog.settings import DialogSettings
from dialoom.llm import Message, Role

_log = logging.getLogger("dialoom.dialog")

NOTHING_SAID = TextEntry(role="user", content="")


class Spoken(Choices, Signals):
    """The messages of one dialog: texts and cards in order; an index is a place among the visible ones.

    Changes are seen at once and stored by `save`, or by the next run. While a run goes on the log is the
    run's: changing it raises `RunInProgressError`.
    """

    _stream: LiveStream

    @abstractmethod
    def _check_idle(self) -> None:
        """Raise `DialogClosedError` or `RunInProgressError` when the log may not be changed."""

    @abstractmethod
    def _took_back(self) -> None:
        """Do what follows from messages that were taken back."""

    @abstractmethod
    def _become(self, dialog_id: str) -> None:
        """Be the dialog `dialog_id` from now on."""

    @property
    def messages(self) -> tuple[Entry, ...]:
        """All messages. Raises `NotLoadedError` when this is the end of a longer dialog; see `load`."""
        return self._journal.transcript.all()

    @property
    def message_count(self) -> int:
        return len(self._journal.transcript)

    @property
    def last_message(self) -> Entry:
        """The newest message; an empty one when there is none."""
        count = self.message_count
        return self._journal.transcript.entry(count - 1) if count else NOTHING_SAID

    def message(self, index: int) -> Entry:
        """Return the message at `index`. Raises `UsageError` when there is none."""
        if not 0 <= index < self.message_count:
            raise UsageError(f"there is no message {index}; this dialog has {self.message_count}")
        return self._journal.transcript.entry(index)

    def index_of(self, entry: Entry) -> int | None:
        """Return where a message that was appended here stands, None when it does so no more.

        Once it is stored that is its index for everybody: what another program wrote before it is counted.
        """
        return self._journal.index_of(entry)

    def append_message(self, message: Entry | Message | Role, content: str = "") -> Self:
        """Add a message: an entry, a model's message, or a role and a text. Raises `UsageError`."""
        self._check_idle()
        for entry in _entries(message, content):
            self._append(entry)
        return self

    def append_prompt(self, name: str, variables: Mapping[str, str] | None = None) -> Self:
        """Fill in the prompt `name`, the dialog's own or the center's, and add it.

        Without such a prompt nothing is added, and the log says so.
        """
        prompt = self.get_prompt(name)
        if prompt is None:
            _log.warning("there is no prompt of this name", extra={"prompt": one_line(str(name), MAX_NAME)})
            return self
        return self.append_message(prompt.role, prompt.render(variables))

    def clear_messages(self) -> Self:
        """Take every message back; the kit and the choice of model stay."""
        return self.truncate_to(0)

    def truncate_to(self, count: int) -> Self:
        """Keep the first `count` messages; more than there are keeps all. A run that is paused is given up.

        What was taken back stays in the log, and is seen by nobody; a question that is still seen is added
        once more, as expired. Raises `UsageError` below 0.
        """
        self._check_idle()
        if count < 0:
            raise UsageError(f"a dialog cannot keep {count} messages; give 0 or more")
        if self._journal.truncate(count):
            self.messages_removed.emit(count)
            self._took_back()
        return self

    def find_last_assistant_message(self) -> int:
        """Return the index of the newest assistant text, -1 when there is none."""
        for index, entry in self._journal.transcript.newest_first():
            if isinstance(entry, TextEntry) and entry.role == "assistant":
                return index
        if self._journal.transcript.start:
            raise self._journal.transcript.not_loaded()
        return -1

    @property
    def is_streaming(self) -> bool:
        """Whether an answer is coming in."""
        return self._stream.is_open

    @property
    def streaming_content(self) -> str:
        """What has come of the answer and is not closed yet."""
        return self._stream.text

    @property
    def reasoning_content(self) -> str:
        """What the model thought in the newest answer; cleared when the next one begins."""
        return self._stream.reasoning

    def begin_assistant_message(self) -> Self:
        """Begin to take an answer in by hand: for a host that asks its model itself."""
        self._check_idle()
        self._stream.begin()
        return self

    def append_delta(self, text: str) -> Self:
        """Take in a piece of the answer. Raises `UsageError` when none was begun."""
        self._open_stream().add(text)
        return self

    def append_reasoning(self, text: str) -> Self:
        """Take in a piece of what the model thinks. Raises `UsageError` when no answer was begun."""
        self._open_stream().add_reasoning(text)
        return self

    def end_assistant_message(self) -> Self:
        """Add the answer with its reasoning as one message; an empty one is only ended."""
        stream = self._open_stream()
        text = stream.text
        if text:
            self._append(TextEntry(role="assistant", content=text, reasoning=stream.reasoning))
        stream.end(text)
        return self

    def copy_to(self, target: "Spoken | None") -> bool:
        """Copy messages, kit and choices to `target`, which keeps its id and its tools.

        Return False for None and for the dialog itself.
        """
        if target is None or target is self:
            return False
        self._check_open()
        target._take(self.messages)  # noqa: SLF001 - another of its own kind
        tools = target.own_kit().tools
        settings = self._journal.settings
        target._set(  # noqa: SLF001 - another of its own kind
            **{name: getattr(settings, name) for name in _COPIED},
            kit=msgspec.structs.replace(settings.kit, tools=tools),
        )
        return True

    def to_dict(self) -> dict[str, object]:
        """Return id, choices, kit and messages as JSON values; tools are left out."""
        return saved_dict(self._journal.id, self._settings_to_save(), self.messages)

    def from_dict(self, fields: Mapping[str, object]) -> bool:
        """Become what `to_dict` wrote; return whether an id was restored, else the dialog keeps its own.

        The tools of this dialog stay. Raises `UsageError`, and then nothing was changed.
        """
        self._check_idle()
        saved = read_saved(fields)
        if saved.id is not None and saved.id != self._journal.id:
            self._become(saved.id)
        self._take(saved.entries)
        kit = msgspec.structs.replace(saved.settings.kit, tools=self.own_kit().tools)
        guides = self._journal.settings.guides  # where the texts stand here, whatever was saved
        self._journal.set(msgspec.structs.replace(saved.settings, kit=kit, guides=guides))
        return saved.id is not None

    def to_json(self) -> str:
        """Return `to_dict` as one line of JSON."""
        return msgspec.json.encode(self.to_dict()).decode()

    def from_json(self, text: str) -> bool:
        """Become what `to_json` wrote, as `from_dict` does; at most 32 Mi characters."""
        return self.from_dict(decode_object(text))

    def _moved(self, start: int, end: int) -> None:
        """Tell that another program wrote here: messages from `start` on are new, or are elsewhere now."""
        self.messages_removed.emit(start)
        for index in range(start, end):
            self.message_appended.emit(index)

    def _append(self, entry: Entry, key: str | None = None) -> None:
        self.message_appended.emit(self._journal.append(entry, key))

    def _take(self, entries: Iterable[Entry]) -> None:
        """Show `entries` in place of what is here."""
        self.truncate_to(0)
        for entry in entries:
            self._append(entry)

    def _settings_to_save(self) -> DialogSettings:
        return msgspec.structs.replace(self._journal.settings, branch_from_id=self.branch_from_id)

    def _open_stream(self) -> LiveStream:
        self._check_idle()
        if not self._stream.is_open:
            raise UsageError("no answer was begun; call begin_assistant_message first")
        return self._stream


def _entries(message: Entry | Message | Role, content: str) -> Iterable[Entry]:
    match message:
        case TextEntry() | CardEntry():
            return (message,)
        case Message():
            return entries_of(message)
        case role if role in get_args(Role):
            return (TextEntry(role=role, content=content),)
        case _:
            raise UsageError(
                f"there is no role {one_line(str(message), 40)!r}; it is one of {', '.join(get_args(Role))}"
            )


_COPIED = ("provider_id", "model_id", "requirement", "system", "active_skills", "taught")


def words(text: str) -> str:
    """Return what a person says. Raises `UsageError` when that is nothing."""
    if not isinstance(text, str) or not text.strip():  # pyright: ignore[reportUnnecessaryIsInstance] - foreign callers
        raise UsageError("there is nothing to send; write a text")
    return text
