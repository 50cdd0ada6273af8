"""What a large file takes in memory while it is brought in."""

import tracemalloc
from pathlib import Path

from dialoom.rag import HashEmbedder, SlidingWindowChunker, sync_folder
from dialoom.rag.sync_embed import LARGE
from dialoom.stores import SqliteVectorStore

MEGABYTE = 1_000_000


async def test_a_large_text_is_brought_in_with_a_few_times_its_size_of_memory(tmp_path: Path) -> None:
    sentence = "The lamp on deck {} was mended on a day in May, and nobody knows by whom it was done."
    text = "\n".join(map(sentence.format, range(26_000)))
    (tmp_path / "log.txt").write_text(text)
    with SqliteVectorStore(tmp_path / "index.sqlite") as store:
        tracemalloc.start()
        try:
            async for _ in sync_folder(
                tmp_path / "log.txt", store, embedder=HashEmbedder(), chunker=SlidingWindowChunker()
            ):
                pass
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        print(f"{len(text) / MEGABYTE:.1f} MB of text: {peak / MEGABYTE:.0f} MB at most")
        assert len(store) > LARGE  # at 4 kB each, all vectors alone would be ten times the text
        assert peak < 8 * len(text) + 16 * MEGABYTE
