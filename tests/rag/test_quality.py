"""How often the default set-up finds the passage that holds the answer."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from dialoom.rag.chunk import SlidingWindowChunker
from dialoom.rag.embed import HashEmbedder
from dialoom.rag.types import Document

SHARED = Path(os.environ.get("DIALOOM_SHARED") or Path(__file__).parents[3] / "shared")


@pytest.mark.slow
@pytest.mark.parametrize(("language", "least"), [("en", 0.86), ("zh", 0.89)])
async def test_the_passage_with_the_answer_is_among_the_first_five(language: str, least: float) -> None:
    path = SHARED / "data" / f"xquad.{language}.json"
    if not path.exists():
        pytest.skip(f"THE SHARED DATA ARE NOT AT {path}: set DIALOOM_SHARED")
    paragraphs = [
        paragraph
        for article in json.loads(path.read_text(encoding="utf-8"))["data"]
        for paragraph in article["paragraphs"]
    ]
    chunker, embedder = SlidingWindowChunker(), HashEmbedder()
    chunks = [
        (number, chunk)
        for number, paragraph in enumerate(paragraphs)
        for chunk in chunker.chunk(Document(id=str(number), text=paragraph["context"]))
    ]
    rows = await embedder.embed_documents([chunk.text for _, chunk in chunks])
    found = asked = 0
    for number, paragraph in enumerate(paragraphs):
        for question in paragraph["qas"]:
            start = question["answers"][0]["answer_start"]
            end = start + len(question["answers"][0]["text"])
            scores = rows @ await embedder.embed_query(question["question"])
            first = [chunks[place] for place in np.argsort(-scores, kind="stable")[:5]]
            found += any(of == number and chunk.start < end and start < chunk.end for of, chunk in first)
            asked += 1
    assert found / asked >= least
    print(f"R@5 of {language}: {found / asked:.3f}, {len(chunks)} chunks, {asked} questions")
