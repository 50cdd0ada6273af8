"""YAML as we write and read it: people see their own words, readers see the same values, bombs are refused.

What is written reads back unchanged, here and in YAML 1.2 readers. What is read is plain JSON values: no
aliases, no tags, no dates, no `yes` for true; keys are text. A character that was
written as two escapes, as .NET does beyond U+FFFF, is read as the one it is; half of one is U+FFFD.
"""

import math
import re
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from typing import Literal, Protocol, TypeAlias, cast

import yaml

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.conversation.plain import MAX_DEPTH, Plain, plain_value

MAX_NODES = 2_000_000
MAX_CHARS = 32 * 1024 * 1024

_NO_LITERAL = re.compile("[\r\x85\u2028\u2029\ufeff]")
_CJK = "\u3400-\u4dbf\u4e00-\u9fff\u3040-\u30ff\uac00-\ud7af"
_UNQUOTED = re.compile(rf"[A-Za-z{_CJK}][A-Za-z0-9_ ./(){_CJK}，。、；：！？（）《》“”-]{{0,79}}(?<! )")
_SPECIAL_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})

_CORE: tuple[tuple[re.Pattern[str], Callable[[str], Plain]], ...] = (
    (re.compile(r"(?:~|null|Null|NULL|)\Z"), lambda _: None),
    (re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), lambda text: text[0] in "tT"),
    (re.compile(r"[-+]?[0-9]+\Z"), int),
    (re.compile(r"0o[0-7]+\Z"), lambda text: int(text, 0)),
    (re.compile(r"0x[0-9a-fA-F]+\Z"), lambda text: int(text, 0)),
    (re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?\Z"), float),
    (re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+\Z"), float),
    (re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z"), lambda text: -math.inf if text[0] == "-" else math.inf),
    (re.compile(r"\.(?:nan|NaN|NAN)\Z"), lambda _: math.nan),
)
"""The scalars of YAML 1.2 core; anything else is text."""

_MAY_BE_CORE = frozenset("~nNtTfF+-.0123456789")
_HALF = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_HALVES = re.compile(rf"(?<!\\)((?:\\\\)*)((?:{_HALF.pattern})+)")
_TEXT_TAGS = frozenset({"!", "tag:yaml.org,2002:str"})
_COLLECTION_TAGS = frozenset({None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})


class _EventSource(Protocol):
    """The part of a PyYAML loader that reads events."""

    def check_event(self) -> bool: ...
    def get_event(self) -> yaml.Event: ...
    def dispose(self) -> None: ...


# libyaml where PyYAML was built with it, else the slower twin; both write and read the same
_Parser: Callable[[str], _EventSource] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Emitter: type[yaml.SafeDumper] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Emitter):
    """Writes each string in the one style that every reader takes for that string."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


def _represent_text(_: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if "\n" in text and not _NO_LITERAL.search(text):
        style = "|"
    elif _UNQUOTED.fullmatch(text) and text.lower() not in _SPECIAL_WORDS:
        style = None
    else:
        style = '"'
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def dump_yaml(value: object) -> str:
    """Return `value` as block-style YAML, keys in their given order.

    Takes what `plain_value` takes and raises `UsageError` as it does.
    """
    try:
        return yaml.dump(
            plain_value(value),
            Dumper=_Dumper,
            allow_unicode=True,
            default_flow_style=False,
            sort_keys=False,
            width=2**31 - 1,
        )
    except ValueError as error:  # an int of more digits than Python prints
        raise UsageError(f"this cannot be written as yaml: {one_line(str(error))}") from error


Scalars: TypeAlias = Literal["core", "text"]
"""What an unquoted scalar is: a value of YAML 1.2 core, or always its text."""


def load_yaml(
    text: str, *, scalars: Scalars = "core", max_chars: int = MAX_CHARS, max_nodes: int = MAX_NODES
) -> Plain:
    """Read one YAML document; building stops where a text breaks a bound.

    Raises `UsageError`, with the line where that is known, on anything but one plain document: aliases,
    tags, a key given twice or not text, more than 64 levels, more characters or nodes than allowed.
    """
    if len(text) > max_chars:
        raise UsageError(f"yaml of {len(text)} characters is over the limit of {max_chars}; shorten it")
    try:
        with closing(_events(_with_whole_characters(text))) as events:
            return _build(events, _READERS[scalars], max_nodes)
    except yaml.YAMLError as error:
        raise UsageError(f"not readable as yaml: {_first_problem(error)}") from error
    except ValueError as error:  # half a character, or an int of more digits than Python reads
        raise UsageError(f"not readable as yaml: {one_line(str(error))}") from error


def _with_whole_characters(text: str) -> str:
    r"""Return `text` with the characters themselves where halves of them are escaped, which libyaml refuses.

    Only in double quotes is `\ud83d` an escape. Where those stand the parser tells, of a text in which each
    half is an escape of the same length that it reads.
    """
    text = text.removeprefix("\ufeff")  # parsers differ in whether they count it
    readable, found = _HALF.subn(r"\\uFFFD", text)
    if not found:
        return text
    parts: list[str] = []
    done = 0
    with closing(_events(readable)) as events:
        for event in events:
            if isinstance(event, yaml.ScalarEvent) and event.style == '"':
                start, end = event.start_mark.index, event.end_mark.index
                parts += text[done:start], _HALVES.sub(_whole, text[start:end])
                done = end
    return "".join([*parts, text[done:]])


def _whole(found: re.Match[str]) -> str:
    backslashes, halves = found.groups()
    return backslashes + bytes.fromhex(halves.replace(r"\u", "")).decode("utf-16-be", "replace")


def _events(text: str) -> Generator[yaml.Event, None, None]:
    parser = _Parser(text)
    try:
        while parser.check_event():
            yield parser.get_event()
    finally:
        parser.dispose()


class _Open:
    """A list or mapping whose end has not been read; `key` waits for its value."""

    def __init__(self, value: list[Plain] | dict[str, Plain], read: "_Reader") -> None:
        self.value = value
        self.read = read
        self.key: str | None = None

    def add(self, event: yaml.Event, item: Plain) -> None:
        if isinstance(self.value, list):
            self.value.append(item)
        elif self.key is not None:
            self.value[self.key] = item
            self.key = None
        else:
            raise _refusal(event, "a key that is not text; write plain words before the colon")

    def add_scalar(self, event: yaml.ScalarEvent) -> None:
        if isinstance(self.value, dict) and self.key is None:
            if event.value in self.value:
                raise _refusal(event, f"the key {one_line(event.value, 40)!r} a second time; keep one")
            self.key = event.value
        else:
            self.add(event, self.read(event))


def _build(events: Iterable[yaml.Event], read: "_Reader", max_nodes: int) -> Plain:
    """Fold parser events into values. Iterative: depth costs no stack, and nothing is built past a bound."""
    root = _Open([], read)
    stack = [root]
    nodes = 0
    for event in events:
        match event:
            case yaml.ScalarEvent():
                stack[-1].add_scalar(event)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                stack.append(_opened(event, stack))
            case yaml.AliasEvent():
                raise _refusal(event, "an alias; write the value out")
            case yaml.DocumentStartEvent() if root.value:
                raise _refusal(event, "a second document; keep one")
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                stack.pop()
                continue
            case _:
                continue
        nodes += 1
        if nodes > max_nodes:
            raise _refusal(event, f"more than {max_nodes} nodes; split it")
    values = cast("list[Plain]", root.value)
    return values[0] if values else None


def _opened(event: yaml.CollectionStartEvent, stack: list[_Open]) -> _Open:
    """Return the new innermost collection, already in its place in the one around it."""
    if len(stack) > MAX_DEPTH:
        raise _refusal(event, f"more than {MAX_DEPTH} levels; flatten it")
    if event.tag not in _COLLECTION_TAGS:
        raise _refusal(event, f"the tag {one_line(event.tag, 40)}; write plain values")
    value: list[Plain] | dict[str, Plain] = {} if isinstance(event, yaml.MappingStartEvent) else []
    stack[-1].add(event, value)
    return _Open(value, stack[-1].read)


def _core_scalar(event: yaml.ScalarEvent) -> Plain:
    text = _text_scalar(event)
    if event.tag is not None or not event.implicit[0] or (text and text[0] not in _MAY_BE_CORE):
        return text
    return next((read(text) for pattern, read in _CORE if pattern.match(text)), text)


def _text_scalar(event: yaml.ScalarEvent) -> str:
    if event.tag is None or event.tag in _TEXT_TAGS:
        return event.value
    raise _refusal(event, f"the tag {one_line(event.tag, 40)}; write plain values")


_Reader: TypeAlias = Callable[[yaml.ScalarEvent], Plain]
_READERS: dict[Scalars, _Reader] = {"core": _core_scalar, "text": _text_scalar}


def _refusal(event: yaml.Event, what: str) -> UsageError:
    return UsageError(f"yaml line {event.start_mark.line + 1} has {what}")


def _first_problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}: {one_line(error.problem or '')}"
    return one_line(str(error))
