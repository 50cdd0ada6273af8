"""Nodes in a process of their own, for code that must be killed when its time is over."""

from collections.abc import Callable, Sequence
from functools import wraps
from types import FunctionType
from typing import Any, Final, cast

from dialoom.base.errors import UsageError
from dialoom.graph.context import NodeContext
from dialoom.graph.table import NodeOutput

ISOLATED: Final = "isolated_function"
"""Where an isolated node keeps the function it is made of; its process may find the node by that name."""


def isolated(
    fn: Callable[[NodeContext], Any], *, types: Sequence[type] = ()
) -> Callable[[NodeContext], NodeOutput]:
    """Return `fn` as a node that runs in a new process for each attempt, and is killed when that is over.

    So a timeout or a stop ends it whatever it does, with all processes it began. `fn`, plain or async, must
    be at the top of a module that another process can import; what it reads and returns is plain data, or of
    the classes `types`. Its context has no `deps`, and no `interrupt`, `once` or subgraph. A process takes a
    tenth of a second to begin. Raises UsageError for a function that cannot be named.
    """
    target, classes = name_of(fn), {name_of(kind): kind for kind in types}

    @wraps(fn)
    def node(ctx: NodeContext) -> NodeOutput:
        from dialoom.graph.isolated_process import run_isolated  # only one that runs pays for it

        return run_isolated(ctx, target, classes)

    node.__dict__[ISOLATED] = fn
    return node


def name_of(thing: Any) -> str:
    """Return how another process imports a function or class. Raises UsageError when it cannot."""
    is_named = isinstance(thing, (FunctionType, type)) and "<" not in thing.__qualname__
    if not is_named or thing.__module__ == "__main__":
        raise UsageError(
            f"{thing!r} cannot be found by another process; put it at the top of a module that is imported"
        )
    return f"{cast('Any', thing).__module__}:{thing.__qualname__}"
