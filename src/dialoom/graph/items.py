"""The node of a map: what it returns is a value, not writes."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from dialoom.graph.context import NodeContext
from dialoom.graph.result import NodeResult
from dialoom.graph.table import Node, NodeOutput

ITEM: Final = "item"
"""What the result of one item is called on its way through the engine."""


def item_node(fn: Callable[[NodeContext], Any], *, waits: bool) -> Node:
    """Return `fn`, async when it `waits`, as a node of which each result is the write to `ITEM`."""
    if waits:

        async def wait_for_one(ctx: NodeContext) -> NodeOutput:
            return _result(await fn(ctx))

        return wait_for_one
    return lambda ctx: _result(fn(ctx))


def _result(value: object) -> NodeOutput:
    if isinstance(value, Awaitable) or (isinstance(value, NodeResult) and value.error is not None):
        # for the engine to refuse
        return cast("NodeOutput", value)
    return NodeResult(writes={ITEM: value})
