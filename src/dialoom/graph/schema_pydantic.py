"""Channels from a pydantic model, without importing pydantic: whoever has a model has done so."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec

_BOUNDS: Final = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "pattern")


def is_pydantic_model(state: type) -> bool:
    """Whether `state` is a class of pydantic's, told without importing that."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(state, pydantic.BaseModel)


def pydantic_fields(state: Any) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield name, type and, as keyword `default`, the default of every field of the pydantic model `state`.

    Bounds such as `Field(ge=0)` become those of msgspec. Raises TypeError for what only pydantic could
    check: a write goes to one channel, so there never is a whole model to validate.
    """
    decorators: object = state.__pydantic_decorators__
    if any(getattr(decorators, kind) for kind in _VALIDATORS):
        raise TypeError("its validators would not run; check values in the node that writes them")
    for name, field in state.model_fields.items():
        extras = [_bounds(name, extra) for extra in field.metadata]
        hint = Annotated[field.annotation, *extras] if extras else field.annotation
        default = {} if field.is_required() else {"default": field.get_default(call_default_factory=True)}
        yield name, hint, default


_VALIDATORS: Final = ("validators", "field_validators", "root_validators", "model_validators")


def _bounds(name: str, extra: Any) -> object:
    """Return `extra`, which annotates field `name`, as msgspec says it."""
    module = type(extra).__module__.partition(".")[0]
    if module not in {"pydantic", "annotated_types"}:
        return extra
    found = {bound: getattr(extra, bound) for bound in _BOUNDS if getattr(extra, bound, None) is not None}
    if not found:
        raise TypeError(
            f"field {name!r} is constrained by {extra!r}, which is not checked at a write; drop it"
        )
    return msgspec.Meta(**found)
