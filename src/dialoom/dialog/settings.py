"""What a dialog is set to: the choice of model, the system text, the kit of its own. Kept beside the log."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Final, TypeAlias, cast

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line, replace_surrogates
from dialoom.conversation import Entry, TextEntry
from dialoom.dialog.kit import EMPTY_KIT, Kit
from dialoom.dialog.kit_codec import kit_from_dict, kit_to_dict
from dialoom.llm import Capability

KEY: Final = "dialog"
"""Where a conversation's settings keep those of its dialog."""
MAX_NAME = 200
MAX_SYSTEM = 256 * 1024
MAX_GUIDES = 64
"""So many system texts, and so many active skills, are read each time a dialog is opened."""
MANY_GUIDES: Final = f"a dialog has at most {MAX_GUIDES} system texts; put some of them together in one"


Place: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
"""Where something stands in a log, or how many of its entries there are."""


class KeptSummary(msgspec.Struct, frozen=True):
    """What stands for the first `entries` of a log in the view of a model.

    `tried` is how long the log was when a newer one could not be had, 0 since the last that could.
    """

    entries: Place = 0
    text: str = ""
    tried: Place = 0


class Begun(msgspec.Struct, frozen=True):
    """How many `entries` a dialog began with that goes on with the turn of another, whose id is `turn`."""

    turn: str
    entries: Place


class DialogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The choices of one dialog. An empty id leaves the choice to the center or the provider.

    `guides` are the places in the log where system texts stand, so that opening a long dialog can read them
    without reading all. `active_skills` are the skills that are on; `taught` has those of them that a model
    switched on, each with the place where it did. `summary` is what a model reads of the oldest turns. A fork
    has `begun`.
    """

    provider_id: str = ""
    model_id: str = ""
    requirement: Capability = Capability.TEXT
    system: str = ""
    branch_from_id: str = ""
    active_skills: tuple[str, ...] = ()
    taught: dict[str, int] = {}
    guides: tuple[int, ...] = ()
    summary: KeptSummary | None = None
    begun: Begun | None = None
    kit: Kit = EMPTY_KIT

    def until(self, count: int) -> "DialogSettings":
        """Return the settings of the first `count` messages: what came of later ones is not in them."""
        taught = {name: place for name, place in self.taught.items() if place < count}
        told = self.summary is not None and self.summary.entries <= count
        return msgspec.structs.replace(
            self,
            active_skills=tuple(
                name for name in self.active_skills if name in taught or name not in self.taught
            ),
            taught=taught,
            guides=tuple(at for at in self.guides if at < count),
            summary=self.summary if told else None,
            begun=self.begun if self.begun is not None and self.begun.entries <= count else None,
        )

    def to_dict(self) -> dict[str, object]:
        """Return the settings as JSON values, tools left out."""
        return {
            "providerId": self.provider_id,
            "modelId": self.model_id,
            "capabilityRequirement": capability_names(self.requirement),
            "system": self.system,
            "branchFrom": self.branch_from_id,
            "activeSkills": list(self.active_skills),
            "taught": dict(self.taught),
            "guides": list(self.guides),
            "summary": msgspec.to_builtins(self.summary),
            "begun": msgspec.to_builtins(self.begun),
            **kit_to_dict(self.kit),
        }


class _Stored(msgspec.Struct, frozen=True, rename="camel"):
    """The stored form of everything but the kit."""

    provider_id: str = ""
    model_id: str = ""
    capability_requirement: tuple[str, ...] = ("text",)
    system: str = ""
    branch_from: str = ""
    active_skills: tuple[str, ...] = ()
    taught: dict[str, Place] = {}
    guides: tuple[Place, ...] = ()
    summary: KeptSummary | None = None
    begun: Begun | None = None


def is_system_text(entry: Entry) -> bool:
    """Tell whether `entry` stands in the system text of a dialog, wherever in the log it is."""
    return isinstance(entry, TextEntry) and entry.role == "system"


def check_fields(fields: object, what: str) -> None:
    """Raise `UsageError` unless `fields` can be those of `what`, such as a saved dialog."""
    if not isinstance(fields, Mapping):
        raise UsageError(
            f"{what} is an object, and this is {type(fields).__name__}; give what to_dict returned"
        )


def settings_from_dict(fields: Mapping[str, object]) -> DialogSettings:
    """Read `DialogSettings.to_dict` back, unknown fields left aside. Raises `UsageError`."""
    try:
        stored = msgspec.convert(dict(fields), _Stored)
    except msgspec.ValidationError as error:
        raise UsageError(f"these are not a dialog's settings: {one_line(str(error))}; mend them") from error
    turn = stored.begun.turn if stored.begun else ""
    texts = (stored.provider_id, stored.model_id, stored.branch_from, turn, *stored.active_skills)
    told = stored.summary.text if stored.summary else ""
    if max(len(stored.system), len(told)) > MAX_SYSTEM or any(len(text) > MAX_NAME for text in texts):
        raise UsageError(
            "these are not a dialog's settings: a name or the system text is too long; shorten it"
        )
    return DialogSettings(
        provider_id=stored.provider_id,
        model_id=stored.model_id,
        requirement=capability_of(stored.capability_requirement),
        system=replace_surrogates(stored.system),
        branch_from_id=stored.branch_from,
        active_skills=stored.active_skills[:MAX_GUIDES],
        taught={name: at for name, at in stored.taught.items() if name in stored.active_skills},
        guides=stored.guides[:MAX_GUIDES],
        summary=stored.summary,
        begun=stored.begun,
        kit=kit_from_dict(fields),
    )


def settings_in(header_settings: Mapping[str, object]) -> DialogSettings:
    """Return the settings of a dialog out of those of its conversation. Raises `UsageError`."""
    fields = header_settings.get(KEY)
    return (
        settings_from_dict(cast("dict[str, object]", fields))
        if isinstance(fields, dict)
        else DialogSettings()
    )


def capability_names(capabilities: Capability) -> list[str]:
    """Return the names of `capabilities`, as they are stored and shown."""
    return [each.name.lower() for each in Capability if each in capabilities and each.name]


def check_capability(required: Capability) -> Capability:
    """Return `required`, or raise `UsageError` when it is something else, such as a name."""
    if isinstance(required, Capability):  # pyright: ignore[reportUnnecessaryIsInstance] - foreign callers
        return required
    raise UsageError(f"a requirement is of Capability, such as Capability.TEXT; this is {required!r:.40}")


def capability_of(names: Iterable[str]) -> Capability:
    """Return the capabilities with these names. Raises `UsageError` for a name there is not."""
    found = Capability(0)
    for name in names:
        try:
            found |= Capability[name.upper()]
        except KeyError as error:
            known = ", ".join(capability_names(~Capability(0)))
            raise UsageError(f"there is no capability {one_line(name, 40)!r}; there are {known}") from error
    return found
