"""Unions that msgspec cannot decode by itself, such as two dataclasses: tried one after another."""

from collections.abc import Callable, Mapping
from types import UnionType
from typing import Annotated, Any, ClassVar, TypeAlias, Union, cast, get_args, get_origin

import msgspec

DecodeHook: TypeAlias = Callable[[type, object], object]


class _PassesFor(type):
    """msgspec asks whether what the hook decoded is of the type it decoded; a `OneOf` is never made."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


class OneOf(metaclass=_PassesFor):
    """A value of one of several types; subclassed once for each union."""

    types: ClassVar[tuple[Any, ...]] = ()

    @classmethod
    def decode(cls, value: object, hook: DecodeHook) -> object:
        """Return `value` as the type that knows most of its fields and takes it; `ValueError` without one."""
        given: frozenset[object] = frozenset(
            cast("dict[object, object]", value) if isinstance(value, dict) else ()
        )
        for kind in sorted(cls.types, key=lambda each: -len(given & _field_names(each))):
            try:
                return msgspec.convert(value, kind, str_keys=True, dec_hook=hook)
            except (msgspec.ValidationError, UnicodeEncodeError):
                continue
        raise ValueError(f"fits none of {', '.join(map(_name, cls.types))}")


def decodable(annotation: Any) -> Any:
    """Return `annotation` with `object` as `Any`, and every union that msgspec refuses as a `OneOf`.

    Looks into `Annotated`, unions, lists, tuples, sets and dicts, not into the fields of classes.
    """
    origin: Any = get_origin(annotation)
    arguments = get_args(annotation)
    if annotation is object:
        return Any
    if origin is Annotated:
        return Annotated[decodable(arguments[0]), *arguments[1:]]
    if origin in {Union, UnionType}:
        return _union(tuple(map(decodable, arguments)))
    if origin in {list, tuple, set, frozenset, dict}:
        generic: Any = origin
        return generic[tuple(map(decodable, arguments))]
    return annotation


def _union(kinds: tuple[Any, ...]) -> Any:
    union = Union[kinds]  # noqa: UP007 - built at run time
    try:
        msgspec.json.Decoder(union)
    except TypeError:
        real = tuple(kind for kind in kinds if kind is not type(None))
        choice = _PassesFor("OneOf", (OneOf,), {"types": real})
        return choice if len(real) == len(kinds) else choice | None
    return union


def _field_names(kind: Any) -> frozenset[str]:
    info = msgspec.inspect.type_info(kind)
    if isinstance(
        info, msgspec.inspect.StructType | msgspec.inspect.DataclassType | msgspec.inspect.TypedDictType
    ):
        return frozenset(field.encode_name for field in info.fields)
    own: Mapping[str, object] = getattr(kind, "__annotations__", {})
    return frozenset(own)


def _name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and get_origin(kind) is None else str(kind)
