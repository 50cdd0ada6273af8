"""A history that every server accepts: each tool call is answered at once, each answer has its call."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, count

import msgspec

from dialoom.llm.messages import Message, ToolCall, ToolCallPart, ToolResultPart

_NOT_IN_NAMES = re.compile(r"[^\w.:/-]+")
NOT_RUN = "cancelled: this call was never finished"

_Results = dict[str, list[ToolResultPart]]


def paired(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return `messages` with each call's result right behind it, in call order.

    A call without a result gets one that says `cancelled`; a result without a call is left out, and so is
    an assistant message without parts. Calls of one message whose ids are the same, or empty, get ids of
    their own, and a call without a name gets one. The messages themselves are never changed.
    """
    return tuple(_paired(messages))


def _paired(messages: Sequence[Message]) -> Iterator[Message]:
    for at, message in enumerate(messages):
        if message.role == "tool" or (message.role == "assistant" and not message.parts):
            continue
        calls = _calls(message)
        if not calls:
            yield message
            continue
        results = _results_until_next_call(messages, at + 1)
        answers = [_answer(call, results) for call in calls]
        repaired = _sendable(calls)
        yield message if repaired == calls else _with_calls(message, repaired)
        for answer, call in zip(answers, repaired, strict=True):
            same = answer.call_id == call.id  # what needs no repair stays the very part it was
            yield Message(
                role="tool", parts=(answer if same else msgspec.structs.replace(answer, call_id=call.id),)
            )


def _calls(message: Message) -> tuple[ToolCall, ...]:
    """Return the calls that count: nobody but a model calls tools."""
    return message.tool_calls if message.role == "assistant" else ()


def _results_until_next_call(messages: Sequence[Message], start: int) -> _Results:
    """Collect the results that can belong to the calls just made; later messages may use their ids again."""
    found: _Results = {}
    for at in range(start, len(messages)):
        message = messages[at]
        if _calls(message):
            break
        for result in message.tool_results:
            found.setdefault(result.call_id, []).append(result)
    return found


def _answer(call: ToolCall, results: _Results) -> ToolResultPart:
    """Take the first result that is left for a call."""
    left = results.get(call.id)
    if left:
        return left.pop(0)
    return ToolResultPart(call_id=call.id, content=NOT_RUN, name=call.name, is_error=True)


def _sendable(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """Return the calls with ids of their own, and names without what no server takes in one."""
    ids = [call.id for call in calls]
    if len({*ids, ""}) > len(ids) and not any(_NOT_IN_NAMES.search(call.name or " ") for call in calls):
        return calls
    return tuple(
        msgspec.structs.replace(call, id=id_, name=_NOT_IN_NAMES.sub("_", call.name) or "unnamed")
        for call, id_ in zip(calls, _own_ids(ids), strict=True)
    )


def _own_ids(ids: list[str]) -> list[str]:
    """Return other ids for those that are empty or were there before."""
    own: list[str] = []
    for plain in ids:
        base = plain or "call"
        names = chain([base], (f"{base}_{number}" for number in count(2)))
        own.append(next(name for name in names if name not in own and (name == plain or name not in ids)))
    return own


def _with_calls(message: Message, calls: tuple[ToolCall, ...]) -> Message:
    left = iter(calls)
    parts = tuple(
        ToolCallPart(next(left)) if isinstance(part, ToolCallPart) else part for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)
