"""Channels from a class that describes the state."""

import dataclasses
from collections.abc import Iterator
from typing import Annotated, Any, NotRequired, Required, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

from dialoom.graph.channels import UNSET, Channel
from dialoom.graph.reducers import Reducer, Reducers
from dialoom.graph.schema_pydantic import is_pydantic_model, pydantic_fields


def channels_of(state: type) -> list[Channel]:
    """Return a channel for each field of a TypedDict, dataclass, msgspec Struct or pydantic model.

    `Annotated[T, Reducers.append]` chooses a reducer; a default of the field is the channel's. Raises
    TypeError for any other class, and what resolving its annotations raises.
    """
    if is_pydantic_model(state):
        return [
            _channel(name, hint, default.get("default", UNSET))
            for name, hint, default in pydantic_fields(state)
        ]
    if not (is_typeddict(state) or dataclasses.is_dataclass(state) or issubclass(state, msgspec.Struct)):
        raise TypeError(f"{state!r} is no TypedDict, dataclass, msgspec Struct or pydantic model")
    defaults = dict(_defaults(state))
    return [
        _channel(name, hint, defaults.get(name, UNSET))
        for name, hint in get_type_hints(state, include_extras=True).items()
    ]


def _channel(name: str, hint: Any, default: object) -> Channel:
    if get_origin(hint) in {Required, NotRequired}:
        (hint,) = get_args(hint)
    reducer = Reducers.overwrite
    if get_origin(hint) is Annotated:
        reducer = next((extra for extra in get_args(hint)[1:] if isinstance(extra, Reducer)), reducer)
    return Channel(name, reducer, hint, default)


def _defaults(state: type) -> Iterator[tuple[str, object]]:
    if dataclasses.is_dataclass(state):
        for field in dataclasses.fields(state):
            if field.default is not dataclasses.MISSING:
                yield field.name, field.default
            elif field.default_factory is not dataclasses.MISSING:
                yield field.name, field.default_factory()
    elif issubclass(state, msgspec.Struct):
        for field in msgspec.structs.fields(state):
            if field.default is not msgspec.NODEFAULT:
                yield field.name, field.default
            elif field.default_factory is not msgspec.NODEFAULT:
                yield field.name, field.default_factory()
