"""Vectors as rows: checked before they come in, and scaled to length 1."""

import numpy as np

from dialoom.rag.errors import DimensionMismatchError, NonFiniteVectorError
from dialoom.rag.types import FloatMatrix, FloatVector

_SAFE_NORMS = (1e-15, 1e15)  # between these the square of a float32 neither vanishes nor overflows


def check_query(query: FloatVector, dim: int | None) -> FloatVector:
    """The question's vector as float32, or the error that says why it cannot be compared."""
    vector = np.asarray(query, np.float32)
    if vector.ndim != 1:
        raise DimensionMismatchError(f"a question is one vector, not an array of shape {vector.shape}")
    return check_rows(vector[None, :], dim)[0]


def check_rows(vectors: FloatMatrix, dim: int | None) -> FloatMatrix:
    """The vectors as a float32 matrix whose rows may join an index of dimension `dim`.

    Raises `DimensionMismatchError` and `NonFiniteVectorError`.
    """
    matrix = np.asarray(vectors, np.float32)
    width = matrix.shape[1] if matrix.ndim == 2 else 0
    if matrix.ndim != 2 or (len(matrix) and width != (dim or max(width, 1))):
        held = "one row per chunk" if dim is None else f"dimension {dim}"
        raise DimensionMismatchError(f"vectors of shape {matrix.shape} do not fit an index of {held}")
    if not np.isfinite(matrix).all():
        raise NonFiniteVectorError("a vector holds NaN or infinity; nothing of this batch was stored")
    return matrix


def unit_rows(vectors: FloatMatrix, out: FloatMatrix | None = None) -> FloatMatrix:
    """Each row scaled to length 1, into `out` if given; a row of zeros stays as it is."""
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    odd = ~((norms > _SAFE_NORMS[0]) & (norms < _SAFE_NORMS[1]))
    if odd.any():  # row by row, so that a row's unit never depends on its neighbours
        vectors = vectors.copy()
        largest = np.abs(vectors[odd]).max(axis=1)
        largest[largest == 0] = 1.0
        vectors[odd] /= largest[:, None]
        norms[odd] = np.sqrt(np.einsum("ij,ij->i", vectors[odd], vectors[odd]))
        norms[norms == 0] = 1.0
    return np.divide(vectors, norms[:, None], out=out)
