"""`dialoom ask`: one question, one answer, then the sources it cites."""

from collections.abc import Callable

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line, printable
from dialoom.cli.answer import Answer, FromDocuments, Show
from dialoom.cli.embedder import open_embedder
from dialoom.cli.exits import ExitCode, complain
from dialoom.cli.flags import KnowledgeFlags, ModelFlags
from dialoom.cli.interrupt import stop_on_interrupt
from dialoom.cli.knowledge import bring_in, check_knowledge, open_store, tell
from dialoom.cli.model import OpenModel, announce, open_model
from dialoom.cli.progress import print_json
from dialoom.cli.waiting import waiting_for
from dialoom.graph import RunControl
from dialoom.rag import ContextSource


async def ask(question: str, knowledge: KnowledgeFlags, model: ModelFlags, *, as_json: bool) -> ExitCode:
    """Answer `question` on stdout; everything else that a person should know goes to stderr."""
    if not question.strip():
        raise UsageError("the question is empty; ask something")
    await check_knowledge(knowledge)
    async with open_model(model) as opened, open_embedder(model.config) as embedder:
        with open_store(knowledge) as store:
            if knowledge.docs is not None:
                report = await bring_in(knowledge.docs, store, embedder)
                tell(report, knowledge.docs, always=False)
                if report.cancelled:
                    complain("stopped; run the same command to go on where it stood")
                    return ExitCode.INTERRUPTED
            if not len(store):
                raise UsageError(f"the index {knowledge.index} is empty; run dialoom ingest FOLDER first")
            answerer = FromDocuments(store, opened, knowledge, embedder)
            announce(opened.choice)
            async with waiting_for(opened.choice.label) as stop_waiting:
                answer = await _answer(answerer, question, _after(stop_waiting, _hide if as_json else show))
            if as_json:
                print_json(json_answer(answer, opened))
            else:
                for line in source_lines(answer):
                    print(line, flush=True)
    if answer.error:
        complain(answer.error)
    elif answer.stop_reason != "finished":
        complain("stopped; the answer is not complete")
    return answer.exit_code


def show(piece: str) -> None:
    """Print a piece of an answer as it comes."""
    print(printable(piece), end="", flush=True)


def source_lines(answer: Answer) -> list[str]:
    """Return what the numbers in an answer stand for, one line each."""
    cited = [source_line(source) for source in answer.cited_sources()]
    return [*([""] if answer.text else []), *([""] if cited else []), *cited]


def source_line(source: ContextSource) -> str:
    return f"[{source.index}] {one_line(source.title)}"


def json_answer(answer: Answer, opened: OpenModel) -> dict[str, object]:
    """Return an answer as one JSON object for programs; `sources` are those the model was shown."""
    fields: dict[str, object] = {
        "answer": answer.text,
        "sources": [json_source(source) for source in answer.sources],
        "cited_indexes": answer.cited_indexes,
        "stop_reason": answer.stop_reason,
        "run_id": answer.run_id,
        "mode": opened.choice.mode,
        "model": opened.choice.label,
        "usage": answer.usage,
    }
    return fields | ({"error": answer.error} if answer.error else {})


def json_source(source: ContextSource) -> dict[str, object]:
    return {
        "index": source.index,
        "id": source.id,
        "doc_id": source.doc_id,
        "title": source.title,
        "text": source.text,
        "score": source.score,
        "page": source.page,
    }


async def _answer(answerer: FromDocuments, question: str, show: Show) -> Answer:
    control = RunControl()
    with stop_on_interrupt(control):
        return await answerer.answer(question, control=control, show=show)


def _after(first: Callable[[], None], show: Show) -> Show:
    def both(piece: str) -> None:
        first()
        show(piece)

    return both


def _hide(_piece: str) -> None:
    """Show nothing: a program wants the whole."""
