"""A kit as plain values, without its tools: those are code, and code is not stored."""

from collections.abc import Mapping
from typing import cast

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.dialog.kit import MAX_ITEMS, Kit
from dialoom.dialog.prompts import Prompt
from dialoom.dialog.skills import Skill
from dialoom.mcp.config import MCPServerConfig


class _Items(msgspec.Struct, frozen=True):
    """The stored form; servers read themselves, for they keep what they do not know."""

    skills: tuple[Skill, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    mcps: tuple[dict[str, object], ...] = ()


def kit_to_dict(kit: Kit) -> dict[str, object]:
    """Return the skills, prompts and tool servers of `kit` as JSON values."""
    return {
        "skills": [msgspec.to_builtins(skill) for skill in kit.skills.values()],
        "prompts": [msgspec.to_builtins(prompt) for prompt in kit.prompts.values()],
        "mcps": [server.to_dict() for server in kit.mcps.values()],
    }


def kit_from_dict(fields: Mapping[str, object]) -> Kit:
    """Read `kit_to_dict` back, other fields left aside. Raises `UsageError` naming what is wrong."""
    try:
        items = msgspec.convert(dict(fields), _Items)
    except msgspec.ValidationError as error:
        raise UsageError(f"this is not a kit: {one_line(str(error))}; mend or remove it") from error
    for name in _Items.__struct_fields__:
        count = len(cast("tuple[object, ...]", getattr(items, name)))
        if count > MAX_ITEMS:
            raise UsageError(f"a kit has {count} {name}; {MAX_ITEMS} are allowed")
    return Kit(
        skills={skill.name: skill for skill in items.skills},
        prompts={prompt.name: prompt for prompt in items.prompts},
        mcps={server.name: server for server in map(_server, items.mcps)},
    )


def _server(fields: dict[str, object]) -> MCPServerConfig:
    server = MCPServerConfig()
    server.from_dict(fields)
    return server
