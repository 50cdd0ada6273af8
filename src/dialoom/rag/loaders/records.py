"""JSONL files: one document per record, so that an answer can name the file and the record."""

import json
from typing import TypeVar

import msgspec

from dialoom.base.text import one_line, replace_surrogates
from dialoom.rag.blank import is_blank
from dialoom.rag.loaders.decode import decode
from dialoom.rag.loaders.loader import Loaded, Source
from dialoom.rag.loaders.plain import decode_warnings, empty
from dialoom.rag.types import Document, LoadWarning, Metadata, WarningCode

_Record = dict[str, object]
_T = TypeVar("_T")
_SPOKEN = ("title", "question", "text", "content", "answer")
_MOST_WARNINGS = 100
_LONGEST_META = 200
_OWN = frozenset({"id", "source", "record", "line", "text", "content", "question", "answer"})


class JsonlLoader:
    """One document per object, line by line; a file that is one JSON array of objects is read as well.

    The text is `title`, `question`, `text` or `content`, `answer`, then every other string as `name: value`;
    what is no string goes to the metadata only, with `record` (the id) and `line`. Bad lines are warned of
    by number and skipped; of two records with one id the first is kept.
    """

    def load(self, source: Source) -> Loaded:
        decoded = decode(source.data, source=source.id, declared=source.charset)
        records = _Records(source)
        if decoded.text.lstrip().startswith("["):
            records.read_array(decoded.text)
        else:
            records.read_lines(decoded.text)
        warnings = decode_warnings(source, decoded) + records.warnings()
        if not records.documents:
            warnings += empty(source).warnings
        return Loaded(source=source.id, documents=records.documents, warnings=warnings)


class _Records:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._seen: set[str] = set()
        self._length = 0
        self._warnings: list[LoadWarning] = []
        self._unsaid = 0
        self.documents: list[Document] = []

    def read_lines(self, text: str) -> None:
        for line, raw in enumerate(text.split("\n"), 1):
            if not raw.strip():
                continue
            if line % 1_000 == 0:
                self._source.check_time()
            try:
                record = _parse(raw, dict[str, object])
            except ValueError as error:
                self._warn("bad_line", f"is not a JSON object ({one_line(str(error), 80)}); skipped", line)
                continue
            self.add(record, line)

    def read_array(self, text: str) -> None:
        try:
            records = _parse(text, list[dict[str, object]])
        except ValueError as error:
            message = f"is not a JSON array of objects ({one_line(str(error), 80)})"
            raise self._source.corrupt(message) from error
        for place, record in enumerate(records, 1):
            self.add(record, place)

    def add(self, record: _Record, line: int) -> None:
        name = _name(record.get("id")) or str(line)
        if name in self._seen:
            self._warn(
                "duplicate_id", f"has the id {one_line(name, 60)!r} again; the first one is kept", line
            )
            return
        text = _spoken(record)
        if is_blank(text):
            self._warn("bad_line", "has no text field; skipped", line)
            return
        self._seen.add(name)
        self._length += len(text)
        self._source.check_extracted(self._length)
        metadata: Metadata = {"source": self._source.id, "record": name, "line": line}
        metadata |= _extra(record)
        self.documents.append(Document(id=f"{self._source.id}#{name}", text=text, metadata=metadata))

    def warnings(self) -> list[LoadWarning]:
        if not self._unsaid:
            return self._warnings
        message = f"{self._unsaid} more lines of {self._source.id} could not be read"
        return [*self._warnings, LoadWarning("bad_line", message, self._source.id)]

    def _warn(self, code: WarningCode, what: str, line: int) -> None:
        if len(self._warnings) >= _MOST_WARNINGS:
            self._unsaid += 1
            return
        self._warnings.append(
            LoadWarning(code, f"line {line} of {self._source.id} {what}", self._source.id, line)
        )


def _parse(raw: str, shape: type[_T]) -> _T:
    """Decode strictly; where only a lone surrogate is wrong, let it through for the text to repair.

    Raises `ValueError` for anything else than JSON of that shape.
    """
    try:
        return msgspec.json.decode(raw, type=shape)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except ValueError:
        if "\\u" not in raw:
            raise
    try:
        return msgspec.convert(json.loads(raw), shape)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _name(own: object) -> str:
    is_id = isinstance(own, str | int) and not isinstance(own, bool)
    return one_line(str(own)) if is_id else ""


def _spoken(record: _Record) -> str:
    known = [record.get(field) for field in _SPOKEN]
    lines = [value.strip() for value in known if isinstance(value, str)]
    for key, value in record.items():
        if isinstance(value, str) and key not in _SPOKEN and key != "id":
            lines.append(f"{key}: {value.strip()}")
    return replace_surrogates("\n".join(line for line in lines if line))


def _extra(record: _Record) -> Metadata:
    """What a record says beside its text, as flat metadata; long strings stay in the text only."""
    extra: Metadata = {}
    for key, value in record.items():
        if key in _OWN:
            continue
        name = replace_surrogates(key)
        if isinstance(value, str):
            if len(value) <= _LONGEST_META:
                extra[name] = replace_surrogates(value)
        elif value is None or isinstance(value, bool | int | float):
            extra[name] = value
        else:
            flat = json.dumps(value, ensure_ascii=False)
            if len(flat) <= _LONGEST_META:
                extra[name] = replace_surrogates(flat)
    return extra
