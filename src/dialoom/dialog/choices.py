"""What a dialog is set to, as people read and change it."""

from abc import abstractmethod
from typing import Self

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line, replace_surrogates
from dialoom.conversation.header import check_id
from dialoom.dialog.journal import Journal
from dialoom.dialog.kit import Kit
from dialoom.dialog.kit_owner import KitOwner
from dialoom.dialog.policy import RunBase
from dialoom.dialog.prompts import Prompt
from dialoom.dialog.settings import MAX_GUIDES, MAX_NAME, MAX_SYSTEM, DialogSettings, check_capability
from dialoom.dialog.skills import Skill
from dialoom.llm import Capability
from dialoom.tools import Tool


class Choices(KitOwner):
    """The choices of one dialog. They are stored with the conversation; the tools of the kit are not."""

    _journal: Journal
    _base: RunBase

    @abstractmethod
    def _check_open(self) -> None:
        """Raise `DialogClosedError` when the dialog was closed or removed."""

    @property
    def provider_id(self) -> str:
        """The provider that was chosen; "" leaves it to the center."""
        return self._journal.settings.provider_id

    @property
    def model_id(self) -> str:
        """The model that was chosen; "" leaves it to the provider."""
        return self._journal.settings.model_id

    @property
    def capability_requirement(self) -> Capability:
        """What a model must be able to do, at least."""
        return self._journal.settings.requirement

    @property
    def system_text(self) -> str:
        """What the model is told before everything else."""
        return self._journal.settings.system

    @property
    def branch_from_id(self) -> str:
        """The dialog that this one replaces, "" for none."""
        return self._journal.settings.branch_from_id or self._journal.header.branch_from or ""

    @property
    def active_skills(self) -> tuple[str, ...]:
        """The skills that were switched on here."""
        return self._journal.settings.active_skills

    def set_provider_id(self, provider_id: str) -> Self:
        return self._set(provider_id=_name(provider_id))

    def set_model_id(self, model_id: str) -> Self:
        return self._set(model_id=_name(model_id))

    def set_capability_requirement(self, required: Capability) -> Self:
        return self._set(requirement=check_capability(required))

    def set_system_text(self, text: str) -> Self:
        """Say what the model is told first. Raises `UsageError` over 256 Ki characters."""
        if len(text) > MAX_SYSTEM:
            raise UsageError(f"a system text of {len(text)} characters is over {MAX_SYSTEM}; shorten it")
        return self._set(system=replace_surrogates(text))

    def set_branch_from_id(self, dialog_id: str) -> Self:
        """Say which dialog this one replaces, "" for none."""
        return self._set(branch_from_id=check_id(dialog_id) if dialog_id else "")

    def activate_skill(self, name: str) -> Self:
        """Switch a skill on for all that is answered from now on.

        Raises `UsageError` for an unknown one, and for the 65th.
        """
        if self.get_skill(name) is None:
            known = ", ".join(self._kit().skills) or "none"
            raise UsageError(f"there is no skill {one_line(name, 80)!r} here; there are: {known}")
        active = tuple(dict.fromkeys((*self.active_skills, name)))
        if len(active) > MAX_GUIDES:
            raise UsageError(f"{MAX_GUIDES} skills are active here, the most there can be; switch one off")
        return self._set(active_skills=active, taught=self._taught_but(name))

    def deactivate_skill(self, name: str) -> Self:
        """Switch a skill off again; one that is not on stays so."""
        active = tuple(each for each in self.active_skills if each != name)
        return self._set(active_skills=active, taught=self._taught_but(name))

    def get_tool(self, name: str) -> Tool | None:
        """Return the tool `name`, the dialog's own first, then the center's; None when neither has it."""
        return self._kit().tools.get(name)

    def get_skill(self, name: str) -> Skill | None:
        """Return the skill `name` as `get_tool` does a tool."""
        return self._kit().skills.get(name)

    def get_prompt(self, name: str) -> Prompt | None:
        """Return the prompt `name` as `get_tool` does a tool."""
        return self._kit().prompts.get(name)

    def own_kit(self) -> Kit:
        return self._journal.settings.kit

    def set_kit(self, kit: Kit) -> Self:
        return self._set(kit=kit)

    def _taught_but(self, name: str) -> dict[str, int]:
        """Return which skills a model switched on, but for one that a person decides about now."""
        return {each: at for each, at in self._journal.settings.taught.items() if each != name}

    def _kit(self) -> Kit:
        """Return what is in force: the dialog's own kit over the center's."""
        return self.own_kit().over(self._base.kit())

    def _set(self, **changes: object) -> Self:
        self._check_open()
        self._journal.set(_changed(self._journal.settings, changes))
        return self


def _changed(settings: DialogSettings, changes: dict[str, object]) -> DialogSettings:
    return msgspec.structs.replace(settings, **changes)


def _name(text: str) -> str:
    if len(text) > MAX_NAME:
        raise UsageError(f"{one_line(text, 40)!r} has {len(text)} characters; names have at most {MAX_NAME}")
    return replace_surrogates(text)
