"""Models that run in this process take the place of the offline vectors."""

import asyncio
import sys
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from dialoom.base.errors import MissingExtraError
from dialoom.rag import (
    Document,
    EmbedderContractError,
    FloatVector,
    InMemoryVectorStore,
    InvalidOptionsError,
    LocalEmbedder,
    Search,
    SlidingWindowChunker,
    VectorRetriever,
    replace_documents,
)

# With the faces of fastembed 0.9, sentence-transformers 6.2 and model2vec 0.10. The vector of a document is
# (3, 0, its length), that of a question (0, 3, its length): not of length 1, and told apart.
PACKAGES = {
    "fastembed": """
class TextEmbedding:
    def __init__(self, model_name):
        if model_name == "nothing":
            raise ValueError("Model nothing is not supported")
        self.name = model_name
    def passage_embed(self, texts, **kwargs):
        if self.name == "broken":
            raise RuntimeError("the file of the model is damaged")
        yield from ([3.0, 0.0, len(text)] for text in texts)
    def query_embed(self, query, **kwargs):
        yield from ([0.0, 3.0, len(text)] for text in query)
""",
    "sentence_transformers": """
import numpy as np
class SentenceTransformer:
    def __init__(self, model_name_or_path):
        if model_name_or_path == "nothing":
            raise OSError("nothing is not a local folder")
    def encode_document(self, inputs, *, show_progress_bar=None):
        assert show_progress_bar is False
        return np.array([[3.0, 0.0, len(text)] for text in inputs])
    def encode_query(self, inputs, *, show_progress_bar=None):
        assert show_progress_bar is False
        return np.array([[0.0, 3.0, len(text)] for text in inputs])
""",
    "model2vec": """
import numpy as np
class StaticModel:
    @classmethod
    def from_pretrained(cls, path):
        if path == "nothing":
            raise FileNotFoundError("there is no such folder")
        return cls()
    def encode(self, sentences):
        return np.array([[3.0, 0.0, len(text)] for text in sentences], np.float32)
""",
}
TELLS_QUESTIONS_APART = ("fastembed", "sentence-transformers")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, source in PACKAGES.items():
        (tmp_path / f"{name}.py").write_text(source)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("kind", ["fastembed", "sentence-transformers", "model2vec"])
async def test_a_package_that_runs_models_makes_unit_vectors_of_documents_and_questions(kind: str) -> None:
    embedder = LocalEmbedder.load(kind, "some/model")
    assert (embedder.id, embedder.model, embedder.dim) == (kind, "some/model", 3)
    rows = await embedder.embed_documents(["four", "  ", "退款\ud800x"])
    assert np.allclose(rows, [[0.6, 0, 0.8], [0, 0, 0], [0.6, 0, 0.8]])
    asked = [0, 0.6, 0.8] if kind in TELLS_QUESTIONS_APART else [0.6, 0, 0.8]
    assert np.allclose(await embedder.embed_query("four"), asked)
    assert not (await embedder.embed_query(" \n")).any()


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize(
    ("kind", "model", "told"),
    [
        (
            "fastembed",
            "nothing",
            "fastembed cannot load 'nothing' (Model nothing is not supported); check its name",
        ),
        (
            "sentence-transformers",
            "nothing",
            "cannot load 'nothing' (nothing is not a local folder); check its",
        ),
        ("fastembed", "broken", "cannot load 'broken' (the file of the model is damaged); check its name"),
        ("model2vec", "nothing", "model2vec cannot load 'nothing' (there is no such folder); check its name"),
        ("model2vec", "", "the embedder model2vec needs a model; name one"),
        ("sentence-encoder", "x", "the embedder sentence-encoder has its own; leave out 'x'"),
        (
            "word2vec",
            "x",
            "there is no embedder 'word2vec'; there are: fastembed, sentence-transformers, model2vec",
        ),
    ],
)
def test_a_model_that_is_not_there_is_refused_in_one_line(kind: str, model: str, told: str) -> None:
    with pytest.raises(InvalidOptionsError) as caught:
        LocalEmbedder.load(kind, model)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_package_that_is_not_installed_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.path", [])
    monkeypatch.delitem(sys.modules, "fastembed", raising=False)
    with pytest.raises(
        MissingExtraError, match=r'fastembed is not installed; run: pip install "dialoom\[fastembed\]"'
    ):
        LocalEmbedder.load("fastembed", "some/model")


async def test_a_function_of_ones_own_is_an_embedder_and_is_held_to_its_length() -> None:
    embedder = LocalEmbedder(
        "mine", "v1", documents=lambda texts: [np.ones(len(texts[0]), np.float32) for _ in texts]
    )
    assert (embedder.dim, embedder.languages) == (1, ())
    with pytest.raises(EmbedderContractError, match="got vectors of shape"):
        await embedder.embed_documents(["longer"])


async def test_the_sentence_encoder_finds_across_languages_without_any_download() -> None:
    embedder = LocalEmbedder.load("sentence-encoder")
    assert (embedder.model, embedder.dim) == ("sentence-encoder", 512)
    assert {"en", "zh"} < set(embedder.languages)
    store = InMemoryVectorStore()
    documents = [
        Document(id="refund", text="The refund takes three working days."),
        Document(id="hall", text="The exhibition hall is closed on Mondays."),
    ]
    await replace_documents(store, embedder, SlidingWindowChunker(), documents)
    (hit,) = await VectorRetriever(store, embedder).retrieve(Search(text="退款要几天？", k=1))
    assert hit.chunk.doc_id == "refund"


async def test_the_model_is_never_called_twice_at_once_and_takes_no_thread_from_others() -> None:
    inside, opened = Event(), Event()

    def encode(texts: list[str]) -> list[FloatVector]:
        if texts != ["a"]:  # the text that its dimension is measured with
            assert not inside.is_set()
            inside.set()
            assert opened.wait(30)
            inside.clear()
        return [np.ones(2, np.float32) for _ in texts]

    embedder = LocalEmbedder("mine", "v1", documents=encode)
    asked = [asyncio.create_task(embedder.embed_query(f"question {number}")) for number in range(64)]
    assert await asyncio.to_thread(inside.wait, 30)
    opened.set()
    async with asyncio.timeout(60):
        rows = await asyncio.gather(*asked)
    assert np.allclose(rows, np.sqrt(0.5))
