"""Questions whose answers are known: read from XQuAD, CMRC and SQuAD files, or from lines of JSON."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from dialoom.rag.counts import check_count
from dialoom.rag.errors import InvalidOptionsError
from dialoom.rag.types import Chunk, Document

_MOST_BYTES = 200_000_000


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A question whose answer stands in one document, from `start` up to `end` of its text."""

    question: str
    doc_id: str
    start: int
    end: int

    def is_in(self, chunk: Chunk) -> bool:
        """Whether a chunk holds some of the answer."""
        return self.overlaps(chunk.doc_id, chunk.start, chunk.end)

    def overlaps(self, doc_id: str, start: int, end: int) -> bool:
        """Whether a part of a document holds some of the answer."""
        return doc_id == self.doc_id and start < self.end and self.start < end


class EvalSet(msgspec.Struct, frozen=True):
    """Documents, and questions about them."""

    documents: Sequence[Document]
    questions: Sequence[Answered]

    def sample(self, most: int) -> "EvalSet":
        """The same documents with at most `most` questions, taken evenly from all of them."""
        check_count(most, "the most questions of a sample")
        count = min(most, len(self.questions))
        places = [number * len(self.questions) // count for number in range(count)]
        return EvalSet(self.documents, [self.questions[place] for place in places])


class _Answer(msgspec.Struct, frozen=True):
    """An answer as SQuAD has it."""

    text: str
    answer_start: int


class _Question(msgspec.Struct, frozen=True):
    """A question as SQuAD has it; the first answer counts."""

    question: str
    answers: list[_Answer]


class _Paragraph(msgspec.Struct, frozen=True):
    """A passage with its questions."""

    context: str
    qas: list[_Question]


class _Article(msgspec.Struct, frozen=True):
    """Passages on one subject."""

    paragraphs: list[_Paragraph]


class _Squad(msgspec.Struct, frozen=True):
    """The whole file."""

    data: list[_Article]


class _Line(msgspec.Struct, frozen=True):
    """A line of our own format: a document (`id`, `text`), or a question (`question`, `doc`, `answer`)."""

    id: str = ""
    text: str = ""
    question: str = ""
    doc: str = ""
    answer: str = ""


def load_eval_set(path: str | os.PathLike[str], documents: Iterable[Document] = ()) -> EvalSet:
    """Read a set. A `.jsonl` file may ask about `documents` beside those it holds itself.

    `{"id": "a.md", "text": "..."}` is a document, `{"question": "...", "doc": "a.md", "answer": "..."}` asks
    about one: by its id or the end of it; the answer is found in its text. Raises `InvalidOptionsError` that
    names the line.
    """
    target = Path(path)
    try:
        if target.stat().st_size > _MOST_BYTES:
            raise InvalidOptionsError(f"{target} is too large for an evaluation set; take a part of it")
        data = target.read_bytes()
    except OSError as error:
        reason = (error.strerror or "error").lower()
        raise InvalidOptionsError(
            f"the evaluation set {target} cannot be read ({reason}); check the path"
        ) from error
    if target.suffix.lower() in {".jsonl", ".ndjson"}:
        return _from_lines(data, target, list(documents))
    try:
        squad = msgspec.json.decode(data, type=_Squad)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidOptionsError(f"{target} is not laid out as SQuAD is: {error}") from error
    return _from_squad(squad)


def _from_squad(squad: _Squad) -> EvalSet:
    paragraphs = [paragraph for article in squad.data for paragraph in article.paragraphs]
    documents = [Document(id=str(number), text=each.context) for number, each in enumerate(paragraphs)]
    questions = [
        Answered(
            question=asked.question,
            doc_id=str(number),
            start=asked.answers[0].answer_start,
            end=asked.answers[0].answer_start + len(asked.answers[0].text),
        )
        for number, each in enumerate(paragraphs)
        for asked in each.qas
        if asked.answers
    ]
    return EvalSet(documents, questions)


def _from_lines(data: bytes, target: Path, documents: list[Document]) -> EvalSet:
    asked: list[tuple[int, _Line]] = []
    for number, raw in enumerate(data.splitlines(), 1):
        if not raw.strip():
            continue
        try:
            line = msgspec.json.decode(raw, type=_Line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise InvalidOptionsError(f"{target}, line {number}: {error}") from error
        if line.question:
            asked.append((number, line))
        else:
            documents.append(Document(id=line.id or str(number), text=line.text))
    known = {document.id: document for document in documents}
    return EvalSet(documents, [_answered(line, known, f"{target}, line {number}") for number, line in asked])


def _answered(line: _Line, known: Mapping[str, Document], where: str) -> Answered:
    ends = [document for name, document in known.items() if name.endswith(f"/{line.doc}")]
    document = known.get(line.doc) or (ends[0] if len(ends) == 1 and line.doc else None)
    if not line.doc:
        raise InvalidOptionsError(f'{where}: the question names no document; add "doc" with the id of one')
    if document is None:
        todo = "name one by its id" if known else "name the folder it is in (--docs), or put it into the set"
        raise InvalidOptionsError(f"{where}: there is no document {line.doc!r}; {todo}")
    start = document.text.find(line.answer) if line.answer else -1
    if start < 0:
        raise InvalidOptionsError(
            f"{where}: {document.id} does not hold the answer; quote it as it stands there"
        )
    return Answered(question=line.question, doc_id=document.id, start=start, end=start + len(line.answer))
