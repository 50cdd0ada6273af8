"""Questions answered from a store by the query graph."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from dialoom.graph import Chunk as Emitted
from dialoom.graph import Graph, RunControl, RunFinished, RunOptions
from dialoom.llm import (
    ChatOptions,
    Gate,
    MockProvider,
    OfflineProvider,
    ProviderError,
    RefusalDelta,
    TextDelta,
    Usage,
    assistant,
    system,
    user,
)
from dialoom.rag.chunk import SlidingWindowChunker
from dialoom.rag.embed import HashEmbedder
from dialoom.rag.errors import InvalidOptionsError
from dialoom.rag.ingest import replace_documents
from dialoom.rag.memory_store import InMemoryVectorStore
from dialoom.rag.query import INSTRUCTIONS, AnswerCut, AnswerDelta, RagConfig, build_rag_query_graph
from dialoom.rag.rerank import RerankError
from dialoom.rag.retrieve import Search
from dialoom.rag.retrieve_questions import CONDENSE_INSTRUCTIONS
from dialoom.rag.store import VectorStore
from dialoom.rag.types import Document, FloatVector, ScoredChunk
from dialoom.testing.vector_contract import chunk, rows

REFUNDS = "Refunds take three business days after the parcel has come back."
SHIPPING = "Shipping a lamp to Norway costs nine euros."
CHINESE = "退款需要三个工作日，从收到退货算起。"


@pytest.fixture
async def store() -> InMemoryVectorStore:
    filled = InMemoryVectorStore()
    documents = [
        Document(id=f"/kb/{name}", text=text, metadata={"source": f"/kb/{name}"})
        for name, text in {"refunds.md": REFUNDS, "shipping.md": SHIPPING, "zh.md": CHINESE}.items()
    ]
    report = await replace_documents(filled, HashEmbedder(), SlidingWindowChunker(), documents)
    assert report.failures == []
    return filled


def graph(store: VectorStore, provider: MockProvider | OfflineProvider, **config: object) -> Graph:
    return build_rag_query_graph(store, HashEmbedder(), provider, RagConfig(**config)).build()


async def emitted(
    asked: Graph, question: str, options: RunOptions | None = None
) -> tuple[list[object], RunFinished]:
    values: list[object] = []
    last: object = None
    async for event in asked.stream({"query": question}, options or RunOptions()):
        last = event
        if isinstance(event, Emitted):
            values.append(event.value)
    assert isinstance(last, RunFinished)
    return values, last


@pytest.mark.promise("rag-112", "rag-113", "rag-115", "rag-116", "rag-117", "rag-118")
async def test_an_answer_names_the_sources_it_cites(store: InMemoryVectorStore) -> None:
    usage = Usage(input_tokens=90, output_tokens=9)
    provider = MockProvider().queue_text("Three days [1], see [1] and [9].", usage=usage)
    result = await graph(store, provider).run({"query": " How long do refunds take? "})
    state = result.raise_for_error().state
    assert state["answer"] == "Three days [1], see [1] and [9]."
    assert (state["answer_cited"], state["answer_cited_indexes"]) == (True, [1])
    assert [(source.doc_id, source.title, source.text) for source in state["answer_sources"]] == [
        ("/kb/refunds.md", "refunds.md", REFUNDS)
    ]
    assert [source.index for source in state["context_sources"]] == [1, 2, 3]
    assert state["context"].startswith(f"[1] refunds.md\n{REFUNDS}\n\n[2] ")
    assert state["chunks"][0].chunk.doc_id == "/kb/refunds.md"
    assert state["usage"] == usage
    assert state["rag_history"] == [
        user("How long do refunds take?"),
        assistant("Three days [1], see [1] and [9]."),
    ]


@pytest.mark.promise("rag-119", "rag-122")
async def test_the_model_is_told_the_rules_and_the_conversation(
    store: InMemoryVectorStore,
) -> None:
    provider = MockProvider().queue_text("Nine euros [1].")
    history = [user("Hello?"), assistant("Hello.")]
    await graph(store, provider, k=1, model="small", chat=ChatOptions(seed=7)).run(
        {"query": "What does shipping to Norway cost?", "rag_history": history}
    )
    (request,) = provider.requests
    told, *rest = request.messages
    assert (told, rest[:2]) == (system(INSTRUCTIONS), history)
    assert rest[2].text == "What does shipping to Norway cost?"
    assert [(source.index, source.title, source.text) for source in rest[2].sources] == [
        (1, "shipping.md", SHIPPING)
    ]
    assert (request.options.model, request.options.seed) == ("small", 7)


@pytest.mark.promise("rag-120")
async def test_a_conversation_goes_on_with_the_newest_messages(store: InMemoryVectorStore) -> None:
    provider = MockProvider()
    asked = graph(store, provider, max_history=3)
    history: list[object] = []
    for number in range(3):
        provider.queue_text(f"answer {number}")
        result = await asked.run({"query": f"refund {number}?", "rag_history": history})
        history = list(result.state["rag_history"])
    assert history == [user("refund 2?"), assistant("answer 2")]
    assert [message.text for message in provider.requests[-1].messages[1:]] == [
        "refund 1?",
        "answer 1",
        "refund 2?",
    ]


@pytest.mark.promise("rag-121")
async def test_channels_go_by_the_names_that_the_config_gives_them(store: InMemoryVectorStore) -> None:
    provider = MockProvider().queue_text("Three days [1].")
    names = {"history_channel": "talk", "sources_channel": "shown", "chunks_channel": "found"}
    asked = graph(store, provider, **names)
    earlier = [user("Who are you?"), assistant("A shop.")]
    state = (await asked.run({"query": "refund?", "talk": earlier})).raise_for_error().state
    assert list(state["talk"]) == [*earlier, user("refund?"), assistant("Three days [1].")]
    assert state["found"][0].chunk.id == state["shown"][0].id
    assert list(state["answer_sources"]) == [state["shown"][0]]
    assert [message.text for message in provider.requests[0].messages[1:]][:2] == ["Who are you?", "A shop."]
    assert not {"rag_history", "context_sources", "chunks"} & set(state)


async def test_a_follow_up_is_made_whole_from_a_history_of_another_name(store: InMemoryVectorStore) -> None:
    provider = MockProvider().queue_text("How long does a refund take?").queue_text("Three days [1].")
    asked = graph(store, provider, condense=True, history_channel="talk")
    earlier = [user("Tell me of refunds."), assistant("Yes?")]
    state = (await asked.run({"query": "and how long?", "talk": earlier})).raise_for_error().state
    assert list(state["search_queries"]) == ["How long does a refund take?"]


async def test_a_question_on_which_nothing_is_found_is_not_answered_from_elsewhere() -> None:
    provider = MockProvider().queue_text("The sources do not say [1].")
    state = (await graph(InMemoryVectorStore(), provider).run({"query": "refund?"})).raise_for_error().state
    (shown,) = provider.requests[0].messages[-1].sources
    assert (shown.title, shown.text) == ("no source was found", "")
    assert (state["answer_cited_indexes"], state["context_sources"]) == ([], [])
    offline = build_rag_query_graph(InMemoryVectorStore(), HashEmbedder(), OfflineProvider()).build()
    said = (await offline.run({"query": "退款多久？"})).raise_for_error().state["answer"]
    assert said == "文档中没有与这个问题有关的内容。"


async def test_no_history_is_kept_when_none_is_wanted(store: InMemoryVectorStore) -> None:
    provider = MockProvider().queue_text("yes")
    result = await graph(store, provider, max_history=0).run({"query": "refund?"})
    assert result.state["rag_history"] == []


@pytest.mark.promise("rag-114")
async def test_the_answer_streams_without_half_a_citation(store: InMemoryVectorStore) -> None:
    provider = MockProvider().queue_text("Three days [1] 【", chunks=17)
    values, last = await emitted(graph(store, provider), "refunds?")
    assert values[:3] == [AnswerDelta("T"), AnswerDelta("h"), AnswerDelta("r")]
    assert AnswerDelta("[1] ") in values
    assert "".join(value.text for value in values if isinstance(value, AnswerDelta)) == "Three days [1] 【"
    assert last.stop_reason == "finished"


async def test_sources_are_numbered_as_the_answer_cites_them_streamed_and_in_the_end(
    store: InMemoryVectorStore,
) -> None:
    written, said = "Days [3], euros [1]; as said [3].", "Days [1], euros [2]; as said [1]."
    provider = MockProvider().queue_text(written, chunks=12).queue_text(written)
    values, _ = await emitted(graph(store, provider), "How long do refunds take?")
    state = (await graph(store, provider).run({"query": "How long do refunds take?"})).state
    shown = [source.title for source in provider.requests[-1].messages[-1].sources]
    assert "".join(value.text for value in values if isinstance(value, AnswerDelta)) == said
    assert (state["answer"], state["answer_cited_indexes"]) == (said, [1, 2])
    assert state["rag_history"][-1] == assistant(said)
    assert [(source.index, source.title) for source in state["context_sources"]] == [
        (1, shown[2]),
        (2, shown[0]),
        (3, shown[1]),
    ]
    assert state["answer_sources"] == state["context_sources"][:2]
    assert state["context"].startswith(f"[1] {shown[2]}\n")


async def test_an_answer_that_breaks_off_says_which_sources_it_numbers(store: InMemoryVectorStore) -> None:
    error = ProviderError("overloaded", "the server is overloaded; try again later")
    provider = MockProvider().queue_events(TextDelta("Days [3], or [2"), error)
    values, _ = await emitted(graph(store, provider), "How long do refunds take?")
    assert values == [
        AnswerDelta("Days [1], or "),
        AnswerCut(
            code="provider", kind="overloaded", message=str(error), partial="Days [1], or [2", cited=(3,)
        ),
    ]


@pytest.mark.promise("rag-123")
async def test_a_model_that_fails_is_an_error_and_no_answer(store: InMemoryVectorStore) -> None:
    error = ProviderError("overloaded", "the server is overloaded; try again later")
    provider = MockProvider().queue_events(TextDelta("Three "), error)
    values, last = await emitted(graph(store, provider), "refunds?")
    assert values == [
        AnswerDelta("Three "),
        AnswerCut(code="provider", kind="overloaded", message=str(error), partial="Three "),
    ]
    assert last.stop_reason == "error"
    provider.queue_error(error)
    result = await graph(store, provider).run({"query": "refunds?"})
    assert (result.stop_reason, result.state["answer"]) == ("error", "")
    assert [(failed.node, failed.message) for failed in result.errors] == [("answer", str(error))]


async def test_a_provider_that_is_misused_is_an_error_too(store: InMemoryVectorStore) -> None:
    values, last = await emitted(graph(store, MockProvider()), "refunds?")
    assert [(value.code, value.kind) for value in values if isinstance(value, AnswerCut)] == [("usage", "")]
    assert last.stop_reason == "error"


async def test_a_cancelled_answer_says_what_had_come(store: InMemoryVectorStore) -> None:
    gate, control = Gate(), RunControl()
    provider = MockProvider().queue_events(TextDelta("Three days"), gate, TextDelta(" never said"))
    run = asyncio.create_task(
        emitted(graph(store, provider), "refunds?", RunOptions(control=control, timeout=30))
    )
    await asyncio.wait_for(gate.reached.wait(), 60)
    control.cancel()
    values, last = await asyncio.wait_for(run, 60)
    assert values == [AnswerDelta("Three days"), AnswerCut(code="cancelled", partial="Three days")]
    assert last.stop_reason == "cancelled"


@pytest.mark.parametrize("question", ["", " \n\u3000"])
async def test_an_empty_question_is_refused(store: InMemoryVectorStore, question: str) -> None:
    provider = MockProvider()
    values, last = await emitted(graph(store, provider), question)
    assert [(value.code, value.message) for value in values] == [
        ("empty_query", "the question is empty; ask something")
    ]
    assert (last.stop_reason, provider.requests) == ("error", [])


async def test_an_index_of_another_embedder_is_refused(store: InMemoryVectorStore) -> None:
    asked = build_rag_query_graph(store, HashEmbedder(64), MockProvider()).build()
    result = await asked.run({"query": "refunds?"})
    assert "dim 1024, not 64" in result.errors[0].message
    unknown = InMemoryVectorStore()
    unknown.add([chunk("a", "d")], rows([1, 0]))
    result = await graph(unknown, MockProvider()).run({"query": "refunds?"})
    assert "does not say what made its vectors" in result.errors[0].message


async def test_an_embedder_that_answers_nonsense_is_an_error(store: InMemoryVectorStore) -> None:
    class Broken(HashEmbedder):
        async def embed_query(self, text: str) -> FloatVector:
            return np.full(self.dim, np.nan, np.float32)

    values, last = await emitted(build_rag_query_graph(store, Broken(), MockProvider()).build(), "refunds?")
    assert [value.code for value in values if isinstance(value, AnswerCut)] == ["embedder_contract"]
    assert last.stop_reason == "error"


async def test_a_refusal_is_the_answer_and_cites_nothing(store: InMemoryVectorStore) -> None:
    provider = MockProvider().queue_events(RefusalDelta("I would rather not [1]."))
    result = await graph(store, provider).run({"query": "refunds?"})
    assert (result.state["answer"], result.state["answer_cited"]) == ("I would rather not [1].", False)


@pytest.mark.promise("rag-107")
async def test_what_is_looked_at_can_be_chosen(store: InMemoryVectorStore) -> None:
    async def sources(**config: object) -> list[str]:
        provider = MockProvider().queue_text("yes")
        result = await graph(store, provider, **config).run({"query": "refund 退款?"})
        return sorted(source.title for source in result.state["context_sources"])

    assert await sources(where=lambda piece: piece.doc_id.endswith("zh.md")) == ["zh.md"]
    assert await sources(min_score=0.99) == []
    assert len(await sources(k=2)) == 2


async def test_no_document_crowds_out_the_others() -> None:
    store = InMemoryVectorStore()
    long = Document(id="long", text="\n\n".join(f"refund rule {number}. " + "x" * 300 for number in range(9)))
    other = Document(id="other", text="a refund, once")
    await replace_documents(store, HashEmbedder(), SlidingWindowChunker(), [long, other])
    asked = graph(store, MockProvider().queue_text("ok"), k=3, max_per_document=2)
    hits = (await asked.run({"query": "refund rule"})).state["chunks"]
    assert sorted(hit.chunk.doc_id for hit in hits) == ["long", "long", "other"]


@pytest.mark.parametrize(
    ("question", "document", "said"),
    [
        ("How many business days do refunds take?", "/kb/refunds.md", "three business days"),
        ("退款需要几个工作日？", "/kb/zh.md", "三个工作日"),
    ],
)
def test_without_a_model_the_documents_are_quoted(question: str, document: str, said: str) -> None:
    store = InMemoryVectorStore()
    documents = [Document(id="/kb/refunds.md", text=REFUNDS), Document(id="/kb/zh.md", text=CHINESE)]
    asyncio.run(replace_documents(store, HashEmbedder(), SlidingWindowChunker(), documents))
    result = graph(store, OfflineProvider()).run_sync({"query": question})
    assert said in result.state["answer"]
    assert [source.doc_id for source in result.state["answer_sources"]] == [document]


async def test_a_follow_up_is_made_whole_before_it_is_looked_for(store: InMemoryVectorStore) -> None:
    provider = (
        MockProvider().queue_text("What does shipping a lamp to Norway cost?\n").queue_text("Nine [1].")
    )
    history = [user("Do you ship lamps to Norway?"), assistant("We do.")]
    asked = graph(store, provider, condense=True, k=1)
    state = (await asked.run({"query": "And the cost?", "rag_history": history})).state
    assert state["search_queries"] == ["What does shipping a lamp to Norway cost?"]
    assert [source.title for source in state["answer_sources"]] == ["shipping.md"]
    rules, told = provider.requests[0].messages
    assert (rules, told.text) == (
        system(CONDENSE_INSTRUCTIONS),
        "user: Do you ship lamps to Norway?\nassistant: We do.\nThe last question: And the cost?",
    )
    assert provider.requests[1].messages[-1].text == "And the cost?"


async def test_a_first_question_is_looked_for_as_it_is(store: InMemoryVectorStore) -> None:
    provider = MockProvider().queue_text("ok")
    state = (await graph(store, provider, condense=True).run({"query": "refunds?"})).state
    assert (state["search_queries"], len(provider.requests)) == (["refunds?"], 1)


async def test_a_model_that_cannot_make_it_whole_leaves_the_question_as_it_is(
    store: InMemoryVectorStore,
) -> None:
    error = ProviderError("overloaded", "the server is overloaded; try again later")
    for provider in (MockProvider().queue_error(error), MockProvider().queue_text(" \n")):
        provider.queue_text("ok")
        inputs = {"query": "refunds?", "rag_history": [user("Hello?"), assistant("Hello.")]}
        result = await graph(store, provider, condense=True).run(inputs)
        assert (result.state["search_queries"], result.state["answer"]) == (["refunds?"], "ok")


async def test_other_wordings_are_looked_for_too(store: InMemoryVectorStore) -> None:
    lines = "1. what a parcel to Oslo costs\n- shipping to Norway\n\nthird"
    provider = MockProvider().queue_text(lines).queue_text("Nine [1].")
    state = (await graph(store, provider, variants=2).run({"query": "postage?"})).state
    assert state["search_queries"] == ["postage?", "what a parcel to Oslo costs", "shipping to Norway"]
    assert state["chunks"][0].chunk.doc_id == "/kb/shipping.md"
    empty = await graph(store, MockProvider(), variants=2).run({"query": " "})
    assert "the question is empty" in empty.errors[0].message


async def test_follow_ups_are_made_whole_and_said_in_other_words(store: InMemoryVectorStore) -> None:
    provider = MockProvider().queue_text("refund time?").queue_text("how long\nrefund time?").queue_text("ok")
    asked = graph(store, provider, condense=True, variants=3)
    inputs = {"query": "how long?", "rag_history": [user("Refunds?"), assistant("Yes.")]}
    assert (await asked.run(inputs)).state["search_queries"] == ["refund time?", "how long"]
    assert asked.to_mermaid().index("condense") < asked.to_mermaid().index("vary")


@pytest.mark.promise("rag-106", "rag-109")
async def test_a_reranker_of_ones_own_orders_the_candidates(store: InMemoryVectorStore) -> None:
    class Backwards:
        async def rerank(self, question: str, hits: Sequence[ScoredChunk], k: int) -> list[ScoredChunk]:
            self.seen = (question, len(hits), k)
            return [*reversed(hits)]

    reranker = Backwards()
    asked = graph(store, MockProvider().queue_text("ok"), reranker=reranker, candidate_pool=2, k=1)
    hits = (await asked.run({"query": "Refunds and shipping?"})).state["chunks"]
    assert (len(hits), reranker.seen) == (1, ("Refunds and shipping?", 2, 2))
    first = graph(store, MockProvider().queue_text("ok"), k=2)
    expected = (await first.run({"query": "Refunds and shipping?"})).state["chunks"]
    assert hits[0].chunk == expected[1].chunk


async def test_a_reranker_that_fails_is_an_error(store: InMemoryVectorStore) -> None:
    class Broken:
        async def rerank(self, question: str, hits: Sequence[ScoredChunk], k: int) -> list[ScoredChunk]:
            raise RerankError("the reranker cannot be asked")

    values, last = await emitted(graph(store, MockProvider(), reranker=Broken()), "refunds?")
    assert (values, last.stop_reason) == (
        [AnswerCut(code="rerank", message="the reranker cannot be asked")],
        "error",
    )


async def test_nobody_is_answered_from_what_they_may_not_see(store: InMemoryVectorStore) -> None:
    class Careless:
        async def retrieve(self, search: Search) -> list[ScoredChunk]:
            return store.search_words("salary refunds", 9)

    secret = Document(id="/kb/secret.md", text="Salaries and refunds", metadata={"acl": ["boss"]})
    await replace_documents(store, HashEmbedder(), SlidingWindowChunker(), [secret])

    async def sources(**config: object) -> list[str]:
        asked = graph(store, MockProvider().queue_text("ok"), **config)
        state = (await asked.run({"query": "salary refunds"})).state
        return sorted(source.doc_id for source in state["context_sources"])

    assert "/kb/secret.md" in await sources()
    assert "/kb/secret.md" in await sources(principals=("boss",))
    assert "/kb/secret.md" not in await sources(principals=())
    assert await sources(principals=("clerk",), retriever=Careless()) == ["/kb/refunds.md"]


async def test_each_source_points_at_its_best_sentence(store: InMemoryVectorStore) -> None:
    text = "We are a small shop. A gift wrap costs two euros. Ask us."
    await replace_documents(store, HashEmbedder(), SlidingWindowChunker(), [Document(id="g", text=text)])
    state = (await graph(store, MockProvider().queue_text("Two [1].")).run({"query": "gift wrap"})).state
    (source,) = state["answer_sources"]
    assert (source.doc_id, source.start, source.text[source.best.start : source.best.end]) == (
        "g",
        0,
        "A gift wrap costs two euros.",
    )


@pytest.mark.parametrize(
    "config",
    [
        {"k": 0},
        {"max_per_document": 0},
        {"max_history": -1},
        {"candidate_pool": -1},
        {"variants": 9},
        {"max_context_tokens": True},
    ],
)
def test_counts_that_count_nothing_are_refused(config: dict[str, int]) -> None:
    with pytest.raises(InvalidOptionsError):
        RagConfig(**config)


def test_a_count_that_is_a_text_is_refused_where_it_is_given() -> None:
    given: dict[str, Any] = {"k": "4"}
    with pytest.raises(InvalidOptionsError, match=r"^k must be 1 or more, not '4'; give a whole number$"):
        RagConfig(**given)


@pytest.mark.promise("rag-110", "rag-111")
def test_the_graph_can_be_added_to_and_drawn(store: InMemoryVectorStore) -> None:
    builder = build_rag_query_graph(store, HashEmbedder(), MockProvider())
    builder.add_node("thank", lambda ctx: None, blocking=False)
    builder.add_edge("answer", "thank")
    drawn = builder.build().to_mermaid()
    assert all(name in drawn for name in ("retrieve", "build_context", "answer", "thank"))
