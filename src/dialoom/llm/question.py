"""A question as a provider gets it: messages and options, and nothing else."""

from collections.abc import Iterable
from typing import cast

from dialoom.base.errors import UsageError
from dialoom.llm.given import named
from dialoom.llm.messages import Message
from dialoom.llm.options import ChatOptions

_GIVE = "give a list of messages, like [user('...')]"


def question_of(messages: object, options: object) -> tuple[Message, ...]:
    """Return the messages of a question. Raises `UsageError` for what are none, and for other options."""
    if not isinstance(options, ChatOptions):
        raise UsageError(f"the options are {named(options)}; give ChatOptions(model='...')")
    if isinstance(messages, str | Message) or not isinstance(messages, Iterable):
        raise UsageError(f"the messages are {named(messages)}; {_GIVE}")
    found = tuple(cast("Iterable[object]", messages))
    for message in found:
        if not isinstance(message, Message):
            raise UsageError(f"{named(message)} stands among the messages; {_GIVE}")
    return cast("tuple[Message, ...]", found)
