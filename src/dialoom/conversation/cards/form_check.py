"""Are the answers to a form right? The same rules a page gets as JSON Schema from `form_schema`."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias, cast

import msgspec

from dialoom.base.errors import UsageError
from dialoom.conversation.cards.form_field import Bound, FieldType, FormField, is_date
from dialoom.conversation.cards.pattern import matches

Code: TypeAlias = Literal["required", "unknown", "hidden", "type", "option", "min", "max", "pattern"]


class Violation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer that is not right.

    `path` is a JSON pointer into the answers, `code` what a page translates, `limit` the bound that was
    broken. The message never repeats the answer: it may be a secret.
    """

    path: str
    code: Code
    message: str
    limit: Bound = None


class InvalidAnswersError(UsageError):
    """Answers that a form does not take; `violations` say which and why."""

    code = "invalid_answers"

    def __init__(self, violations: Sequence[Violation]) -> None:
        first, more = violations[0], len(violations) - 1
        others = f", and {more} more" if more else ""
        super().__init__(f"{first.path}: {first.message}{others}; correct and submit again")
        self.violations = tuple(violations)


def check_answers(fields: Sequence[FormField], values: Mapping[str, object]) -> tuple[Violation, ...]:
    """Return what is wrong with `values`, the answers by field id; nothing when all is right.

    A field without an answer is left out of `values`, and so is one that the others leave hidden.
    """
    known = {field.id for field in fields}
    unknown = [_violation(name, "unknown", "no such field") for name in values if name not in known]
    return (*unknown, *(each for field in fields for each in _check_field(field, values)))


def _check_field(field: FormField, values: Mapping[str, object]) -> Iterator[Violation]:
    answered = field.id in values
    if not field.is_visible(values):
        if answered:
            yield _violation(field.id, "hidden", "this field is not visible with the other answers")
    elif answered:
        yield from _CHECKS[field.type](field, values[field.id])
    elif field.required:
        yield _violation(field.id, "required", "an answer is needed")


def _check_text(field: FormField, value: object) -> Iterator[Violation]:
    if not isinstance(value, str):
        yield _violation(field.id, "type", "not a text")
        return
    if field.required and not value:
        yield _violation(field.id, "required", "an answer is needed")
    yield from _check_bounds(field, len(value), "characters")
    if field.pattern is not None and not matches(field.pattern, value):
        yield _violation(field.id, "pattern", "does not have the form asked for")


def _check_number(field: FormField, value: object) -> Iterator[Violation]:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        yield _violation(field.id, "type", "not a number")
    elif field.type == "integer" and isinstance(value, float) and not value.is_integer():
        yield _violation(field.id, "type", "not a whole number")
    else:
        yield from _check_bounds(field, value)


def _finite(value: float) -> bool:
    return isinstance(value, int) or math.isfinite(value)  # an int may be too large for a float


def _check_bool(field: FormField, value: object) -> Iterator[Violation]:
    if not isinstance(value, bool):
        yield _violation(field.id, "type", "not true or false")


def _check_choice(field: FormField, value: object) -> Iterator[Violation]:
    if not isinstance(value, str):
        yield _violation(field.id, "type", "not a text")
    elif value not in field.choices:
        yield _violation(field.id, "option", "not one of the options")


def _check_choices(field: FormField, value: object) -> Iterator[Violation]:
    if not isinstance(value, list | tuple):
        yield _violation(field.id, "type", "not a list")
        return
    chosen = cast("Sequence[object]", value)
    if field.required and not chosen:
        yield _violation(field.id, "required", "an answer is needed")
    yield from _check_bounds(field, len(chosen), "choices")
    choices = set(field.choices)
    for at, each in enumerate(chosen):
        if not isinstance(each, str) or each not in choices:
            yield _violation(field.id, "option", "not one of the options", at=at)
        else:
            choices.discard(each)  # chosen twice is not an option either


def _check_date(field: FormField, value: object) -> Iterator[Violation]:
    if not is_date(value):
        yield _violation(field.id, "type", "not a date like 2026-11-30")
    else:
        yield from _check_bounds(field, cast("str", value))


def _check_file(field: FormField, value: object) -> Iterator[Violation]:
    if not isinstance(value, str) or not value:
        yield _violation(field.id, "type", "not the id of an upload")


_CHECKS: dict[FieldType, Callable[[FormField, object], Iterator[Violation]]] = {
    "text": _check_text,
    "textarea": _check_text,
    "secret": _check_text,
    "number": _check_number,
    "integer": _check_number,
    "bool": _check_bool,
    "select": _check_choice,
    "multiselect": _check_choices,
    "date": _check_date,
    "file": _check_file,
}


def _check_bounds(field: FormField, measure: str | float, unit: str = "") -> Iterator[Violation]:
    """Compare with bounds of the same kind as `measure`, which the field made sure of."""
    tail = f" {unit}" if unit else ""
    if field.min is not None and measure < field.min:  # pyright: ignore[reportOperatorIssue] - both dates or both numbers
        yield _violation(field.id, "min", f"less than {field.min}{tail}", limit=field.min)
    if field.max is not None and measure > field.max:  # pyright: ignore[reportOperatorIssue] - both dates or both numbers
        yield _violation(field.id, "max", f"more than {field.max}{tail}", limit=field.max)


def _violation(
    field_id: str, code: Code, message: str, *, at: int | None = None, limit: Bound = None
) -> Violation:
    path = "/" + field_id.replace("~", "~0").replace("/", "~1")
    return Violation(path=path if at is None else f"{path}/{at}", code=code, message=message, limit=limit)
