"""Nodes that are not run again for what they have seen already."""

from collections import OrderedDict
from collections.abc import Awaitable, Collection, Mapping
from functools import wraps
from threading import Lock
from types import FunctionType
from typing import Any, Final, Protocol, cast

import msgspec

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.graph.compile_draft import is_async
from dialoom.graph.context import NodeContext
from dialoom.graph.frozen import MAX_DEPTH, freeze
from dialoom.graph.log import AppendLog
from dialoom.graph.result import NodeResult
from dialoom.graph.table import Node

DEFAULT_SIZE: Final = 1_024


class Kept(msgspec.Struct, frozen=True):
    """What a node gave back, in a struct because None is an answer too. It is read-only."""

    output: Any


class NodeCache(Protocol):
    """Keeps outputs of nodes. Called from any thread, within the node: on an event loop it must not wait."""

    def get(self, key: str) -> Kept | None:
        """Return what was put under `key`, None when there is nothing or its time is over."""
        ...

    def put(self, key: str, kept: Kept, seconds: float | None) -> None:
        """Keep `kept` for `seconds`, None for as long as there is room."""
        ...


class MemoryNodeCache:
    """Keeps the `size` outputs that were used last."""

    def __init__(self, size: int = DEFAULT_SIZE, *, clock: Clock = SYSTEM_CLOCK) -> None:
        if size < 1:
            raise UsageError(f"size is {size}; give 1 or more outputs")
        self._size = size
        self._clock = clock
        self._lock = Lock()
        self._held: OrderedDict[str, tuple[Kept, float | None]] = OrderedDict()

    def get(self, key: str) -> Kept | None:
        with self._lock:
            kept, until = self._held.get(key, (None, None))
            if until is not None and self._clock.monotonic() >= until:
                del self._held[key]
                return None
            if kept is not None:
                self._held.move_to_end(key)
            return kept

    def put(self, key: str, kept: Kept, seconds: float | None) -> None:
        until = None if seconds is None else self._clock.monotonic() + seconds
        with self._lock:
            self._held[key] = (kept, until)
            self._held.move_to_end(key)
            if len(self._held) > self._size:
                self._held.popitem(last=False)


def cached(
    fn: Node,
    cache: NodeCache,
    *,
    reads: Collection[str] | None = None,
    seconds: float | None = None,
    name: str = "",
) -> Node:
    """Return `fn` as a node that is run once for each of the inputs it is given, for `seconds`.

    Its input is its `ctx.input` and the channels it `reads`, all of them when that is left out; neither its
    thread nor `ctx.deps` count, and what it emits is not repeated. Failures are not kept. `name` tells it
    from other functions in the same cache: needed for one that has no name of its own, and a new one
    forgets what older code gave. Raises UsageError, within the run, for input that cannot be told apart.
    """
    scope = name or _own_name(fn)
    channels = None if reads is None else tuple(sorted(set(reads)))

    @wraps(fn)
    def plain(ctx: NodeContext) -> Any:
        key = _key(scope, ctx, channels)
        kept = cache.get(key)
        return _keep(cache, key, fn(ctx), seconds) if kept is None else kept.output

    @wraps(fn)
    async def waiting(ctx: NodeContext) -> Any:
        key = _key(scope, ctx, channels)
        kept = cache.get(key)
        if kept is not None:
            return kept.output
        return _keep(cache, key, await cast("Awaitable[Any]", fn(ctx)), seconds)

    return waiting if is_async(fn) else plain


def _own_name(fn: Node) -> str:
    """Return what no other function is called. Raises UsageError when `fn` has no such name."""
    if isinstance(fn, FunctionType) and "<" not in fn.__qualname__:
        return f"{fn.__module__}:{fn.__qualname__}"
    raise UsageError(
        f"{fn!r} has no name that tells it from others in the cache; give it one: cached(..., name=)"
    )


def _key(scope: str, ctx: NodeContext, channels: tuple[str, ...] | None) -> str:
    """Return a hash over the structure of the input: no text in it can look like a border between two."""
    import hashlib  # 4 MB of memory that a graph without a cache need not have

    names = sorted(ctx.state) if channels is None else channels
    try:
        read = [[name, _spelled(ctx.state[name])] for name in names if name in ctx.state]
        shape = [scope, ctx.node, _spelled(ctx.input), read]
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"node {ctx.node!r} cannot be cached: {one_line(str(error))};"
            " name the channels it needs in reads="
        ) from error
    return hashlib.blake2b(msgspec.msgpack.encode(shape), digest_size=32).hexdigest()


def _spelled(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return `value` in lists and scalars that differ whenever the values do, types included."""
    if depth == 0:
        raise ValueError(f"its input is nested deeper than {MAX_DEPTH} levels")
    kind = cast("type[object]", type(value))
    if value is None or kind in {bool, float, str, bytes}:
        return value
    if kind is int:
        return value if -(2**63) <= value < 2**63 else ["int", str(value)]
    if isinstance(value, (list, AppendLog, tuple)):
        word = "tuple" if isinstance(value, tuple) else "list"
        return [word, [_spelled(item, depth - 1) for item in cast("list[Any]", value)]]
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        return [
            "dict",
            _sorted([[_spelled(key, depth - 1), _spelled(item, depth - 1)] for key, item in pairs]),
        ]
    if isinstance(value, (set, frozenset)):
        return ["set", _sorted([_spelled(item, depth - 1) for item in cast("set[Any]", value)])]
    return [f"{kind.__module__}:{kind.__qualname__}", _spelled(msgspec.to_builtins(value), depth - 1)]


def _sorted(items: list[Any]) -> list[Any]:
    return sorted(items, key=msgspec.msgpack.encode)


def _keep(cache: NodeCache, key: str, output: Any, seconds: float | None) -> Any:
    if isinstance(output, NodeResult):
        if output.error is not None:
            return output
        output = msgspec.structs.replace(output, writes=freeze(dict(output.writes)))
    elif isinstance(output, Mapping):
        output = freeze(dict(cast("Mapping[str, Any]", output)))
    else:
        output = freeze(output)
    cache.put(key, Kept(output), seconds)
    return output
