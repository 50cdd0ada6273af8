"""How a model reaches its skills: a tool that activates one, and one that reads the files of a skill."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.conversation import Entry, TextEntry
from dialoom.dialog.settings import MAX_GUIDES
from dialoom.dialog.skill_folders import digest_of
from dialoom.dialog.skills import Skill, skill_text
from dialoom.tools import Tool, ToolContext

MAX_FILE_CHARS = 100_000


ACTIVATE = "activate_skill"


class ActivateSkill(Tool):
    """Gives a model the instructions of one of the skills it may choose from, and each of them once."""

    name = ACTIVATE
    description = "Read the instructions of a skill before doing what it is for."

    def __init__(self, skills: Sequence[Skill], active: frozenset[str] = frozenset()) -> None:
        self._skills = {skill.name: skill for skill in skills}
        self._active = set(active)

    def parameters_schema(self) -> Mapping[str, object]:
        return _object(name={"type": "string", "enum": list(self._skills)})

    async def run(self, args: dict[str, object], ctx: ToolContext) -> str:  # noqa: ARG002 - a tool's form
        """Return the skill as text; one that was activated before only says so.

        Raises `UsageError` for one too many.
        """
        name = str(args["name"])
        if name in self._active:
            return f"skill {name} is active already; its instructions were given before"
        if len(self._active) >= MAX_GUIDES:
            raise UsageError(f"{MAX_GUIDES} skills are active, the most there can be; go on without this one")
        self._active.add(name)
        return skill_text(self._skills[name])


class ReadSkillFile(Tool):
    """Reads a text file that a skill lists; nothing else on the disk can be named."""

    name = "read_skill_file"
    description = "Read a file that an active skill lists."

    def __init__(self, skills: Sequence[Skill]) -> None:
        self._skills = {skill.name: skill for skill in skills if skill.resources}

    def parameters_schema(self) -> Mapping[str, object]:
        return _object(skill={"type": "string", "enum": list(self._skills)}, path={"type": "string"})

    def run(self, args: dict[str, object], ctx: ToolContext) -> str:  # noqa: ARG002 - a tool's form
        """Return the file's text, at most 100,000 characters.

        Raises `UsageError` for a file that is not listed, or is not what it was when the skill was read.
        """
        skill, path = self._skills[str(args["skill"])], str(args["path"])
        if path not in skill.resources:
            raise UsageError(f"skill {skill.name} lists no file {one_line(path, 80)!r}; choose a listed one")
        place = (Path(skill.folder) / path).resolve()
        if not place.is_relative_to(Path(skill.folder).resolve()):
            raise UsageError(f"{one_line(path, 80)!r} leads out of the skill's folder; choose another file")
        content = place.read_bytes()
        if skill.digests.get(path, digest_of(content)) != digest_of(content):
            raise UsageError(
                f"{one_line(path, 80)!r} has changed since the skill was read; have it read again"
            )
        return content.decode("utf-8", "replace")[:MAX_FILE_CHARS]


def activated(entry: Entry) -> tuple[str, ...]:
    """Return the names of the skills that a model asked for in `entry`."""
    calls = entry.tool_calls if isinstance(entry, TextEntry) else ()
    wanted = ((call.arguments or {}).get("name") for call in calls if call.name == ACTIVATE)
    return tuple(name for name in wanted if isinstance(name, str))


def skill_tools(skills: Sequence[Skill], active: frozenset[str] = frozenset()) -> tuple[Tool, ...]:
    """Return the tools that `skills` need: none without skills to choose from.

    `active` are skills whose instructions the model has already.
    """
    catalogue = [skill for skill in skills if skill.mode == "catalogue"]
    with_files = [skill for skill in skills if skill.resources]
    tools: list[Tool] = [ActivateSkill(catalogue, active)] if catalogue else []
    return (*tools, ReadSkillFile(with_files)) if with_files else tuple(tools)


def _object(**properties: Mapping[str, object]) -> Mapping[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
