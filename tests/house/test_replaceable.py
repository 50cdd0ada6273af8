"""Every part that the requirements call replaceable, replaced by one of a user's own."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import numpy as np
import pytest

from dialoom.agent import ReActAgent
from dialoom.graph import END, START, Checkpoint, GraphBuilder, MemoryCheckpointStore, RunOptions
from dialoom.llm import (
    AnthropicProvider,
    ChatOptions,
    Message,
    MockProvider,
    Model,
    OpenAIProvider,
    Provider,
    ResponseStream,
    chat,
    user,
)
from dialoom.rag import (
    Chunk,
    Document,
    FloatMatrix,
    FloatVector,
    HashEmbedder,
    InMemoryVectorStore,
    Loaded,
    LoadOptions,
    RagConfig,
    ScoredChunk,
    SlidingWindowChunker,
    Source,
    VectorRetriever,
    build_rag_query_graph,
    load_document,
    replace_documents,
)
from dialoom.stores import JsonlCheckpointStore


class CountingCheckpoints(MemoryCheckpointStore):
    """A store of a user's own: the one in memory, which also counts."""

    def __init__(self) -> None:
        super().__init__()
        self.saved = 0

    def save(self, checkpoint: Checkpoint) -> None:
        super().save(checkpoint)
        self.saved += 1


def _count_up(store: MemoryCheckpointStore | JsonlCheckpointStore) -> list[int]:
    builder = GraphBuilder("count")
    builder.add_channel("n", type=int)
    builder.add_node("up", lambda ctx: {"n": ctx.state["n"] + 1})
    builder.add_edge(START, "up")
    builder.add_edge("up", END)
    builder.build(store=store).run_sync({"n": 1}, RunOptions(thread_id="t"))
    return [checkpoint.state["n"] for checkpoint in store.history("t") if "n" in checkpoint.state]


@pytest.mark.promise("docs-012")
def test_checkpoints_go_to_a_store_of_ones_own_or_to_one_that_comes_along(tmp_path: Path) -> None:
    own = CountingCheckpoints()
    assert _count_up(own) == _count_up(MemoryCheckpointStore()) == [2, 1]
    assert own.saved == 2
    with JsonlCheckpointStore(tmp_path / "runs") as kept:
        assert _count_up(kept) == [2, 1]


PLAIN = ChatOptions()


def _says(words: str) -> MockProvider:
    return MockProvider().queue_text(words)


class EchoProvider:
    """A provider of a user's own: hands every request on, and remembers the last words."""

    id = "echo"

    def __init__(self) -> None:
        self._inner = _says("said by an echo")
        self.heard: list[str] = []

    async def models(self) -> tuple[Model, ...]:
        return await self._inner.models()

    def stream(
        self, messages: Sequence[Message], options: ChatOptions = PLAIN
    ) -> AbstractAsyncContextManager[ResponseStream]:
        self.heard.append(messages[-1].text)
        return self._inner.stream(messages, options)

    async def aclose(self) -> None:
        await self._inner.aclose()


@pytest.mark.promise("docs-014", "llm-001")
@pytest.mark.parametrize(
    "make",
    [
        EchoProvider,
        lambda: _says("said by an echo"),
    ],
)
async def test_agents_and_graphs_run_unchanged_on_any_provider(make: Callable[[], Provider]) -> None:
    assert (await chat(make(), [user("hello")])).message.text == "said by an echo"
    assert (await ReActAgent(make()).run("hello")).answer == "said by an echo"
    store, embedder = InMemoryVectorStore(), HashEmbedder(64)
    await replace_documents(store, embedder, SlidingWindowChunker(), [Document(id="d", text="an echo")])
    run = await build_rag_query_graph(store, embedder, make()).build().run({"query": "an echo?"})
    assert run.state["answer"] == "said by an echo"


async def test_the_providers_that_come_along_are_providers_too() -> None:
    for provider in (
        OpenAIProvider(base_url="http://127.0.0.1:9/v1", api_key="k"),
        AnthropicProvider(base_url="http://127.0.0.1:9", api_key="k"),
    ):
        asked: Provider = provider
        assert asked.id
        await asked.aclose()


class ShoutingLoader:
    """A loader of a user's own."""

    def load(self, source: Source) -> Loaded:
        text = source.data.decode().upper()
        return Loaded(source=source.id, documents=(Document(id=source.id, text=text),))


@pytest.mark.promise("docs-016")
def test_a_file_type_of_ones_own_is_read_by_ones_own_loader(tmp_path: Path) -> None:
    (tmp_path / "a.shout").write_text("hello")
    (tmp_path / "b.txt").write_text("hello")
    documents = load_document(tmp_path, LoadOptions(loaders={".shout": ShoutingLoader()}))
    assert [document.text for document in documents] == ["HELLO", "hello"]


class VowelEmbedder:
    """An embedder of a user's own: counts vowels."""

    id, model, dim = "vowels", "vowels-v1", 5

    async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        counts = [[text.lower().count(vowel) + 0.01 for vowel in "aeiou"] for text in texts]
        return np.array(counts, np.float32)

    async def embed_query(self, text: str) -> FloatVector:
        return (await self.embed_documents([text]))[0]


class LineChunker:
    """A chunker of a user's own: a chunk per line."""

    def signature(self) -> str:
        return "lines-v1"

    def chunk(self, document: Document) -> list[Chunk]:
        chunks: list[Chunk] = []
        start = 0
        for line in document.text.splitlines():
            chunks.append(
                Chunk(
                    id=f"{document.id}#{len(chunks)}",
                    doc_id=document.id,
                    text=line,
                    start=start,
                    end=start + len(line),
                )
            )
            start += len(line) + 1
        return chunks


class BackwardReranker:
    """A reranker of a user's own: the last comes first."""

    async def rerank(self, question: str, hits: Sequence[ScoredChunk], k: int) -> list[ScoredChunk]:
        return list(reversed(hits))[:k]


@pytest.mark.promise("docs-017", "docs-018", "docs-020")
async def test_documents_are_cut_embedded_and_ranked_by_parts_of_ones_own() -> None:
    store, embedder = InMemoryVectorStore(), VowelEmbedder()
    document = Document(id="d", text="aaaa\neeee\naaae")
    await replace_documents(store, embedder, LineChunker(), [document])
    config = RagConfig(k=2, reranker=BackwardReranker(), retriever=VectorRetriever(store, embedder))
    graph = build_rag_query_graph(store, embedder, _says("done"), config).build()
    state = (await graph.run({"query": "aaa"})).state
    assert [hit.chunk.text for hit in state["chunks"]] == ["eeee", "aaae"]
