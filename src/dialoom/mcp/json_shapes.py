"""JSON values from elsewhere, taken for what they should be: what is something else counts as empty."""

from collections.abc import Mapping
from typing import cast

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line


def object_of(value: object) -> dict[str, object]:
    """Return a JSON object; an empty one for any other value."""
    return dict(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[object]:
    """Return a JSON list; an empty one for any other value."""
    return cast("list[object]", value) if isinstance(value, list) else []


def read_object(text: str, what: str, *, advice: str = "mend it") -> dict[str, object]:
    """Return the JSON object that `text` is. Raises `UsageError` that says what is no object, and why."""
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise UsageError(f"{what} no JSON object: {one_line(str(error))}; {advice}") from error
