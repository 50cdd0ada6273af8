"""Skills: named instructions, shown to a model at once or when it asks for them.

A skill is a folder with a `SKILL.md`, by the open Agent Skills convention: YAML between `---` lines, then
Markdown. Here is the value and the reading of that text; `skill_folders` finds the files.
"""

import re
from typing import Literal, TypeAlias, cast

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line, replace_surrogates
from dialoom.conversation import load_yaml

SkillMode: TypeAlias = Literal["catalogue", "always"]
"""`catalogue`: a model sees name and description, and reads the rest when it activates the skill."""

MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_SKILL_CHARS = 256 * 1024
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"([A-Za-z][\w-]*):[ \t]+(.*\S)[ \t]*")


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """Instructions under a name.

    `folder` is where its files are, "" for a skill that is only text; `resources` are those files, relative
    to it, with forward slashes, and `digests` their SHA-256 as they were when the skill was read. `license`
    and the fields behind it are kept as written.
    """

    name: str
    description: str
    instructions: str = ""
    mode: SkillMode = "catalogue"
    enabled: bool = True
    folder: str = ""
    resources: tuple[str, ...] = ()
    digests: dict[str, str] = {}
    license: str = ""
    compatibility: str = ""
    metadata: dict[str, str] = {}
    allowed_tools: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name.strip() or len(self.name) > 4 * MAX_NAME:
            raise UsageError(
                f"a skill has a name of 1 to {MAX_NAME} characters; {self.name[:80]!r} is not one"
            )


class ReadSkill(msgspec.Struct, frozen=True):
    """A skill as read, and what is odd about its file though it can be used."""

    skill: Skill
    warnings: tuple[str, ...] = ()


def parse_skill(text: str, *, folder_name: str = "") -> ReadSkill:
    """Read the text of a `SKILL.md`. Lenient: what can be understood is, and `warnings` say what was wrong.

    Raises `UsageError` when it has no header, no description or is too long: then it cannot serve a model.
    """
    if len(text) > MAX_SKILL_CHARS:
        raise UsageError(f"a skill of {len(text)} characters is over the limit of {MAX_SKILL_CHARS}")
    front = _FRONT.match(text)
    if front is None:
        raise UsageError("this skill has no header between --- lines; give it a name and a description there")
    fields, warnings = _read_header(front[1])
    description = _text(fields.get("description"))
    if not description:
        raise UsageError("this skill has no description; say what it is for and when to use it")
    name = _text(fields.get("name")) or folder_name
    warnings += _name_warnings(name, folder_name)
    if len(description) > MAX_DESCRIPTION:
        warnings.append(f"the description has {len(description)} characters; {MAX_DESCRIPTION} are used")
    skill = Skill(
        name=name,
        description=one_line(description, MAX_DESCRIPTION),
        instructions=replace_surrogates(text[front.end() :]).strip(),
        mode="always" if _metadata(fields).get("mode") == "always" else "catalogue",
        license=_text(fields.get("license")),
        compatibility=_text(fields.get("compatibility")),
        metadata=_metadata(fields),
        allowed_tools=tuple(_text(fields.get("allowed-tools")).split()),
    )
    return ReadSkill(skill, tuple(warnings))


def catalogue_text(skills: tuple[Skill, ...]) -> str:
    """Return what a model reads of skills it may activate; "" when there are none."""
    if not skills:
        return ""
    listed = "\n".join(f"- {skill.name}: {one_line(skill.description, MAX_DESCRIPTION)}" for skill in skills)
    return (
        "Skills are instructions for special tasks. When a task fits one of these, call activate_skill with "
        f"its name before you begin:\n{listed}"
    )


def skill_text(skill: Skill) -> str:
    """Return what a model reads of an active skill: its instructions in a tag, with the files it has."""
    files = "".join(f"\n  <file>{_escaped(path)}</file>" for path in skill.resources)
    listed = f"\n<skill_resources>{files}\n</skill_resources>" if files else ""
    return f'<skill name="{_escaped(skill.name)}">\n{skill.instructions}{listed}\n</skill>'


def _read_header(text: str) -> tuple[dict[str, object], list[str]]:
    """Return the header's fields; where it is not YAML, as is common with colons in text, line by line."""
    try:
        fields = load_yaml(text, max_chars=MAX_SKILL_CHARS)
    except UsageError:
        return _fields_by_line(text), [
            "the header is not valid YAML and was read line by line; quote its values"
        ]
    if isinstance(fields, dict):
        return cast("dict[str, object]", fields), []
    return {}, ["the header is not a mapping; write fields as `name: value`"]


def _fields_by_line(text: str) -> dict[str, object]:
    found = (_FIELD.fullmatch(line) for line in text.splitlines())
    return {match[1]: match[2].strip("\"'") for match in found if match}


def _name_warnings(name: str, folder_name: str) -> list[str]:
    warnings: list[str] = []
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        warnings.append(
            f"the name {one_line(name, 80)!r} is not in form; use 1 to {MAX_NAME} of a-z 0-9, single hyphens"
        )
    if folder_name and name != folder_name:
        warnings.append(
            f"the name {one_line(name, 80)!r} is not that of its folder {one_line(folder_name, 80)!r}"
        )
    return warnings


def _metadata(fields: dict[str, object]) -> dict[str, str]:
    metadata = fields.get("metadata")
    if not isinstance(metadata, dict):
        return {}
    return {str(key): _text(value) for key, value in cast("dict[object, object]", metadata).items()}


def _text(value: object) -> str:
    return "" if value is None or isinstance(value, dict | list) else replace_surrogates(str(value)).strip()


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
