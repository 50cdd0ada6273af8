"""A question is answered from documents, with citations.

Run it: `python examples/ask_documents.py "QUESTION" [FOLDER]`. Without a model the best passages are quoted;
put any provider of `dialoom.llm` in the place of `OfflineProvider`.
"""

import asyncio
import sys
from pathlib import Path

from dialoom.llm import OfflineProvider
from dialoom.rag import (
    HashEmbedder,
    InMemoryVectorStore,
    SlidingWindowChunker,
    build_rag_query_graph,
    load_document,
    replace_documents,
)

DOCUMENTS = Path(__file__).parent / "kb"


async def main(question: str, documents: str | Path = DOCUMENTS) -> None:
    store, embedder = InMemoryVectorStore(), HashEmbedder()
    await replace_documents(store, embedder, SlidingWindowChunker(), load_document(documents))
    result = await build_rag_query_graph(store, embedder, OfflineProvider()).build().run({"query": question})
    print(result.state["answer"])
    for source in result.state["answer_sources"]:
        print(f"[{source.index}] {source.title}")


if __name__ == "__main__":
    asyncio.run(main(*(sys.argv[1:3] or ["What fee is kept on return?"])))
