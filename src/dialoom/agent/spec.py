"""What an agent is made of, for the graph that carries it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from dialoom.agent.compaction import Compaction
from dialoom.agent.events import AgentEvent
from dialoom.agent.given import expect, expect_part
from dialoom.agent.guards import Guards
from dialoom.agent.history_limits import HistoryLimits
from dialoom.agent.limits import AgentLimits
from dialoom.agent.output import WantedOutput
from dialoom.base.errors import UsageError
from dialoom.graph.context import NodeContext
from dialoom.graph.state import State
from dialoom.llm.messages import Message
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions
from dialoom.llm.prices import LIST_PRICES, Prices
from dialoom.llm.provider import Provider
from dialoom.tools.context import ToolContext
from dialoom.tools.policy import DEFAULT_POLICY, ToolExecutionPolicy
from dialoom.tools.registry import ToolRegistry
from dialoom.tools.tool import Tool, ToolOptions

Context: TypeAlias = Sequence[Message] | Callable[[State], Sequence[Message]]
"""What stands before the messages of the turn in every prompt: the messages themselves, or a function that
finds them by the state, as in `lambda state: prompt(entries[: state["seen"]])`. It must not wait."""

Listen: TypeAlias = Callable[[NodeContext, AgentEvent], None]


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent works; the defaults are good ones.

    - `options`: how each answer is asked for; the agent sets `tools`, `cancel` and `response_schema` itself.
      A `tool_choice` of `required` counts for the first request of a turn.
    - `limits`: rounds, tool calls, tokens and cost of one turn.
    - `policy`: how calls are run.
    - `guards`: who looks at what goes in, comes out and passes between the agent and its tools.
    - `history`: how much of what was said the model gets; None is all of it.
    - `compaction`: when the older part of that is told in short; None is never.
    - `prices`: what the cost is reckoned with.
    - `repairs`: how often an answer that does not match the agent's output type goes back to the model.
    """

    options: ChatOptions = DEFAULT_OPTIONS
    limits: AgentLimits = AgentLimits()
    policy: ToolExecutionPolicy = DEFAULT_POLICY
    guards: Guards = Guards()
    history: HistoryLimits | None = None
    compaction: Compaction | None = None
    prices: Prices = LIST_PRICES
    repairs: int = 1

    def __post_init__(self) -> None:
        """Raise `UsageError` for a field of the wrong kind."""
        for field, kind in _KINDS.items():
            value: object = getattr(self, field)
            if value is not None or field not in {"history", "compaction"}:
                expect(value, kind, what=f"{field} of an agent's settings", give=f"{kind.__name__}(...)")
        if self.repairs < 0:
            raise UsageError(f"an agent has {self.repairs} repairs; give 0 or more")


_KINDS: Final[dict[str, type]] = {
    "options": ChatOptions,
    "limits": AgentLimits,
    "policy": ToolExecutionPolicy,
    "guards": Guards,
    "history": HistoryLimits,
    "compaction": Compaction,
    "prices": Prices,
}
DEFAULT_SETTINGS: Final = AgentSettings()


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Who answers, with which tools, after which words.

    `output` is the value that an answer is to be, None for words. `listen` hears each event before the
    listeners of the graph do.
    """

    provider: Provider
    tools: ToolRegistry = msgspec.field(default_factory=ToolRegistry)
    context: Context = ()
    settings: AgentSettings = DEFAULT_SETTINGS
    name: str = "agent"
    output: WantedOutput | None = None
    listen: Listen | None = None

    def __post_init__(self) -> None:
        """Raise `UsageError` for parts that are not what they are to be, and for two agents of one name."""
        model = 'a provider, such as OpenAIProvider("http://127.0.0.1:11434/v1")'
        expect_part(self.provider, "stream", what="the provider of an agent", give=model)
        expect(self.tools, ToolRegistry, what="the tools of an agent", give="ToolRegistry([...])")
        expect(self.settings, AgentSettings, what="the settings of an agent", give="AgentSettings(...)")
        expect(self.name, str, what="the name of an agent", give="a word")
        if not self.name:
            raise UsageError("an agent has an empty name; give it a word, or leave it out")
        namesakes = (target for target in _targets(self) if target.name == self.name)
        if any(target.tools is not self.tools for target in namesakes):
            raise UsageError(
                f"agent {self.name!r} is to hand over to another agent {self.name!r};"
                " give one of them another name"
            )

    async def tell(self, ctx: NodeContext, event: AgentEvent) -> None:
        """Show `event` to whoever listens, waiting while the reader of a stream is behind."""
        if self.listen is not None:
            self.listen(ctx, event)
        await ctx.aemit(event)

    def tell_now(self, ctx: NodeContext, event: AgentEvent) -> None:
        """Show `event` from code that cannot wait."""
        if self.listen is not None:
            self.listen(ctx, event)
        ctx.emit(event)

    def member(self, name: str) -> "AgentSpec":
        """Return the agent of that name among this one and those it can hand over to, "" for this one.

        Raises `UsageError` when there is none: the program changed since the turn was handed over.
        """
        if name in {"", self.name}:
            return self
        for each in self._team():
            if each.name == name:
                return msgspec.structs.replace(each, listen=self.listen)
        raise UsageError(
            f"agent {self.name!r} can hand over to no agent {name!r}; give it a handoff to that one"
        )

    def _team(self) -> "Iterator[AgentSpec]":
        seen = {self.name}
        waiting: list[AgentSpec] = [self]
        while waiting:
            for target in _targets(waiting.pop()):
                if target.name not in seen:
                    seen.add(target.name)
                    waiting.append(target)
                    yield target


class Handoff(Tool):
    """A tool that lets another agent answer in this one's place, for the rest of the turn."""

    options = ToolOptions(idempotent=True)

    def __init__(self, target: AgentSpec, description: str) -> None:
        self.name = f"transfer_to_{target.name}"
        self.description = description
        self.target = target

    def run(self, args: dict[str, object], ctx: ToolContext) -> str:  # noqa: ARG002 - it only says what happened
        return f"{self.target.name} goes on from here"


def _targets(spec: AgentSpec) -> Iterator[AgentSpec]:
    """Give the agents that `spec` itself can hand over to."""
    for tool in map(spec.tools.get, spec.tools.names()):
        if isinstance(tool, Handoff):
            yield tool.target
