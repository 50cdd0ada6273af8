"""The hash embedder: the same everywhere, and near for what is alike."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.rag.embed import HashEmbedder, check_vectors
from dialoom.rag.errors import EmbedderContractError, InvalidOptionsError
from dialoom.rag.question_words import about

TEXTS = ["Refunds take three business days.", "退款需要三个工作日。", "", "A", "😀" * 9]
GOLDEN = "82bc2abfd1a6441e"


def fingerprint(dim: int) -> str:
    counts = np.rint(HashEmbedder(dim).embed(TEXTS) * 4096).astype("<i4")
    return hashlib.sha256(counts.tobytes()).hexdigest()[:16]


def test_the_vectors_are_the_same_on_every_machine_and_in_every_version() -> None:
    assert fingerprint(1024) == GOLDEN


@pytest.mark.promise("rag-062")
def test_another_process_gets_the_same_vectors() -> None:
    script = (
        "from dialoom.rag.embed import HashEmbedder;"
        "import sys; sys.stdout.write(HashEmbedder(64).embed(['退款 refund']).tobytes().hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        timeout=60,
        capture_output=True,
        env={"PYTHONHASHSEED": "7"},
    )
    assert done.stdout.decode() == HashEmbedder(64).embed(["退款 refund"]).tobytes().hex()


def test_the_embedder_says_what_it_is() -> None:
    embedder = HashEmbedder(256)
    assert (embedder.id, embedder.model, embedder.dim) == ("hash", "hash-v1/256/sqrt", 256)
    assert HashEmbedder().model == "hash-v1/1024/sqrt"


def test_rows_have_length_one_and_an_empty_text_none() -> None:
    rows = HashEmbedder().embed(TEXTS)
    assert (rows.dtype, rows.shape) == (np.float32, (5, 1024))
    assert np.linalg.norm(rows, axis=1).round(5).tolist() == [1.0, 1.0, 0.0, 1.0, 1.0]
    assert HashEmbedder().embed([]).shape == (0, 1024)


def test_case_does_not_matter_and_one_chinese_character_does() -> None:
    rows = HashEmbedder().embed(["Refund ÄZ@[", "rEFUND Äz@[", "退", "退款", "货"])
    assert rows[0].tolist() == rows[1].tolist()
    assert rows[2] @ rows[3] > rows[4] @ rows[3] + 0.2


async def test_a_question_is_embedded_without_the_words_of_every_question() -> None:
    embedder = HashEmbedder()
    question = await embedder.embed_query("How long does a refund take?")
    assert question.tolist() == embedder.embed([about("How long does a refund take?")])[0].tolist()
    assert question.shape == (1024,)
    assert (await embedder.embed_documents(["a b"])).tolist() == embedder.embed(["a b"]).tolist()


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("How long does the refund take?", "refund take?"),
        ("退款需要多久？", "退款需要 ？"),
        ("What is it?", "What is it?"),
        ("多少？", "多少？"),
    ],
)
def test_what_a_question_is_about(question: str, left: str) -> None:
    assert " ".join(about(question).split()) == left


@given(st.lists(st.text(max_size=40), min_size=1, max_size=5), st.integers(0, 40))
def test_a_vector_does_not_depend_on_its_neighbours(texts: list[str], before: int) -> None:
    embedder = HashEmbedder(64)
    together = embedder.embed(["x" * before] * before + texts)[before:]
    assert together.tolist() == [embedder.embed([text])[0].tolist() for text in texts]


def test_a_very_long_text_is_counted_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"word {number} 退款 " for number in range(500))
    whole = HashEmbedder(128).embed([text, "short", ""])
    monkeypatch.setattr("dialoom.rag.embed._LONGEST_RUN", 1000)
    assert HashEmbedder(128).embed([text, "short", ""]).tolist() == whole.tolist()


@pytest.mark.parametrize("dim", [0, 63, 100, 65_536])
def test_a_dimension_that_is_no_power_of_two_is_refused(dim: int) -> None:
    with pytest.raises(InvalidOptionsError, match="power of two"):
        HashEmbedder(dim)


def test_vectors_that_break_the_contract_are_refused() -> None:
    embedder = HashEmbedder(64)
    good = np.ones((2, 64), np.float64)
    assert check_vectors(good, texts=2, embedder=embedder).dtype == np.float32
    for bad in (np.ones((1, 64)), np.ones((2, 63)), np.ones(64), np.full((2, 64), np.nan)):
        with pytest.raises(EmbedderContractError, match="fix the embedder"):
            check_vectors(bad, texts=2, embedder=embedder)


def test_half_a_surrogate_pair_is_embedded_as_the_mark_that_stands_for_it() -> None:
    halves = HashEmbedder(64).embed(["a \ud800 b", "\ud83d\ude00"])
    assert (halves == HashEmbedder(64).embed(["a \ufffd b", "😀"])).all()
