"""A foreign exception as a value: one line for people, the traceback as bounded text."""

from typing import Final

from dialoom.base.text import one_line, replace_surrogates
from dialoom.graph.result import NodeError

MAX_MESSAGE: Final = 500
MAX_TRACEBACK: Final = 20_000
_FRAMES: Final = 30


def error_of(node: str, error: BaseException, prefix: str = "") -> NodeError:
    """Return `error`, raised by code of `node`, as a NodeError."""
    import traceback  # only a failing run pays for it

    last = traceback.format_exception_only(error)[-1]
    text = "".join(traceback.format_exception(error, limit=-_FRAMES))
    return NodeError(
        node=node,
        message=one_line(prefix + last, MAX_MESSAGE),
        traceback=replace_surrogates(text[-MAX_TRACEBACK:]),
    )
