"""A history that every server accepts: each tool call is answered at once, each answer has its call."""

from collections.abc import Iterator, Sequence

from dialoom.llm.messages import Message, ToolCall, ToolResultPart

NOT_RUN = "cancelled: this call was never finished"


def paired(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return `messages` with each call's result right behind it, in call order.

    A call without a result gets one that says `cancelled`; a result without a call is left out, and so is
    an assistant message without parts. The messages themselves are never changed.
    """
    return tuple(_paired(messages))


def _paired(messages: Sequence[Message]) -> Iterator[Message]:
    for at, message in enumerate(messages):
        if message.role == "tool" or (message.role == "assistant" and not message.parts):
            continue
        yield message
        calls = message.tool_calls
        if calls:
            results = _results_until_next_call(messages, at + 1)
            yield from (_answer(call, results) for call in calls)


def _results_until_next_call(messages: Sequence[Message], start: int) -> dict[str, ToolResultPart]:
    """Collect the results that can belong to the calls just made; later messages may use their ids again."""
    found: dict[str, ToolResultPart] = {}
    for at in range(start, len(messages)):
        message = messages[at]
        if message.role != "tool" and message.tool_calls:
            break
        for result in message.tool_results:
            found.setdefault(result.call_id, result)
    return found


def _answer(call: ToolCall, results: dict[str, ToolResultPart]) -> Message:
    result = results.get(call.id) or ToolResultPart(
        call_id=call.id, content=NOT_RUN, name=call.name, is_error=True
    )
    return Message(role="tool", parts=(result,))
