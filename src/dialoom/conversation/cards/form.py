"""A form in a conversation: asked, answered once, checked on the page and here by the same rules."""

from collections.abc import Collection, Mapping
from typing import ClassVar, Self, cast

from pydantic import Field, model_validator

from dialoom.base.errors import UsageError
from dialoom.conversation.cards.actions import CardInput
from dialoom.conversation.cards.card import Card, CardPart, Language, pairs
from dialoom.conversation.cards.form_check import InvalidAnswersError, Violation, check_answers
from dialoom.conversation.cards.form_field import ANSWERS, FieldValue, FormField
from dialoom.conversation.cards.form_schema import Schema, form_schema


class FormDefinition(CardPart):
    """What a form asks, under the id it is registered with."""

    form_id: str
    title: str = ""
    fields: tuple[FormField, ...] = ()
    submit_label: str = ""

    def card(self, values: Mapping[str, object] | None = None, *, card_id: str | None = None) -> "Form":
        """Return a card that asks this form, filled with `values` by field id."""
        filled = values or {}
        return Form.model_validate(
            {
                **self.stored(),
                **({} if card_id is None else {"id": card_id}),
                "fields": [
                    field.changed(current_value=filled[field.id]) if field.id in filled else field
                    for field in self.fields
                ],
            }
        )


class Form(Card):
    """Questions to a person. `fields` show what was asked at the time, with the answers so far.

    `form_id` names the definition it is restored with; an `inline` form brings its own and needs none
    registered. Answers to secret fields go to whoever called `submit` and are never part of a card.
    """

    type: ClassVar[str] = "Form"
    names: ClassVar[Mapping[Language, str]] = {"en": "form", "zh": "表单"}

    form_id: str | None = None
    fields: tuple[FormField, ...] = ()
    submit_label: str = ""
    submitted_values: dict[str, FieldValue] = Field(default_factory=dict)
    inline: bool = False

    def details(self) -> str:
        secret = {field.id for field in self.fields if field.type == "secret"}
        return pairs((name, value) for name, value in self.submitted_values.items() if name not in secret)

    def check(self, values: Mapping[str, object]) -> tuple[Violation, ...]:
        """Return what is wrong with these answers."""
        return check_answers(self.fields, values)

    def schema_of_answers(self) -> Schema:
        """Return the JSON Schema that a page checks answers with."""
        return form_schema(self.fields)

    def submit(self, values: Mapping[str, object]) -> "Form":
        """Return the answered form. Raises `InvalidAnswersError`, and `UsageError` when it was answered."""
        if self.is_done:
            raise UsageError(f"this form is {self.status}; it takes no answers any more")
        violations = self.check(values)
        if violations:
            raise InvalidAnswersError(violations)
        kept = {field.id: values[field.id] for field in self.fields if _kept(field, values)}
        return self.changed(
            status="submitted",
            submitted_values=kept,
            fields=[
                field.changed(current_value=kept[field.id]) if field.id in kept else field
                for field in self.fields
            ],
        )

    @model_validator(mode="after")
    def _hold_together(self) -> Self:
        ids = [field.id for field in self.fields]
        if len(set(ids)) < len(ids):
            raise UsageError("two fields of a form have the same id; give each its own")
        strangers = {other for field in self.fields for other in field.visible_if} - set(ids)
        if strangers:
            raise UsageError(f"visibleIf names {min(strangers)!r}, which is no field of the form")
        return self

    @model_validator(mode="before")
    @classmethod
    def _forget_secrets(cls, fields: object) -> object:
        """Drop answers to secret fields, wherever the form came from."""
        return without_secrets(cast("dict[str, object]", fields)) if isinstance(fields, dict) else fields


def without_secrets(form: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a form, which need be none that can be read, without answers to secret ones."""
    listed = _listed(form.get("fields"))
    ids = (_field_id(each) for each in listed if _is_secret(each))
    secret = {each for each in ids if isinstance(each, str)}
    return {
        key: [_without(each, ANSWERS) if _is_secret(each) else each for each in listed]
        if key == "fields" and listed
        else _without(value, secret)
        for key, value in form.items()
    }


class LockedForm(Form):
    """A form whose definition is gone: shown as it was stored, taking no answers."""

    @property
    def locked(self) -> bool:
        return True


class SubmitForm(CardInput):
    """Answers by field id; fields without an answer are left out."""

    name = "submit"

    values: dict[str, object]

    def apply(self, card: Card) -> Card:
        assert isinstance(card, Form)
        return card.submit(self.values)


def _kept(field: FormField, values: Mapping[str, object]) -> bool:
    return field.id in values and field.type != "secret"


def _listed(value: object) -> list[object]:
    return list(cast("list[object]", value)) if isinstance(value, list | tuple) else []


def _is_secret(field: object) -> bool:
    if isinstance(field, FormField):
        return field.type == "secret"
    return isinstance(field, dict) and cast("dict[str, object]", field).get("type") == "secret"


def _field_id(field: object) -> object:
    return field.id if isinstance(field, FormField) else cast("dict[str, object]", field).get("id")


def _without(value: object, names: Collection[object]) -> object:
    if not isinstance(value, dict):
        return value
    return {key: each for key, each in cast("dict[str, object]", value).items() if key not in names}
