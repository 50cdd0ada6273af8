"""Pure views of an agent's state: the history to go on with, and what happened in the turn."""

from collections.abc import Collection, Iterator, Sequence

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


def history_of(state: State, *, open_calls: Collection[str] = ()) -> tuple[Message, ...]:
    """Return the messages of the thread with each call's result behind it, in call order.

    A call without a result gets one that says `cancelled`, but for `open_calls`, which get none.
    """
    turn: Sequence[Message] = state.get("turn") or ()
    said = paired(turn)
    if not open_calls:
        return said
    answered = {id(part) for message in turn for part in message.tool_results}
    return tuple(message for message in said if not _stands_in(message, open_calls, answered))


def steps_of(state: State, pending: Sequence[Pending] = ()) -> tuple[AgentStep, ...]:
    """Return what happened since the last words of the user, in an order that depends on nothing else."""
    open_calls = {each.id for each in pending}
    steps = [*_steps(_newest_turn(history_of(state, open_calls=open_calls)))]
    steps += [ApprovalRequested(approval=each) for each in pending if isinstance(each, Approval)]
    if state.get("outcome") == "finished":
        steps.append(AgentFinished(answer=state["turn"][-1].text))
    return tuple(steps)


def _stands_in(message: Message, open_calls: Collection[str], answered: Collection[int]) -> bool:
    return any(part.call_id in open_calls and id(part) not in answered for part in message.tool_results)


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
            )
