"""One question, answered while it is shown: from documents through the query graph, or by the model alone."""

from collections.abc import Callable, Sequence

import msgspec

from dialoom.cli.exits import ExitCode, exit_code_named
from dialoom.cli.flags import KnowledgeFlags
from dialoom.cli.knowledge import only_below
from dialoom.cli.model import OpenModel
from dialoom.graph import Chunk, Graph, RunControl, RunOptions, RunResult, StopReason
from dialoom.llm import Message, Usage
from dialoom.rag import (
    AnswerCut,
    AnswerDelta,
    ContextSource,
    Embedder,
    RagConfig,
    build_rag_query_graph,
    cited_first,
)
from dialoom.stores import SqliteVectorStore

MAX_HISTORY = 40
"""So many of the newest messages are shown to whoever answers."""
Show = Callable[[str], None]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What was said and how it ended. `cited_indexes` count `sources` from 1."""

    text: str
    stop_reason: StopReason
    run_id: str
    sources: tuple[ContextSource, ...] = ()
    cited_indexes: tuple[int, ...] = ()
    usage: Usage = Usage()
    error: str = ""
    exit_code: ExitCode = ExitCode.OK

    def cited_sources(self) -> list[ContextSource]:
        """Return the sources that are cited, by their numbers: so people look for them below the answer."""
        return [self.sources[index - 1] for index in sorted(self.cited_indexes)]


class FromDocuments:
    """Answers from an index, with citations."""

    def __init__(
        self, store: SqliteVectorStore, opened: OpenModel, flags: KnowledgeFlags, embedder: Embedder
    ) -> None:
        self._config = RagConfig(
            chat=opened.options, k=flags.top_k, max_history=MAX_HISTORY, where=only_below(flags.docs, store)
        )
        self._parts = (store, embedder, opened.provider)
        self._graph: Graph = build_rag_query_graph(*self._parts, self._config).build()

    def use_model(self, name: str) -> None:
        """Have the model `name` of the same server answer from now on."""
        config = msgspec.structs.replace(self._config, model=name)
        self._graph = build_rag_query_graph(*self._parts, config).build()

    async def answer(
        self, question: str, history: Sequence[Message] = (), *, control: RunControl, show: Show
    ) -> Answer:
        """Answer, calling `show` with each piece. Cancelling `control` ends it with what was said so far."""
        cut = AnswerCut(code="")
        inputs = {"query": question, "rag_history": list(history)}
        async with self._graph.stream(inputs, RunOptions(control=control)) as stream:
            async for event in stream:
                match event:
                    case Chunk(value=AnswerDelta(text=text)):
                        show(text)
                    case Chunk(value=AnswerCut() as value):
                        cut = value
                    case _:
                        pass
            return _from_run(stream.result, cut)


def _from_run(result: RunResult, cut: AnswerCut) -> Answer:
    state = result.state
    if result.stop_reason == "finished":
        return Answer(
            text=state["answer"],
            stop_reason="finished",
            run_id=result.run_id,
            sources=tuple(state["context_sources"]),
            cited_indexes=tuple(state["answer_cited_indexes"]),
            usage=state["usage"],
        )
    cancelled = result.stop_reason == "cancelled"
    return Answer(
        text=cut.partial,
        stop_reason=result.stop_reason,
        run_id=result.run_id,
        sources=tuple(cited_first(state["context_sources"], cut.cited)),
        error=cut.message or next((error.message for error in result.errors), ""),
        exit_code=ExitCode.INTERRUPTED if cancelled else exit_code_named(cut.code),
    )
