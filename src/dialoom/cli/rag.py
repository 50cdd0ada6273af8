"""`dialoom rag`: knowledge as a process that speaks lines of JSON, and how good its answers are."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from dialoom.base.errors import UsageError
from dialoom.cli.embedder import open_embedder
from dialoom.cli.exits import ExitCode, check_stdout
from dialoom.cli.flags import DEFAULT_INDEX, KnowledgeFlags, ModelFlags, ServiceFlags
from dialoom.cli.knowledge import check_documents, load_options
from dialoom.cli.model import announce, open_model
from dialoom.cli.progress import counted, say
from dialoom.rag import (
    HashEmbedder,
    RagConfig,
    SlidingWindowChunker,
    eval_lines,
    load_document,
    load_eval_set,
)
from dialoom.rag.extract.pool import end_readers
from dialoom.rag.service import ServiceSettings, access_from, serve
from dialoom.stores import SqliteVectorStore


async def rag_service(knowledge: KnowledgeFlags, model: ModelFlags, service: ServiceFlags) -> ExitCode:
    """Answer requests from stdin on stdout until a shutdown or the end of the input."""
    check_stdout()
    access = access_from(os.environ, token=service.auth_token, read_only=service.read_only)
    if access.read_only and not knowledge.index.exists():
        raise UsageError(
            f"a read-only service needs an index, and there is no {knowledge.index}; make it first"
        )
    if knowledge.docs is not None and not access.read_only:
        await check_documents(knowledge.docs, knowledge.index)
    async with open_model(model) as opened, open_embedder(model.config) as embedder:
        with SqliteVectorStore(knowledge.index, read_only=access.read_only) as store:
            announce(opened.choice)
            if opened.choice.mode == "model" and isinstance(embedder, HashEmbedder):
                say("vectors: HashEmbedder, offline; name a server under [embedding] to have others")
            say(f"{knowledge.index}: {counted(len(store), 'passage')}; requests are read from stdin")
            settings = ServiceSettings(
                store=store,
                embedder=embedder,
                chunker=SlidingWindowChunker(),
                provider=opened.provider,
                config=RagConfig(chat=opened.options, k=knowledge.top_k),
                load=load_options(knowledge.index),
                docs=str(knowledge.docs) if knowledge.docs is not None else None,
                access=access,
                timeout=service.timeout,
                snapshot=store.snapshot,
            )
            try:
                with _stdout_for_answers() as answers:
                    await serve(sys.stdin, answers, settings)
            finally:
                end_readers()
    return ExitCode.OK


async def rag_eval(
    questions: Path,
    docs: Path | None,
    *,
    chunker: SlidingWindowChunker,
    tuned: bool = False,
    config: Path | None = None,
) -> ExitCode:
    """Print how well the questions of a file are answered from its own passages or from `docs`."""
    documents = load_document(docs, load_options(DEFAULT_INDEX)) if docs is not None else []
    asked = load_eval_set(questions, documents)
    if not asked.questions:
        raise UsageError(
            f"there are no questions in {questions}; write one on each line, with doc and answer"
        )
    async with open_embedder(config) as embedder:
        for line in await eval_lines(asked, embedder=embedder, chunker=chunker, tuned=tuned):
            print(line, flush=True)
    return ExitCode.OK


@contextmanager
def _stdout_for_answers() -> Generator["_File"]:
    """Keep stdout for the protocol: whatever else this process prints goes to stderr."""
    sys.stdout.flush()
    answers = os.dup(1)
    os.dup2(2, 1)
    try:
        yield _File(answers)
    finally:
        sys.stdout.flush()
        os.dup2(answers, 1)
        os.close(answers)


class _File:
    """An open file by its number."""

    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        return self._number
