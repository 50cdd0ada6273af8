"""Whatever a tool returned, made fit for a model: text as it is, values as JSON, the rest refused."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence, Set, ValuesView
from itertools import islice
from pathlib import PurePath
from typing import Final, NamedTuple, Protocol, cast, runtime_checkable

import msgspec

from dialoom.base.text import one_line, replace_surrogates
from dialoom.llm.files import FilePart
from dialoom.llm.messages import TextPart
from dialoom.tools.measure import MAX_ITEMS, Measure
from dialoom.tools.result import ToolResult, failed

_MAX_DEPTH: Final = 8
_MAX_LOOKED_AT: Final = 10_000
"""So deep, and among so many values at each depth, a file is looked for in what a tool returned."""


@runtime_checkable
class DumpsItself(Protocol):
    """A pydantic model, or whatever offers the same method."""

    def model_dump(self, *, mode: str) -> object: ...


@runtime_checkable
class TurnsToList(Protocol):
    """A numpy array, one of its numbers, or whatever offers the same method."""

    def tolist(self) -> object: ...


def observe(value: object, *, tool: str) -> ToolResult:
    """Return `value` as the observation of `tool`; one that is neither text nor JSON gives an error.

    Halves of characters (lone surrogates) become U+FFFD. Structs, dataclasses, enums, dates, pydantic models
    and numpy's arrays and numbers are written as JSON. A file, also one in lists and dicts, becomes one of
    `files`, with words in its place that say what it is. Bytes are refused, for no model can read them, and
    so is what gives its values one by one, for it may have no end; and, before any of it is written, what has
    more than 1,000,000 values or 64 Mi characters in them, each counted as often as it stands there.
    """
    if not _holds_file(value):
        return _observe_one(value, tool)
    if wrong := _beyond_bounds(value):
        return failed(f"the tool returned {wrong}", tool=tool)
    items = cast("Sequence[object]", value) if type(value) in {list, tuple} else ()
    if any(isinstance(item, FilePart) for item in items):
        return _together([_observe_one(item, tool) for item in items])
    files: list[FilePart] = []
    result = _observe_one(_with_words_for_files(value, files), tool)
    return result if result.is_error else msgspec.structs.replace(result, files=tuple(files))


def _observe_one(value: object, tool: str) -> ToolResult:
    match value:
        case ToolResult():
            return _cleaned(value, tool)
        case str():
            return ToolResult(content=replace_surrogates(str.__str__(value)))
        case TextPart():
            return ToolResult(content=replace_surrogates(value.text))
        case FilePart():
            file = _named_in_whole_characters(value)
            return ToolResult(content=f"[{file.told}]", files=(file,))
        case _:
            json = _unread(value) or _to_json(value)
    if isinstance(json, str):
        return failed(f"the tool returned {json}", tool=tool)
    return ToolResult(content=json.text, structured=json.value)


def _holds_file(value: object) -> bool:
    """Whether a file stands in the lists and dicts that `value` is made of, as far as is looked."""
    level: list[object] = [value]
    for _ in range(_MAX_DEPTH):
        inner = (item for each in level for item in _items(each))
        level = list(islice(inner, _MAX_LOOKED_AT))
        if any(isinstance(item, FilePart) for item in level):
            return True
    return False


def _items(value: object) -> Iterable[object]:
    if type(value) is dict:
        return cast("dict[object, object]", value).values()
    return cast("Sequence[object]", value) if type(value) in {list, tuple} else ()


def _with_words_for_files(value: object, files: list[FilePart], depth: int = 0) -> object:
    """Return `value` with words in the places of its files, which are put into `files`."""
    if isinstance(value, FilePart):
        files.append(_named_in_whole_characters(value))
        return f"[{files[-1].told}]"
    if depth == _MAX_DEPTH:
        return value
    if type(value) is dict:
        fields = cast("dict[object, object]", value)
        return {key: _with_words_for_files(each, files, depth + 1) for key, each in fields.items()}
    if type(value) in {list, tuple}:
        return [_with_words_for_files(each, files, depth + 1) for each in _items(value)]
    return value


def _together(results: Sequence[ToolResult]) -> ToolResult:
    """Return the items of a list that holds files as one observation, in their order."""
    wrong = next((result for result in results if result.is_error), None)
    if wrong is not None:
        return wrong
    return ToolResult(
        content="\n".join(result.content for result in results),
        files=tuple(file for result in results for file in result.files),
    )


def _unread(value: object) -> str:
    """Return what it is that is refused without a look inside, "" for anything else."""
    match value:
        case bytes() | bytearray() | memoryview():
            return "bytes; return text or JSON values"
        case Iterator() | AsyncIterator():
            kind = one_line(type(cast("object", value)).__qualname__, 80)
            return f"a {kind}, which gives its values one by one; return them as a list"
        case _:
            return ""


def to_plain(value: object) -> object:
    """Return `value` as plain JSON values; raises `TypeError` or another error of the value's own."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_encode)


