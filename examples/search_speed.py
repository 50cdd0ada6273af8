"""How fast vectors of 128 numbers are stored and searched on this machine.

Run it: `python examples/search_speed.py [HOW MANY]`, 50,000 unless told. From a clone of the repository
`dialoom bench rag` measures the same against rivals.
"""

import statistics
import sys
import time

import numpy as np

from dialoom.rag import Chunk, InMemoryVectorStore

DIMENSIONS, QUESTIONS, TOP = 128, 20, 10


def main(count: int) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(count, DIMENSIONS)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chunks = [Chunk(id=str(number), doc_id="d", text="") for number in range(count)]
    store = InMemoryVectorStore()
    began = time.perf_counter()
    store.add(chunks, vectors)
    print(f"stored {count} in {1000 * (time.perf_counter() - began):.1f} ms")
    taken: list[float] = []
    for question in vectors[:QUESTIONS]:
        began = time.perf_counter()
        store.search(question, TOP)
        taken.append(time.perf_counter() - began)
    print(f"the nearest {TOP} in {1000 * statistics.median(taken):.2f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
