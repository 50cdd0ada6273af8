"""A million vectors of 384 numbers: what a search in lists takes, and what it misses.

Takes minutes and 2 GB, so it runs only by name: `python -m bench rag_million`. The vectors are drawn
around centres; those of real texts lie less tidily. `DIALOOM_VECTORS=FILE.npy` measures yours, of any number
and length, with the last hundred rows as questions, or those of `DIALOOM_QUESTIONS=FILE.npy`.
"""

import os
import statistics
import time
from collections.abc import Iterator

import numpy as np

from bench.report import Row
from dialoom.rag import FloatMatrix, FloatVector
from dialoom.rag.matrix import SEGMENT_ROWS, Matrix

PACKAGES = ("numpy",)
COUNT = 1_000_000
DIM = 384
K = 10
QUESTIONS = 100
CENTRES = 8_000
SPREAD = np.float32(0.9)
MISSED = 5.0
"""Of 100 true neighbours so many may be missed."""
MAKING_SECONDS = 120.0


def rows() -> list[Row]:
    """Return CPU times of one search: the median over all questions."""
    matrix: Matrix[int] = Matrix()
    pieces, questions = _of_files() if "DIALOOM_VECTORS" in os.environ else _drawn()
    for piece in pieces:
        first = len(matrix)
        matrix.replace([], range(first, first + len(piece)), piece)
    every, exact_ms = _asked(matrix, questions)
    began = time.process_time()
    matrix.make_lists()
    making = time.process_time() - began
    near, listed_ms = _asked(matrix, questions)
    missed = 100 * (1 - sum(len(a & b) for a, b in zip(near, every, strict=True)) / sum(map(len, every)))
    name = f"search {len(matrix):,} x {matrix.snapshot.dim} in lists"
    return [
        Row(name, "ms", listed_ms, "every row", exact_ms, must=0.7),
        Row(f"{name}: missed of the nearest {K}", "%", missed, "5 of 100", MISSED, must=1.0),
        Row("making the lists", "s", making, "two minutes", MAKING_SECONDS, must=1.0),
    ]


def _asked(matrix: Matrix[int], questions: FloatMatrix) -> tuple[list[set[int]], float]:
    """What is found for each question, and the median milliseconds of one."""
    snapshot = matrix.snapshot

    def timed(question: FloatVector) -> tuple[set[int], float]:
        began = time.process_time()
        hits = snapshot.search(question, K)
        return {number for number, _ in hits}, time.process_time() - began

    answers = [timed(question) for question in questions]
    return [found for found, _ in answers], 1000 * statistics.median(taken for _, taken in answers)


def _drawn() -> tuple[Iterator[FloatMatrix], FloatMatrix]:
    rng = np.random.default_rng(4)
    centres = rng.standard_normal((CENTRES, DIM), np.float32)

    def around(count: int) -> FloatMatrix:
        drawn: FloatMatrix = rng.standard_normal((count, DIM), np.float32)
        drawn *= SPREAD
        drawn += centres[rng.integers(0, CENTRES, count)]
        return drawn

    sizes = (min(SEGMENT_ROWS, COUNT - start) for start in range(0, COUNT, SEGMENT_ROWS))
    questions = around(QUESTIONS)
    return map(around, sizes), questions


def _of_files() -> tuple[Iterator[FloatMatrix], FloatMatrix]:
    """The rows of a file piece by piece, and the questions."""
    stored: FloatMatrix = np.load(os.environ["DIALOOM_VECTORS"], mmap_mode="r")
    other = os.environ.get("DIALOOM_QUESTIONS")
    questions: FloatMatrix = np.load(other) if other else stored[-QUESTIONS:]
    count = len(stored) if other else len(stored) - QUESTIONS
    starts = range(0, count, SEGMENT_ROWS)
    pieces: Iterator[FloatMatrix] = (
        np.asarray(stored[start : min(start + SEGMENT_ROWS, count)], np.float32) for start in starts
    )
    return pieces, np.asarray(questions, np.float32)
