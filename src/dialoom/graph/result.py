"""What a node gives back, and what a run gives back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, cast

import msgspec

from dialoom.base.errors import DialoomError
from dialoom.base.text import one_line
from dialoom.graph.frontier import Interrupt, Send
from dialoom.graph.state import State

StopReason = Literal[
    "finished", "max_steps", "halted", "error", "cancelled", "timeout", "interrupted", "conflict"
]
NO_WRITES: Mapping[str, Any] = State()


class NodeResult(msgspec.Struct, frozen=True, kw_only=True):
    """A node's answer, when a plain mapping of writes does not say enough. Make one with `ok` or `fail`."""

    writes: Mapping[str, Any] = NO_WRITES
    goto: tuple[str, ...] | None = None
    halt: bool = False
    error: str | None = None
    sends: tuple[Send, ...] = ()

    @classmethod
    def ok(
        cls,
        writes: Mapping[str, Any] | None = None,
        *,
        goto: str | Sequence[str] | None = None,
        sends: Sequence[Send] = (),
        halt: bool = False,
    ) -> "NodeResult":
        """Commit `writes`, then follow the node's edges, or `goto` instead; `halt` ends the run there.

        Each of `sends` is a task that runs beside what follows; with `goto=()` nothing else does.
        """
        names = (goto,) if isinstance(goto, str) else goto
        return cls(
            writes=NO_WRITES if writes is None else writes,
            goto=None if names is None else _items(names),
            sends=_items(sends),
            halt=halt,
        )

    @classmethod
    def fail(cls, message: str) -> "NodeResult":
        """End the run with stop_reason error. Nothing of this node is committed; what its siblings did is."""
        return cls(error=message if type(message) is str and message else _unsaid(message))

    def trouble(self) -> str | None:
        """Return which part is of a type that cannot be gone on with; None for a sound result."""
        writes, goto, sends, error = cast("tuple[Any, ...]", (self.writes, self.goto, self.sends, self.error))
        if not isinstance(writes, Mapping):
            return f"its writes are of type {type(writes).__name__}; give a mapping of channels to values"
        if goto is not None and not _holds_only(str, goto):
            return f"its goto is {_shown(goto)}; give a node's name, or several"
        if not _holds_only(Send, sends):
            return f"its sends are {_shown(sends)}; give Send(node, input) each"
        if not _holds_only(str, tuple(send.node for send in self.sends)):
            return f"it sends to {_shown([send.node for send in self.sends])}; give names of nodes"
        if error is not None and not isinstance(error, str):
            return f"its error is of type {type(error).__name__}; give text"
        return None


def _items(given: Any) -> Any:
    """Return `given` as a tuple; what is no sequence stays what it is, for `trouble` to name."""
    is_one = isinstance(given, (str, Mapping)) or not isinstance(given, Iterable)
    return cast("Any", given) if is_one else tuple(cast("Iterable[Any]", given))


def _holds_only(kind: type, items: Any) -> bool:
    return isinstance(items, tuple) and all(isinstance(item, kind) for item in cast("tuple[Any, ...]", items))


def _unsaid(reason: object) -> str:
    return str(reason) if reason else "it failed and gave no reason"


def _shown(value: Any) -> str:
    return one_line(repr(value), 80)


class NodeError(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong and where. `node` is START for a refused input, "" when it was the engine's own work.

    `traceback` is the node's, as text, "" where there is none.
    """

    node: str
    message: str
    attempts: int = 1
    traceback: str = ""


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended and what it left. `steps` counts the supersteps it committed.

    `checkpoint_id` is the newest checkpoint, None without a store. `interrupts` wait for an answer. `orphans`
    counts the plain nodes that outlived their own timeout; what they return later is dropped.
    """

    state: State
    stop_reason: StopReason
    steps: int
    run_id: str
    thread_id: str
    checkpoint_id: str | None = None
    errors: tuple[NodeError, ...] = ()
    interrupts: tuple[Interrupt, ...] = ()
    orphans: int = 0

    def raise_for_error(self) -> "RunResult":
        """Return self, or raise RunFailedError when the run ended with error or conflict."""
        if self.stop_reason not in {"error", "conflict"}:
            return self
        first, *others = self.errors
        where = f"node {first.node!r}: " if first.node else ""
        more = f" (and {len(others)} more in result.errors)" if others else ""
        raise RunFailedError(f"{where}{first.message}{more}", self)


class RunFailedError(DialoomError):
    """A run ended with stop_reason error or conflict, and its caller asked for an exception."""

    code: ClassVar[str] = "run_failed"

    def __init__(self, message: str, result: RunResult) -> None:
        super().__init__(message)
        self.result = result
