"""The real model2vec, with a model of six words that is made here: nothing is downloaded.

`pip install model2vec` beside dialoom has these run; the suite's own environment does without it.
"""

from pathlib import Path

import numpy as np
import pytest

from dialoom.rag import (
    Document,
    InMemoryVectorStore,
    InvalidOptionsError,
    LocalEmbedder,
    Search,
    SlidingWindowChunker,
    VectorRetriever,
    replace_documents,
)

model2vec = pytest.importorskip("model2vec", reason="MODEL2VEC IS NOT INSTALLED: pip install model2vec")
tokenizers = pytest.importorskip("tokenizers", reason="comes with model2vec")

WORDS = {"[UNK]": 0, "[PAD]": 1, "lamp": 2, "light": 3, "parcel": 4, "box": 5}
VECTORS = np.array([[0, 0, 0.1], [0, 0, 0], [1, 0, 0], [0.9, 0.1, 0], [0, 1, 0], [0.1, 0.9, 0]], np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    model2vec.StaticModel(VECTORS, tokenizer, config={}).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


async def test_what_means_the_same_is_found_by_a_model_from_a_folder(folder: Path) -> None:
    embedder, store = LocalEmbedder.load("model2vec", str(folder)), InMemoryVectorStore()
    assert (embedder.id, embedder.dim) == ("model2vec", 3)
    documents = [Document(id="a", text="parcel"), Document(id="b", text="lamp")]
    await replace_documents(store, embedder, SlidingWindowChunker(), documents)
    hits = await VectorRetriever(store, embedder).retrieve(Search(text="light"))
    assert [hit.chunk.doc_id for hit in hits] == ["b", "a"]


def test_a_folder_without_a_model_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionsError, match="model2vec cannot load") as caught:
        LocalEmbedder.load("model2vec", str(tmp_path))
    assert "\n" not in str(caught.value)
