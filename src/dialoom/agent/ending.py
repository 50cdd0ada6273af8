"""How a superstep of an agent ends its run."""

from collections.abc import Mapping

from dialoom.graph.result import NodeResult


def halt(outcome: str, error: str, writes: Mapping[str, object] | None = None, *, goto: str) -> NodeResult:
    """End the run here, with `goto` next when it is resumed."""
    return NodeResult.ok({**(writes or {}), "outcome": outcome, "error": error}, goto=goto, halt=True)
