"""Arrays and numbers of numpy in checkpoints: recognised by name, so that numpy is loaded by who uses it."""

from typing import Any, Final

from dialoom.base.errors import MissingExtraError, StoreError
from dialoom.graph.codec_types import TypeCodec

_SCALARS: Final = (
    "bool", "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip


def _encode(array: Any) -> dict[str, Any]:
    if array.dtype.hasobject or array.dtype.names is not None:
        raise StoreError(f"an array of {array.dtype} cannot be stored; store its columns, or plain lists")
    return {"dtype": array.dtype.str, "shape": list(array.shape), "data": array.tobytes()}


def _decode(stored: dict[str, Any]) -> Any:
    try:
        import numpy
    except ImportError as error:  # pragma: no cover - the suite has numpy
        raise MissingExtraError("numpy", "rag") from error
    kind = numpy.dtype(stored["dtype"])
    if kind.hasobject:
        raise ValueError("an array of objects is not data")
    return numpy.frombuffer(stored["data"], kind).reshape(stored["shape"]).copy()


def _decode_scalar(stored: dict[str, Any]) -> Any:
    return _decode(stored)[()]


ARRAY_TYPES: Final = (
    TypeCodec("ndarray", "numpy.ndarray", _encode, _decode),
    *(TypeCodec(f"numpy.{name}", f"numpy.{name}", _encode, _decode_scalar) for name in _SCALARS),
)
"""What the stores of this package know besides the classes they are given."""
