"""How the dialogs of a center run, and what a run needs of its center."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from dialoom.agent import AgentLimits, AgentSettings, Compaction, Guards
from dialoom.base.clock import Clock
from dialoom.base.errors import UsageError
from dialoom.conversation import PromptLimits
from dialoom.conversation.cards import CardRegistry, FormRegistry
from dialoom.dialog.journal import Stores
from dialoom.dialog.kit import Kit
from dialoom.dialog.settings import DialogSettings
from dialoom.llm import ChatOptions, Provider
from dialoom.mcp.config import MCPServerConfig
from dialoom.tools import Tool, ToolExecutionPolicy

MAX_MESSAGES = 200
MAX_WAIT = 100 * 366 * 86_400
"""Seconds that an approval waits at the most, where it does not wait for ever."""


class RunPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of every run; the defaults are good ones.

    - `prompt`: how much of a conversation a model gets. At most `max_messages` (200 unless told otherwise)
      are looked at, which is why a long dialog costs what a short one does.
    - `limits`: rounds, tool calls, tokens and cost of one run.
    - `tools`: how tools are run.
    - `guards`: who looks at what goes in, comes out and passes between model and tools. At each run those
      of the input see every text of the user that the model gets: the log keeps the words as they were said.
    - `compaction`: when older turns are told in short; None is never.
    - `chat`: how each answer is asked for; model, tools and cancelling are the run's own.
    - `approval_seconds`: how long an approval waits for a person; None is for ever. One that was not decided
      by then is shown as expired, and its run is given up.
    """

    prompt: PromptLimits = PromptLimits(max_messages=MAX_MESSAGES)
    limits: AgentLimits = AgentLimits()
    tools: ToolExecutionPolicy = ToolExecutionPolicy()
    chat: ChatOptions = ChatOptions()
    guards: Guards = Guards()
    compaction: Compaction | None = None
    approval_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.approval_seconds is not None and not 0 < self.approval_seconds <= MAX_WAIT:
            raise UsageError(
                f"an approval cannot wait {self.approval_seconds} s; "
                f"give more than 0 and at most {MAX_WAIT}, or None for ever"
            )

    @property
    def max_messages(self) -> int:
        return self.prompt.max_messages or MAX_MESSAGES

    def agent_settings(self, model: str) -> AgentSettings:
        return AgentSettings(
            options=self.options(model), limits=self.limits, policy=self.tools, guards=self.guards
        )

    def options(self, model: str) -> ChatOptions:
        """Return how `model` is asked; "" leaves the name to the server."""
        return msgspec.structs.replace(self.chat, model=model or None)


class Chosen(msgspec.Struct, frozen=True):
    """Who answers; `notice` says so when it is another model than the one that was named."""

    provider: Provider
    model: str
    notice: str = ""


class Served(msgspec.Struct, frozen=True):
    """What tool servers offer by name, and what is to be said of those that could not be reached."""

    tools: Mapping[str, Tool] = {}
    notices: tuple[str, ...] = ()


class RunBase(msgspec.Struct, frozen=True, kw_only=True):
    """What a run stands on: the part of a center that it may see."""

    stores: Stores
    cards: CardRegistry
    forms: FormRegistry
    policy: RunPolicy
    clock: Clock
    deps: Any
    kit: Callable[[], Kit]
    """The center's kit as it is now."""
    choose: Callable[[DialogSettings], Awaitable[Chosen]]
    serve: Callable[[Mapping[str, MCPServerConfig]], Awaitable[Served]]
