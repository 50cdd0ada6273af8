"""The kit of a dialog or a center, as people add to it and take from it."""

from abc import ABC, abstractmethod
from typing import Self

from dialoom.dialog.kit import Kit
from dialoom.dialog.prompts import Prompt
from dialoom.dialog.skills import Skill
from dialoom.mcp.config import MCPServerConfig
from dialoom.tools import Tool


class KitOwner(ABC):
    """Has a kit of its own. An item replaces the one of the same name; every change returns the owner."""

    @abstractmethod
    def own_kit(self) -> Kit:
        """Return the kit as it is."""

    @abstractmethod
    def set_kit(self, kit: Kit) -> Self:
        """Take `kit` in place of what was there."""

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of the owner's own tools, in the order they were added."""
        return tuple(self.own_kit().tools)

    @property
    def skills(self) -> tuple[Skill, ...]:
        """The owner's own skills."""
        return tuple(self.own_kit().skills.values())

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The owner's own prompts."""
        return tuple(self.own_kit().prompts.values())

    @property
    def mcps(self) -> tuple[MCPServerConfig, ...]:
        """Copies of the owner's own tool servers."""
        return tuple(server.copy() for server in self.own_kit().mcps.values())

    def add_tool(self, tool: Tool | None) -> Self:
        """Add `tool`; None does nothing."""
        return self if tool is None else self.set_kit(self.own_kit().with_tool(tool))

    def add_skill(self, skill: Skill) -> Self:
        return self.set_kit(self.own_kit().with_skill(skill))

    def add_prompt(self, prompt: Prompt) -> Self:
        return self.set_kit(self.own_kit().with_prompt(prompt))

    def add_mcp(self, server: MCPServerConfig) -> Self:
        """Add a copy of `server`; later changes of it are not seen here."""
        return self.set_kit(self.own_kit().with_mcp(server))

    def remove_tool(self, name: str) -> Self:
        """Take the owner's own tool away; without one nothing changes. So the other three."""
        return self.set_kit(self.own_kit().without_tool(name))

    def remove_skill(self, name: str) -> Self:
        return self.set_kit(self.own_kit().without_skill(name))

    def remove_prompt(self, name: str) -> Self:
        return self.set_kit(self.own_kit().without_prompt(name))

    def remove_mcp(self, name: str) -> Self:
        return self.set_kit(self.own_kit().without_mcp(name))
