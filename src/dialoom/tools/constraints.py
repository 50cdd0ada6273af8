"""What `Annotated` says about a parameter, as JSON Schema keywords."""

from collections.abc import Iterable
from typing import Final, cast

import msgspec

_KEYWORDS: Final = {
    "description": "description",
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
_LENGTHS: Final = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}


def read_constraints(metadata: Iterable[object], *, kind: object) -> dict[str, object]:
    """Return the keywords for the `metadata` of a value of JSON type `kind`.

    A plain string is the description. pydantic's `Field` and the marks of annotated_types are read by
    their attributes; `msgspec.Meta` is left to msgspec, which enforces it as well.
    """
    keywords: dict[str, object] = {}
    for mark in metadata:
        if isinstance(mark, str):
            keywords["description"] = mark
        elif not isinstance(mark, msgspec.Meta):
            keywords |= _marked(mark, str(kind))
            inner: object = getattr(mark, "metadata", ())
            if isinstance(inner, list):
                keywords |= read_constraints(cast("list[object]", inner), kind=kind)
    return keywords


def _marked(mark: object, kind: str) -> dict[str, object]:
    least, most = _LENGTHS.get(kind, ("minLength", "maxLength"))
    names = _KEYWORDS | {"min_length": least, "max_length": most}
    found = {keyword: getattr(mark, name, None) for name, keyword in names.items()}
    return {keyword: value for keyword, value in found.items() if isinstance(value, str | int | float)}
