"""What the engine raises: named after what the caller can decide."""

from typing import ClassVar

import msgspec

from dialoom.base.errors import DialoomError


class GraphProblem(msgspec.Struct, frozen=True):
    """One finding about a graph that cannot be built. `code` is stable; `where` is the thing it is about."""

    code: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"[{self.code}] {self.where}: {self.message}"


class GraphBuildError(DialoomError):
    """The graph cannot run as it was described; `problems` holds all that is wrong with it."""

    code: ClassVar[str] = "graph_build"

    def __init__(self, graph: str, problems: tuple[GraphProblem, ...]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(f"graph {graph!r} has {count}: " + "; ".join(str(problem) for problem in problems))
        self.problems = problems


class GraphChangedError(DialoomError):
    """A checkpoint waits for a node that this graph does not have."""

    code: ClassVar[str] = "graph_changed"

    def __init__(self, node: str, *, made_by: str, resumed_by: str) -> None:
        super().__init__(
            f"the checkpoint was made by graph {made_by} and waits for node {node!r}, which is not in graph"
            f" {resumed_by}; resume it with the graph that made it, or begin a new run"
        )
        self.node = node
        self.made_by = made_by
        self.resumed_by = resumed_by


class Interrupted(BaseException):
    """A node pauses its run for an answer from outside. Not a failure, so `except Exception` lets it pass.

    Raised by `ctx.interrupt`, never by hand.
    """


class IsolatedNodeError(Exception):
    """What an isolated node raised, or how its process ended."""
