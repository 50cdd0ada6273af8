"""What a user says, before an agent reads it."""

import msgspec

from dialoom.agent.guards import Blocked, Guards
from dialoom.llm.messages import Message, TextPart


async def admitted(guards: Guards, message: Message) -> Message | Blocked:
    """Return the words that the model may read, in place of those in `message`."""
    passed = await guards.check_input(message.text)
    if isinstance(passed, Blocked):
        return passed
    return message if passed.value == message.text else reworded(message, passed.value)


def reworded(message: Message, text: str) -> Message:
    """Return `message` with its words replaced, in the place where they began."""
    first = next((at for at, part in enumerate(message.parts) if isinstance(part, TextPart)), 0)
    before = [part for part in message.parts[:first] if not isinstance(part, TextPart)]
    after = [part for part in message.parts[first:] if not isinstance(part, TextPart)]
    return msgspec.structs.replace(message, parts=(*before, TextPart(text), *after))
