"""Pure views of an agent's state: the history to go on with, and what happened in the turn."""

from collections.abc import Iterator, Sequence

from dialoom.agent.events import (
    AgentFinished,
    AgentStep,
    ApprovalRequested,
    RoundStarted,
    ToolFinished,
    ToolStarted,
)
from dialoom.agent.pending import Approval, Pending
from dialoom.graph.state import State
from dialoom.llm.messages import Message
from dialoom.llm.pairing import paired


def history_of(state: State, *, waiting: bool = False) -> tuple[Message, ...]:
    """Return the messages of the thread with each call's result behind it, in call order.

    A call without a result gets one that says `cancelled`, so that every wire takes the history; when the
    run is `waiting` for a person it gets none, for it is still to come.
    """
    turn: Sequence[Message] = state.get("turn") or ()
    said = paired(turn)
    if not waiting:
        return said
    results = {id(part) for message in turn for part in message.tool_results}
    return tuple(message for message in said if all(id(part) in results for part in message.tool_results))


def steps_of(
    state: State, history: Sequence[Message], pending: Sequence[Pending] = ()
) -> tuple[AgentStep, ...]:
    """Return what happened since the last words of the user, in an order that depends on nothing else.

    `history` is the `history_of` that state, `pending` what it waits for.
    """
    steps = [*_steps(_newest_turn(history))]
    steps += [ApprovalRequested(approval=each) for each in pending if isinstance(each, Approval)]
    if state.get("outcome") == "finished":
        steps.append(AgentFinished(answer=state["turn"][-1].text))
    return tuple(steps)


def _newest_turn(messages: Sequence[Message]) -> Sequence[Message]:
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role == "user":
            return messages[at + 1 :]
    return messages


def _steps(messages: Sequence[Message]) -> Iterator[AgentStep]:
    rounds = 0
    for message in messages:
        if message.role == "assistant":
            rounds += 1
            yield RoundStarted(round=rounds)
            for call in message.tool_calls:
                yield ToolStarted(call=call)
        for part in message.tool_results:
            yield ToolFinished(
                call_id=part.call_id,
                tool=part.name or "",
                content=part.content,
                is_error=part.is_error,
                files=part.files,
            )
