"""What of the pictures and documents in tool results a model is shown, and the words for the rest."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from dialoom.llm.messages import Message, ToolResultPart


def with_files_shown(messages: Iterable[Message], media_types: Collection[str]) -> Iterator[Message]:
    """Give `messages` with only those files in tool results that are of `media_types`.

    Of every other one the result says that the model was not shown it: a model that is told of a picture
    and not of that describes what it never saw.
    """
    for message in messages:
        if message.role == "tool" and message.files:
            parts = tuple(_shown(result, media_types) for result in message.tool_results)
            yield msgspec.structs.replace(message, parts=parts)
        else:
            yield message


def show_files(messages: Sequence[Message], media_types: Collection[str]) -> bool:
    """Whether a tool result among `messages` holds a file of `media_types`."""
    shown = (file for message in messages if message.role == "tool" for file in message.files)
    return any(file.media_type in media_types for file in shown)


def _shown(result: ToolResultPart, media_types: Collection[str]) -> ToolResultPart:
    shown = tuple(file for file in result.files if file.media_type in media_types)
    notes = [
        f"[not shown to you: {file.told}]" for file in result.files if file.media_type not in media_types
    ]
    content = "\n".join(filter(None, [result.content, *notes]))
    return msgspec.structs.replace(result, content=content, files=shown)
