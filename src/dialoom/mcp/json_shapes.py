"""JSON values from elsewhere, taken for what they should be: what is something else counts as empty."""

from collections.abc import Mapping
from typing import cast


def object_of(value: object) -> dict[str, object]:
    """Return a JSON object; an empty one for any other value."""
    return dict(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[object]:
    """Return a JSON list; an empty one for any other value."""
    return cast("list[object]", value) if isinstance(value, list) else []
