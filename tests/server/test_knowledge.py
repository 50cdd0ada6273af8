"""Knowledge bases of a server: read with the embedder of their index, deleted when nobody writes."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from starlette.requests import Request

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
from dialoom.server.background import Background
from dialoom.server.files import FileStore
from dialoom.server.hub import EventHub
from dialoom.server.knowledge import KnowledgeBases, MountedBase
from dialoom.server.knowledge_calls import KnowledgeCalls
from dialoom.server.problems import ProblemError
from dialoom.server.routes import Call, Nothing
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


async def test_a_base_is_deleted_with_its_documents_when_nobody_writes_it(tmp_path: Path) -> None:
    bases = knowledge(tmp_path)
    made = (await bases.create("wells")).id
    files, background = FileStore(tmp_path / "files", max_file=1, max_total=1), Background()
    calls = KnowledgeCalls(bases, files, EventHub(), background)
    call = Call(Request({"type": "http", "path_params": {"id": made}}), Nothing(), Nothing())
    async with background:
        background.start(forever(), f"ingest {made}")
        with pytest.raises(ProblemError, match="wait until that is done"):
            await calls.remove(call)
    await calls.remove(call)
    assert (await bases.ids(), list((tmp_path / "kb").iterdir())) == ([], [])
    with pytest.raises(ProblemError, match="there is no knowledge base"):
        await calls.remove(call)


async def test_a_base_that_nobody_opened_since_the_start_is_deleted_too(tmp_path: Path) -> None:
    before = knowledge(tmp_path)
    made = (await before.create("wells")).id
    before.close()
    after = knowledge(tmp_path)
    await after.remove(made)
    assert await after.ids() == []


def knowledge(folder: Path) -> KnowledgeBases:
    return KnowledgeBases(
        folder / "kb", OfflineProvider(), config=RagConfig(), load=LoadOptions(), mounted={}
    )


async def forever() -> None:
    await asyncio.Event().wait()
