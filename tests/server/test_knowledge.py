"""Knowledge bases of a server are read with the embedder their index was made with."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from dialoom.llm import OfflineProvider
from dialoom.rag import (
    Document,
    Embedder,
    FloatMatrix,
    FloatVector,
    LoadOptions,
    ManifestMismatchError,
    RagConfig,
    SlidingWindowChunker,
    replace_documents,
)
from dialoom.server.knowledge import KnowledgeBases, MountedBase
from dialoom.stores import SqliteVectorStore


class Lengths:
    """An embedder of an operator's own."""

    id, model, dim = "lengths", "lengths-v1", 2

    async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        return np.array([[1.0, len(text)] for text in texts], np.float32)

    async def embed_query(self, text: str) -> FloatVector:
        return (await self.embed_documents([text]))[0]


def bases(folder: Path, embedder: Embedder | None) -> KnowledgeBases:
    return KnowledgeBases(
        folder / "made",
        OfflineProvider(),
        config=RagConfig(),
        load=LoadOptions(),
        mounted={"own": MountedBase(name="Own", index=folder / "own.sqlite")},
        embedder=embedder,
    )


async def test_an_index_is_asked_with_the_embedder_it_was_made_with(tmp_path: Path) -> None:
    with SqliteVectorStore(tmp_path / "own.sqlite") as store:
        document = Document(id="note", text="The key is under the mat.")
        await replace_documents(store, Lengths(), SlidingWindowChunker(), [document])
    own, other = bases(tmp_path, Lengths()), bases(tmp_path, None)
    (passage,) = await own.passages("own", "Where is the key?")
    assert isinstance(passage, dict)
    assert passage["text"] == document.text
    with pytest.raises(ManifestMismatchError, match="lengths"):
        await other.passages("own", "Where is the key?")
    own.close()
    other.close()
