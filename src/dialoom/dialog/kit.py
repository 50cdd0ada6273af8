"""The kit: the tools, skills, prompts and tool servers a dialog may use, each under its name.

A dialog's kit lies over its center's: an item of the same name hides the one below, and taking it away
shows that again.
"""

from collections.abc import Mapping
from typing import Self, TypeVar

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.dialog.prompts import Prompt
from dialoom.dialog.skills import Skill
from dialoom.mcp.config import MCPServerConfig
from dialoom.tools import Tool
from dialoom.tools.tool import check_tool

Item = TypeVar("Item")

MAX_ITEMS = 1000
"""So many skills, prompts or tool servers a kit may have; tools are not stored, and not counted."""

_NO_TOOLS: Mapping[str, Tool] = {}
_NO_SKILLS: Mapping[str, Skill] = {}
_NO_PROMPTS: Mapping[str, Prompt] = {}
_NO_MCPS: Mapping[str, MCPServerConfig] = {}


class Kit(msgspec.Struct, frozen=True):
    """Items by name, in the order they were added. Every change gives a new kit.

    What could not be read back from a store comes into none: adding it raises `UsageError`.
    """

    tools: Mapping[str, Tool] = _NO_TOOLS
    skills: Mapping[str, Skill] = _NO_SKILLS
    prompts: Mapping[str, Prompt] = _NO_PROMPTS
    mcps: Mapping[str, MCPServerConfig] = _NO_MCPS

    def with_tool(self, tool: Tool) -> Self:
        check_tool(tool)
        return msgspec.structs.replace(self, tools={**self.tools, tool.name: tool})

    def with_skill(self, skill: Skill) -> Self:
        known = _readable(skill, Skill)
        return msgspec.structs.replace(self, skills=_with(self.skills, known.name, known))

    def with_prompt(self, prompt: Prompt) -> Self:
        known = _readable(prompt, Prompt)
        return msgspec.structs.replace(self, prompts=_with(self.prompts, known.name, known))

    def with_mcp(self, server: MCPServerConfig) -> Self:
        """Add a copy of `server`: what its owner changes later is not this kit's."""
        return msgspec.structs.replace(self, mcps=_with(self.mcps, server.name, server.copy()))

    def without_tool(self, name: str) -> Self:
        return msgspec.structs.replace(self, tools=_without(self.tools, name))

    def without_skill(self, name: str) -> Self:
        return msgspec.structs.replace(self, skills=_without(self.skills, name))

    def without_prompt(self, name: str) -> Self:
        return msgspec.structs.replace(self, prompts=_without(self.prompts, name))

    def without_mcp(self, name: str) -> Self:
        return msgspec.structs.replace(self, mcps=_without(self.mcps, name))

    def over(self, below: "Kit") -> "Kit":
        """Return what is in force when this kit lies over `below`; names keep the place they have there."""
        return Kit(
            tools={**below.tools, **self.tools},
            skills={**below.skills, **self.skills},
            prompts={**below.prompts, **self.prompts},
            mcps={**below.mcps, **self.mcps},
        )


EMPTY_KIT = Kit()


def _with(items: Mapping[str, Item], name: str, item: Item) -> Mapping[str, Item]:
    changed = {**items, name: item}
    if len(changed) > MAX_ITEMS:
        raise UsageError(f"a kit has at most {MAX_ITEMS} items of a kind; remove one before you add {name!r}")
    return changed


def _readable(item: Item, kind: type[Item]) -> Item:
    """Return `item` as it is read back."""
    try:
        return msgspec.convert(msgspec.to_builtins(item), kind)
    except (msgspec.ValidationError, TypeError) as error:
        raise UsageError(f"this is no {kind.__name__}: {one_line(str(error))}") from error


def _without(items: Mapping[str, Item], name: str) -> Mapping[str, Item]:
    return {key: item for key, item in items.items() if key != name}
