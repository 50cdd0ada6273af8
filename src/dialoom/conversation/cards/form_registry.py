"""The forms a product knows, and what becomes of a stored form by them."""

from threading import Lock

import msgspec

from dialoom.base.errors import UsageError
from dialoom.conversation.cards.form import Form, FormDefinition, LockedForm


class FormRequest(msgspec.Struct, frozen=True):
    """A form as a product asks it: the definition, and the answers filled in so far by field id."""

    definition: FormDefinition
    values: dict[str, object] = {}

    def card(self, *, card_id: str | None = None) -> Form:
        """Return the card that asks it."""
        return self.definition.card(self.values, card_id=card_id)


class FormRegistry:
    """Definitions by form id. Adding one under a known id replaces it; any thread may."""

    def __init__(self, *definitions: FormDefinition) -> None:
        self._lock = Lock()
        self._definitions = {each.form_id: each for each in definitions}

    def add(self, definition: FormDefinition) -> None:
        with self._lock:
            self._definitions[definition.form_id] = definition

    def find(self, form_id: str) -> FormDefinition | None:
        return self._definitions.get(form_id)

    @property
    def definitions(self) -> tuple[FormDefinition, ...]:
        """Return every definition, in order of their ids."""
        with self._lock:
            return tuple(self._definitions[form_id] for form_id in sorted(self._definitions))

    def request(self, card: Form) -> FormRequest:
        """Return what `card` asks, with its answers so far. Raises `UsageError` for an unknown form id."""
        definition = self.find(card.form_id or "")
        if definition is None:
            raise UsageError(f"no form {card.form_id!r} is registered; add its definition first")
        return FormRequest(definition, _answers(card))

    def restore(self, card: Form) -> Form:
        """Return `card` as its definition asks it today.

        Once answered it stays as it was. A form nobody knows any more comes back locked.
        """
        if card.inline or card.is_done:
            return card
        definition = self.find(card.form_id or "")
        if definition is None:
            return LockedForm.model_validate(card.stored())
        today = definition.card(_answers(card)).stored()
        return Form.model_validate({**card.stored(), **today})


def _answers(card: Form) -> dict[str, object]:
    return {field.id: field.current_value for field in card.fields if field.current_value is not None}
