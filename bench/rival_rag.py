"""Searches the bench's vectors in the in-memory stores of others: `rival_rag.py VECTORS.npy QUESTION.npy K`.

Prints `ready` when all are filled, and for each line on its standard input, which names a store of `STORES`,
the CPU seconds of one search and the numbers of the rows found. It stands alone: the rivals' Python has
nothing of dialoom.
"""

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Search = Callable[[], list[str]]


def llama_index(vectors: list[list[float]], question: list[float], k: int) -> Search:
    node = importlib.import_module("llama_index.core.schema").TextNode
    types = importlib.import_module("llama_index.core.vector_stores.types")
    store = importlib.import_module("llama_index.core.vector_stores.simple").SimpleVectorStore()
    store.add([node(id_=str(number), text="x", embedding=row) for number, row in enumerate(vectors)])
    asked = types.VectorStoreQuery(query_embedding=question, similarity_top_k=k)
    return lambda: list(store.query(asked).ids)


def langchain(vectors: list[list[float]], question: list[float], k: int) -> Search:
    store = importlib.import_module("langchain_core.vectorstores").InMemoryVectorStore(_Prepared(vectors))
    store.add_texts(["x"] * len(vectors), ids=[str(number) for number in range(len(vectors))])
    return lambda: [found.id for found in store.similarity_search_by_vector(question, k=k)]


def haystack(vectors: list[list[float]], question: list[float], k: int) -> Search:
    document = importlib.import_module("haystack").Document
    stores = importlib.import_module("haystack.document_stores.in_memory")
    store = stores.InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(
        [document(id=str(number), content="x", embedding=row) for number, row in enumerate(vectors)]
    )
    return lambda: [found.id for found in store.embedding_retrieval(question, top_k=k)]


class _Prepared:
    """LangChain asks an embedder for what has been computed already."""

    def __init__(self, vectors: list[list[float]]) -> None:
        self._vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._vectors[: len(texts)]


STORES: dict[str, Callable[[list[list[float]], list[float], int], Search]] = {
    "llama-index-core": llama_index,
    "langchain-core": langchain,
    "haystack-ai": haystack,
}


def main(vectors_path: str, question_path: str, k: int) -> None:
    vectors: Any = np.load(vectors_path).tolist()
    question: Any = np.load(question_path).tolist()
    searches = {name: fill(vectors, question, k) for name, fill in STORES.items()}
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.process_time()
        found = searches[line.strip()]()
        print(time.process_time() - began, *found, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
