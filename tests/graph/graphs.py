"""Small graphs and listeners that several tests use."""

import threading
from collections.abc import Callable

from dialoom.base.events import Event, Observer
from dialoom.graph import (
    END,
    START,
    CheckpointStore,
    Graph,
    GraphBuilder,
    NodeContext,
    Reducers,
)

PATIENCE = 60
"""Seconds a test waits for what must happen, before it fails."""


class Heard:
    """An observer that keeps what it hears."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def on_event(self, event: Event) -> None:
        self.events.append(event)

    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


def line(*names: str, store: CheckpointStore | None = None, observers: tuple[Observer, ...] = ()) -> Graph:
    """A graph whose nodes say their names one after another."""
    builder = speakers(*names)
    for source, target in zip((START, *names), (*names, END), strict=True):
        builder.add_edge(source, target)
    return builder.build(store, observers)


def speakers(*names: str) -> GraphBuilder:
    """A builder with a `said` channel and a node for each name that says it; without edges."""
    builder = GraphBuilder("speakers")
    builder.add_channel("said", Reducers.append, type=list[str])
    for name in names:
        builder.add_node(name, saying(name), blocking=False)
    return builder


def saying(word: str) -> Callable[[NodeContext], dict[str, list[str]]]:
    return lambda _: {"said": [word]}


def counter(
    store: CheckpointStore | None = None, *, until: int = 5, observers: tuple[Observer, ...] = ()
) -> Graph:
    """A loop that counts up to `until`."""
    builder = GraphBuilder("counter")
    builder.add_channel("n", type=int, default=0)
    builder.add_node("count", lambda ctx: {"n": ctx.state["n"] + 1}, blocking=False)
    builder.add_edge(START, "count")
    builder.add_conditional_edges("count", lambda state: "count" if state["n"] < until else END)
    return builder.build(store, observers)


def wait_for(flag: threading.Event) -> None:
    assert flag.wait(PATIENCE), "it did not happen"
