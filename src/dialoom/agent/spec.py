"""What an agent is made of, for the graph that carries it."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from dialoom.agent.limits import AgentLimits
from dialoom.graph.state import State
from dialoom.llm.messages import Message
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions
from dialoom.llm.prices import LIST_PRICES, Prices
from dialoom.llm.provider import Provider
from dialoom.tools.policy import DEFAULT_POLICY, ToolExecutionPolicy
from dialoom.tools.registry import ToolRegistry

Context: TypeAlias = Sequence[Message] | Callable[[State], Sequence[Message]]
"""What stands before the messages of the turn in every prompt: the messages themselves, or a function that
finds them by the state, as in `lambda state: prompt(entries[: state["seen"]])`. It must not wait."""


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent works; the defaults are good ones.

    - `options`: how each answer is asked for; the agent sets `tools`, `cancel` and `response_schema` itself.
    - `limits`: rounds, tool calls, tokens and cost of one turn.
    - `policy`: how calls are run.
    - `prices`: what the cost is reckoned with.
    """

    options: ChatOptions = DEFAULT_OPTIONS
    limits: AgentLimits = AgentLimits()
    policy: ToolExecutionPolicy = DEFAULT_POLICY
    prices: Prices = LIST_PRICES


DEFAULT_SETTINGS: Final = AgentSettings()


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Who answers, with which tools, after which words."""

    provider: Provider
    tools: ToolRegistry = msgspec.field(default_factory=ToolRegistry)
    context: Context = ()
    settings: AgentSettings = DEFAULT_SETTINGS
    name: str = "agent"

    def prompt(self, state: State) -> list[Message]:
        """Return what the model is to read next."""
        before = self.context(state) if callable(self.context) else self.context
        return [*before, *state["turn"]]
