"""What a program hands to an agent, looked at where it is handed over: a slip is named there, in one line."""

from collections.abc import Iterable
from types import UnionType
from typing import Final, cast

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.graph.options import RunOptions
from dialoom.llm.messages import Message, SourcePart, TextPart, user

AN_OBSERVER: Final = "an AgentObserver, or another object with on_event(event)"
_WORDS: Final = "words, or a message made by user(...)"
_MESSAGES: Final = "messages, such as result.history"


def expect(value: object, kind: type | UnionType, *, what: str, give: str) -> None:
    """Raise `UsageError` unless `value` is a `kind`; it says `what` it was given as, and what to `give`."""
    if not isinstance(value, kind):
        raise _no(value, what, give)


def expect_part(value: object, method: str, *, what: str, give: str) -> None:
    """Raise `UsageError` unless `value` is an object with `method`; the class of one is none."""
    if isinstance(value, type) or not callable(getattr(value, method, None)):
        raise _no(value, what, give)


def expect_options(options: object) -> None:
    """Raise `UsageError` for what are no options of a run."""
    expect(options, RunOptions, what="the options of a run", give='RunOptions(thread_id="...", timeout=30)')


def question_of(question: object) -> Message:
    """Return what a user asks as a message. Raises `UsageError` when there is nothing in it to answer."""
    asked = user(question) if isinstance(question, str) else question
    if not isinstance(asked, Message):
        raise _no(asked, "a question", _WORDS)
    if asked.role != "user":
        raise UsageError(f"the question is a message of role {asked.role}; give {_WORDS}")
    if not asked.text.strip() and all(isinstance(part, TextPart | SourcePart) for part in asked.parts):
        raise UsageError("the question is empty; give some words to answer")
    return asked


def messages_of(history: object) -> tuple[Message, ...]:
    """Return a history as messages. Raises `UsageError` for what is none."""
    if isinstance(history, str) or not isinstance(history, Iterable):
        raise _no(history, "a history", _MESSAGES)
    messages = tuple(cast("Iterable[object]", history))
    for message in messages:
        if not isinstance(message, Message):
            raise _no(message, "a message of a history", f"{_MESSAGES}; Message.from_dict reads stored ones")
    return cast("tuple[Message, ...]", messages)


def _no(value: object, what: str, give: str) -> UsageError:
    """Return the error for a value of the wrong kind. It never shows what the value holds."""
    shown = f"a value of type {type(value).__name__}"
    if value is None:
        shown = "None"
    if isinstance(value, type):
        shown = f"the class {value.__name__} itself"
    return UsageError(f"{one_line(shown, 80)} was given as {what}; give {give}")
