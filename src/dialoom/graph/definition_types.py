"""Types of channels as text and back: a small part of Python's own notation, read without evaluating it."""

import types
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union, get_args, get_origin

from dialoom.graph.reducers import Reducer

if TYPE_CHECKING:
    import ast

MAX_TEXT: Final = 500
_NAMED: Final[Mapping[str, Any]] = {
    "Any": Any,
    "None": None,
    "bool": bool,
    "bytes": bytes,
    "dict": dict,
    "float": float,
    "int": int,
    "list": list,
    "object": object,
    "set": set,
    "str": str,
    "tuple": tuple,
}
_GENERIC: Final = frozenset({"dict", "list", "set", "tuple"})


class TypeTextError(Exception):
    """A text names no type, or a type has no text. Never leaves the package."""


def read_type(text: str, known: Mapping[str, object]) -> Any:
    """Return the type `text` spells, with the names in `known` beside those of Python's plain types."""
    import ast  # only definitions need it

    if len(text) > MAX_TEXT:
        raise TypeTextError(
            f"a type of {len(text)} characters is longer than {MAX_TEXT}; register it by name"
        )
    try:
        return _read(ast.parse(text, mode="eval").body, known)
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError) as error:
        raise TypeTextError(
            f"{text!r} is not a type; write one like list[str] or dict[str, int] | None"
        ) from error


def _read(tree: "ast.expr", known: Mapping[str, object]) -> Any:
    import ast

    match tree:
        case ast.Constant(value=None):
            return None
        case ast.Name(id=name):
            return _called(name, known)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return Union[_read(left, known), _read(right, known)]  # noqa: UP007 - built, not written
        case ast.Subscript(value=ast.Name(id="Literal"), slice=inside):
            return Literal[tuple(_constant(item) for item in _items(inside))]
        case ast.Subscript(value=ast.Name(id=name), slice=inside) if name in _GENERIC:
            return _NAMED[name][tuple(_argument(name, item, known) for item in _items(inside))]
        case _:
            raise ValueError("not part of the notation")


def _called(name: str, known: Mapping[str, object]) -> Any:
    if name in known:
        return known[name]
    if name in _NAMED:
        return _NAMED[name]
    names = ", ".join(sorted({*known, *_NAMED}))
    raise TypeTextError(f"there is no type {name!r}; pass it in types=, or use one of: {names}")


def _items(inside: "ast.expr") -> "list[ast.expr]":
    import ast

    return inside.elts if isinstance(inside, ast.Tuple) else [inside]


def _argument(name: str, item: "ast.expr", known: Mapping[str, object]) -> Any:
    import ast

    if name == "tuple" and isinstance(item, ast.Constant) and item.value is ...:
        return ...
    return _read(item, known)


def _constant(item: "ast.expr") -> str | int | bool | None:
    import ast

    if isinstance(item, ast.Constant) and isinstance(item.value, str | int | bool | None):
        return item.value
    raise ValueError("a literal is text, a whole number, True, False or None")


def write_type(form: Any, known: Mapping[str, object]) -> str:
    """Return the text of type `form`. Raises TypeTextError for one that has none and is not in `known`."""
    for name, registered in (*known.items(), *_NAMED.items()):
        if registered == form:
            return name
    origin = get_origin(form)
    if origin is Annotated:
        return _without_notes(form, known)
    if origin in (Union, types.UnionType):
        return " | ".join(_written_arguments(form, known))
    if origin is Literal:
        return f"Literal[{', '.join(repr(value) for value in get_args(form))}]"
    if getattr(origin, "__name__", "") in _GENERIC:
        return f"{origin.__name__}[{', '.join(_written_arguments(form, known))}]"
    raise _unspeakable(form)


def _without_notes(form: Any, known: Mapping[str, object]) -> str:
    """Return the text of an Annotated type whose notes check nothing."""
    inner, *notes = get_args(form)
    if all(isinstance(note, Reducer | str) for note in notes):
        return write_type(inner, known)
    raise _unspeakable(form)


def _written_arguments(form: Any, known: Mapping[str, object]) -> Iterator[str]:
    for part in get_args(form):
        if part is ...:
            yield "..."
        else:
            yield "None" if part is types.NoneType else write_type(part, known)


def _unspeakable(form: object) -> TypeTextError:
    return TypeTextError(f"its type {form!r} has no text; pass a name for it in types=")
