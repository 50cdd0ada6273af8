"""A history of tool calls as plain words, for servers that know no tools."""

from collections.abc import Collection, Iterator, Sequence

import msgspec

from dialoom.llm.messages import Message, ToolCall, ToolCallPart, assistant, user
from dialoom.llm.pairing import paired
from dialoom.llm.tool_modes.schema import ARGUMENTS, TOOL
from dialoom.llm.wire.tool_files import with_files_shown


def spoken(messages: Sequence[Message], tool_files: Collection[str] = ()) -> tuple[Message, ...]:
    """Return `messages` with each call as the JSON a model would write, each result as said by the user.

    Files of results go along where they are of the media types `tool_files`.
    """
    shown = with_files_shown(paired(messages), tool_files)
    return tuple(said for message in shown for said in _spoken(message))


def _spoken(message: Message) -> Iterator[Message]:
    if message.role == "tool":
        for result in message.tool_results:
            yield user(f"Tool result: {result.content}", files=result.files)
        return
    if not message.tool_calls:
        yield message
        return
    words = tuple(part for part in message.parts if not isinstance(part, ToolCallPart))
    calls = "\n".join(map(_call_text, message.tool_calls))
    yield msgspec.structs.replace(message, parts=(*words, *assistant(calls).parts))


def _call_text(call: ToolCall) -> str:
    return msgspec.json.encode({TOOL: call.name, ARGUMENTS: call.arguments or {}}).decode()
