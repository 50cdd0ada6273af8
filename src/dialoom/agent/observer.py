"""A listener for agents: one method for each thing worth knowing."""

from dialoom.agent.events import AgentFinished, ApprovalRequested, RoundStarted, ToolFinished, ToolStarted
from dialoom.agent.pending import Approval
from dialoom.base.events import Event
from dialoom.graph.events import Chunk
from dialoom.llm.events import ResponseCompleted, TextDelta
from dialoom.llm.messages import ToolCall
from dialoom.llm.response import ChatResponse


class AgentObserver:
    """Base of observers that want methods to override; each does nothing by itself.

    Give one to `ReActAgent.add_observer`, to `AgentNode.add_observer`, or to any graph with an agent in it.
    It is called by one thread at a time, in order, also when tools run in parallel, and must not block. One
    that fails is logged and never breaks the run.
    """

    def on_event(self, event: Event) -> None:
        """Hand the agent's part of an event of the engine to its method."""
        if not isinstance(event, Chunk):
            return
        match event.value:
            case TextDelta(text=text):
                self.on_delta(text)
            case RoundStarted(round=number):
                self.on_model_start(number)
            case ResponseCompleted(response=response):
                self.on_model_end(response)
            case ToolStarted(call=call):
                self.on_tool_call(call)
            case ToolFinished() as finished:
                self.on_tool_result(finished)
            case ApprovalRequested(approval=approval):
                self.on_approval(approval)
            case AgentFinished(answer=answer):
                self.on_final(answer)
            case _:
                pass

    def on_model_start(self, number: int) -> None:
        """The model is asked; `number` counts the rounds of the turn from 1."""

    def on_delta(self, text: str) -> None:
        """More words of an answer."""

    def on_model_end(self, response: ChatResponse) -> None:
        """The model has answered, with words or calls."""

    def on_tool_call(self, call: ToolCall) -> None:
        """A call is run, or answered because it cannot be."""

    def on_tool_result(self, finished: ToolFinished) -> None:
        """A call has its answer."""

    def on_approval(self, approval: Approval) -> None:
        """A call waits for a person."""

    def on_final(self, answer: str) -> None:
        """The model gave its final answer."""
