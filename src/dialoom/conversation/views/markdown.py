"""The view for reading elsewhere: a conversation as Markdown, which can be read back as what people saw.

Below the header each entry is a section: `## user`, `## assistant`, `## system`, `## tool`, or
`## card "Table"` with its payload in a fence. A line of an entry that looks like such a heading gets a
backslash, which Markdown does not show.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

from dialoom.base.errors import UsageError
from dialoom.conversation.document import to_document
from dialoom.conversation.entries import CardEntry, Entry
from dialoom.conversation.header import Header
from dialoom.conversation.plain import Plain
from dialoom.conversation.yaml_text import MAX_CHARS, dump_yaml, load_yaml

_LABEL = r'## (?:(?P<role>user|assistant|system|tool)|card (?P<type>".*"))'
_SECTION = re.compile(rf"^{_LABEL}$", re.MULTILINE)
_TO_ESCAPE = re.compile(r'^(?=\\*## (?:user|assistant|system|tool|card ".*")$)', re.MULTILINE)
_ESCAPED = re.compile(r'^\\(?=\\*## (?:user|assistant|system|tool|card ".*")$)', re.MULTILINE)
_FRONT = re.compile(r"---\n(.*?\n)---\n", re.DOTALL)
_FENCE = re.compile(r"(?P<fence>`{3,})yaml\n(?P<payload>.*)\n(?P=fence)", re.DOTALL)
_LEFT_OUT = ("settings", "entries")


def to_markdown(header: Header, entries: Iterable[Entry]) -> str:
    """Return header and entries as one Markdown text.

    It has what was said and shown: texts by role, each card once, in its first place with its newest payload.
    Reasoning, tool calls, keys, settings and what was removed are for YAML and JSON.
    """
    document = to_document(msgspec.structs.replace(header, meta={}), ())
    front = dump_yaml({name: value for name, value in document.items() if name not in _LEFT_OUT})
    title = f"\n# {header.title}\n" if header.title else ""
    sections = (f"\n## {_label(entry)}\n\n{_body(entry)}\n" for entry in _seen(entries))
    return f"---\n{front}---\n{title}{''.join(sections)}"


def from_markdown(text: str) -> dict[str, object]:
    """Read `to_markdown` back as the document it shows. Raises `UsageError`."""
    if len(text) > MAX_CHARS:
        raise UsageError(f"markdown of {len(text)} characters is over the limit of {MAX_CHARS}; shorten it")
    front = _FRONT.match(text)
    if front is None:
        raise UsageError("this markdown has no header between --- lines; export it from dialoom")
    header = load_yaml(front[1])
    if not isinstance(header, dict):
        raise UsageError("the header of this markdown is not a mapping; write fields as `name: value`")
    entries: list[Plain] = list(_sections(text, front.end()))
    return {**header, "entries": entries}


def _seen(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield what people saw: no message that only calls tools, and no card twice."""
    seen: dict[str | int, Entry] = {}
    for at, entry in enumerate(entries):
        if isinstance(entry, CardEntry):
            seen[at if entry.card_id is None else entry.card_id] = entry
        elif entry.content or not entry.tool_calls:
            seen[at] = entry
    yield from seen.values()


def _label(entry: Entry) -> str:
    if isinstance(entry, CardEntry):
        return f"card {msgspec.json.encode(entry.type).decode()}"
    return entry.role


def _body(entry: Entry) -> str:
    if not isinstance(entry, CardEntry):
        return _TO_ESCAPE.sub(r"\\", entry.content)
    runs: list[str] = re.findall("`{3,}", entry.payload)
    fence = "`" * (1 + max((len(run) for run in runs), default=2))
    escaped = _TO_ESCAPE.sub(r"\\", entry.payload)
    return f"{fence}yaml\n{escaped}\n{fence}"


def _sections(text: str, start: int) -> Iterator[dict[str, Plain]]:
    """Yield the stored form of each section's entry."""
    headings = list(_SECTION.finditer(text, start))
    for at, heading in enumerate(headings):
        is_last = at + 1 == len(headings)
        end = len(text) if is_last else headings[at + 1].start()
        body = text[heading.end() : end].removeprefix("\n\n").removesuffix("\n" if is_last else "\n\n")
        if heading["role"]:
            yield {"kind": "Text", "role": heading["role"], "content": _ESCAPED.sub("", body)}
        else:
            yield {"kind": "Special", "type": _card_type(heading["type"]), "payload": _payload(body, at)}


def _card_type(quoted: str) -> str:
    try:
        return msgspec.json.decode(quoted, type=str)
    except msgspec.DecodeError as error:
        raise UsageError(f"a card's type is not readable: {error}; write it in double quotes") from error


def _payload(body: str, at: int) -> str:
    fenced = _FENCE.fullmatch(body)
    if fenced is None:
        raise UsageError(f"entry {at} is a card without one ```yaml fence; put its payload into one")
    return _ESCAPED.sub("", fenced["payload"])
