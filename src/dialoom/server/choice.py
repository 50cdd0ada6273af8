"""What a person chooses about a conversation, and about one thing that is said in it."""

from typing import Literal, TypeAlias

import msgspec

from dialoom.dialog import Dialog

Policy: TypeAlias = Literal["reject", "queue", "interrupt"]
"""What becomes of a message while an answer is under way: refused, said after it, or said in its place."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What a conversation is set to; a field left out stays, an empty text leaves it to the server."""

    provider: str | msgspec.UnsetType = msgspec.UNSET
    model: str | msgspec.UnsetType = msgspec.UNSET
    system: str | msgspec.UnsetType = msgspec.UNSET
    skills: list[str] | msgspec.UnsetType = msgspec.UNSET

    def make(self, dialog: Dialog) -> None:
        """Set a dialog to this. Raises what the dialog does."""
        if isinstance(self.provider, str):
            dialog.set_provider_id(self.provider)
        if isinstance(self.model, str):
            dialog.set_model_id(self.model)
        if isinstance(self.system, str):
            dialog.set_system_text(self.system)
        if isinstance(self.skills, list):
            for name in dialog.active_skills:
                dialog.deactivate_skill(name)
            for name in self.skills:
                dialog.activate_skill(name)


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How something is said: behind which entry, to which model, and what if an answer is under way.

    Said behind another entry than the newest, it begins a branch; `parent` is None for the newest, -1 for
    none. `choice` is what the conversation is set to from then on.
    """

    parent: int | None = None
    choice: Choice = Choice()
    policy: Policy = "reject"


PLAINLY = Manner()
