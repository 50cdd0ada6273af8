"""Which model answers: the one that was named if it will do, else the first that can do what is needed."""

from collections.abc import Sequence

from dialoom.base.text import one_line
from dialoom.dialog.errors import NoUsableModelError
from dialoom.dialog.settings import capability_names
from dialoom.llm import Capability, Model


def pick_model(models: Sequence[Model], required: Capability, preferred: str = "") -> Model:
    """Return the model of one provider to ask. Pure.

    `preferred` is taken when it is on offer and can do what is `required`; else the first that can. Raises
    `NoUsableModelError`, which names what no model can do.
    """
    usable = [model for model in models if model.offers(required)]
    named = [model for model in usable if model.id == preferred]
    if usable:
        return (named or usable)[0]
    raise NoUsableModelError(_why_none(models, required))


def _why_none(models: Sequence[Model], required: Capability) -> str:
    if not models:
        return "the provider offers no model; add one, or choose another provider"
    offered = Capability(0)
    for model in models:
        offered |= model.capabilities
    missing = required & ~offered
    words = ", ".join(capability_names(missing or required))
    names = ", ".join(one_line(model.id, 60) for model in models[:5])
    what = f"can do {words}" if missing else f"can do all of {words} together"
    return f"no model of the provider {what} (it has {names}); choose another provider or require less"
