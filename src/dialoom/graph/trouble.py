"""What went wrong as a value: one bounded line for people, the traceback as bounded text."""

from typing import Final

from dialoom.base.text import one_line, replace_surrogates
from dialoom.graph.result import NodeError

MAX_MESSAGE: Final = 500
MAX_TRACEBACK: Final = 20_000
_FRAMES: Final = 30


def refused(node: str, reason: str) -> NodeError:
    """Return what the engine itself would not take from `node`."""
    return NodeError(node=node, message=one_line(reason, MAX_MESSAGE))


def error_of(node: str, error: BaseException, prefix: str = "") -> NodeError:
    """Return `error`, raised by code of `node`, as a NodeError."""
    import traceback  # only a failing run pays for it

    text = "".join(traceback.format_exception(error, limit=-_FRAMES))
    return NodeError(
        node=node,
        message=one_line(prefix + _told(error), MAX_MESSAGE),
        traceback=replace_surrogates(text[-MAX_TRACEBACK:]),
    )


def _told(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - seam: a foreign exception may fail even at that
        return f"{name} (which cannot say why)"
    return f"{name}: {text}" if text else name
