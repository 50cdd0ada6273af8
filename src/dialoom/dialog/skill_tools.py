"""How a model reaches its skills: a tool that activates one, and one that reads the files of a skill."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.dialog.skills import Skill, skill_text
from dialoom.tools import Tool, ToolContext

MAX_FILE_CHARS = 100_000


class ActivateSkill(Tool):
    """Gives a model the instructions of one of the skills it may choose from, and each of them once."""

    name = "activate_skill"
    description = "Read the instructions of a skill before doing what it is for."

    def __init__(self, skills: Sequence[Skill], active: frozenset[str] = frozenset()) -> None:
        self._skills = {skill.name: skill for skill in skills}
        self._active = set(active)

    def parameters_schema(self) -> Mapping[str, object]:
        return _object(name={"type": "string", "enum": list(self._skills)})

    async def run(self, args: dict[str, object], ctx: ToolContext) -> str:  # noqa: ARG002 - a tool's form
        """Return the skill as text; one that was activated before only says so."""
        name = str(args["name"])
        if name in self._active:
            return f"skill {name} is active already; its instructions were given before"
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
        """Return the file's text, at most 100,000 characters. Raises `UsageError` for a file not listed."""
        skill, path = self._skills[str(args["skill"])], str(args["path"])
        if path not in skill.resources:
            raise UsageError(f"skill {skill.name} lists no file {one_line(path, 80)!r}; choose a listed one")
        place = (Path(skill.folder) / path).resolve()
        if not place.is_relative_to(Path(skill.folder).resolve()):
            raise UsageError(f"{one_line(path, 80)!r} leads out of the skill's folder; choose another file")
        with place.open(encoding="utf-8", errors="replace") as file:
            return file.read(MAX_FILE_CHARS)


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