def to_bounded_plain(value: object) -> object:
    """As `to_plain`, of no more than `Measure` lets pass: raises `TypeError` or `RecursionError` for more."""
    made = Measure()

    def encode(each: object) -> object:
        plain = _encode(each)
        made.take(plain)
        return plain

    Measure().take(value)
    return msgspec.to_builtins(value, str_keys=True, enc_hook=encode)


def _encode(value: object) -> object:
    """Return what msgspec does not know as something that it does."""
    if isinstance(value, DumpsItself) and not isinstance(value, type):
        return _dumped(value)
    plain = _plainer(value)
    if plain is value:
        raise TypeError(f"cannot be written as JSON: {one_line(type(value).__qualname__, 80)}")
    return plain


def _plainer(value: object) -> object:
    """Return a value of a wider kind as one of Python's own, and any other as it is."""
    plain = value
    match value:
        case type():
            pass
        case str():  # msgspec takes no subclasses of it, nor of the numbers
            plain = str.__str__(value)
        case int():
            plain = int(value)
        case float():
            plain = float(value)
        case TurnsToList():
            _refuse_long(getattr(value, "size", 0))
            plain = value.tolist()
        case PurePath():
            plain = str(value)
        case Mapping():
            plain = dict(cast("Mapping[object, object]", value))
        case Sequence() | Set() | ValuesView():
            items = cast("Sequence[object]", value)
            _refuse_long(len(items))
            plain = list(items)
        case _:
            pass
    return plain


def _dumped(value: DumpsItself) -> object:
    plain = value.model_dump(mode="json")
    kind = getattr(type(value), "type", None)
    if isinstance(kind, str) and isinstance(plain, dict):  # the type of a card belongs to its class
        return {"type": kind, **cast("dict[str, object]", plain)}
    return plain


def _refuse_long(size: object) -> None:
    if isinstance(size, int) and size > MAX_ITEMS:
        raise TypeError(f"cannot be written as JSON: it has {size} values, at most {MAX_ITEMS} are taken")


class _Json(NamedTuple):
    value: object
    text: str


def _to_json(value: object) -> _Json | str:
    """Return `value` as JSON, or what it is that cannot be that."""
    try:
        plain = to_bounded_plain(value)
        try:
            text = msgspec.json.encode(plain)
        except UnicodeEncodeError:
            plain = without_surrogates(plain)
            text = msgspec.json.encode(plain)
    except Exception as error:  # noqa: BLE001 - seam: a foreign value writes itself here
        return _refused(value, error)
    return _Json(plain, text.decode())


def _beyond_bounds(value: object) -> str:
    """Return what it is that is too much or too deep to be written, "" for anything else."""
    try:
        Measure().take(value)
    except (RecursionError, TypeError) as error:
        return _refused(value, error)
    return ""


def _refused(value: object, error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "a value that contains itself or is nested too deeply"
    kind, why = one_line(type(value).__qualname__, 80), one_line(str(error))
    why = why if why.startswith("cannot be written") else f"cannot be written as JSON: {why}"
    return f"{kind}, which {why.removesuffix(f': {kind}')}"


def _cleaned(result: ToolResult, tool: str) -> ToolResult:
    if not isinstance(result.content, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a tool is foreign code
        return failed("the tool returned a result whose content is not text", tool=tool)
    files = cast("tuple[object, ...]", result.files)
    if not isinstance(files, tuple) or not all(isinstance(file, FilePart) for file in files):  # pyright: ignore[reportUnnecessaryIsInstance] - a tool is foreign code
        return failed("the tool returned a result whose files are no tuple of FilePart", tool=tool)
    json = _to_json(result.structured)
    if isinstance(json, str):
        return failed(f"the tool returned a result with {json}", tool=tool)
    if wrong := _beyond_bounds(result.card):
        return failed(f"the tool returned a result with a card that is {wrong}", tool=tool)
    kept = tuple(map(_named_in_whole_characters, result.files))
    content = replace_surrogates(result.content) or "\n".join(f"[{file.told}]" for file in kept)
    return msgspec.structs.replace(result, content=content, files=kept, structured=json.value)


def _named_in_whole_characters(file: FilePart) -> FilePart:
    name = replace_surrogates(file.name)
    return file if name == file.name else msgspec.structs.replace(file, name=name)


def without_surrogates(value: object) -> object:
    """Return plain JSON values with halves of characters replaced, in texts and keys at any depth."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list | tuple):
        return [without_surrogates(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return {replace_surrogates(key): without_surrogates(item) for key, item in fields.items()}
    return value
