"""From what a dialog and its center are set to, to what a run tells its model and lets it call."""

from collections.abc import Mapping, Sequence

import msgspec

from dialoom.dialog.kit import Kit
from dialoom.dialog.settings import DialogSettings
from dialoom.dialog.skill_tools import skill_tools
from dialoom.dialog.skills import Skill, catalogue_text, skill_text
from dialoom.tools import Tool


class Resolved(msgspec.Struct, frozen=True):
    """What the model reads first, and what it may call."""

    system: str
    tools: tuple[Tool, ...]


def resolve(
    settings: DialogSettings,
    below: Kit,
    *,
    guides: Sequence[str] = (),
    served: Mapping[str, Tool] | None = None,
) -> Resolved:
    """Return what a run of a dialog set to `settings` over the kit `below` tells its model. Pure.

    The system text is the dialog's own, `guides` (the system texts of its log), skills that are always on or
    switched on, then the list of those to choose from. Tools are the kit's, the skills' and those `served` by
    tool servers; where two have one name, the first of these has it.
    """
    kit = settings.kit.over(below)
    skills = [skill for skill in kit.skills.values() if skill.enabled]
    on = [skill for skill in skills if skill.mode == "always" or skill.name in settings.active_skills]
    choice = tuple(skill for skill in skills if skill not in on)
    texts = (settings.system, *guides, *(skill_text(skill) for skill in on), catalogue_text(choice))
    tools = {
        tool.name: tool for tool in skill_tools(_choosable(choice, on), frozenset(settings.active_skills))
    }
    tools = {**(served or {}), **tools, **kit.tools}
    return Resolved("\n\n".join(text for text in texts if text), tuple(tools.values()))


def _choosable(choice: Sequence[Skill], on: Sequence[Skill]) -> Sequence[Skill]:
    """Return the skills whose tools are offered: an active one offers its files only."""
    return [*choice, *(msgspec.structs.replace(skill, mode="always") for skill in on)]
