"""Notices about work in progress, and the one interface that listens to them."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Event(msgspec.Struct, frozen=True):
    """One notice of one run.

    `seq` counts from 1 within a run and has no gaps; it is also the id a stream resumes from.
    Subclasses set `tag` to a dotted word, written as `type` in JSON.
    """

    run_id: str
    seq: int


class Observer(Protocol):
    """Listens to events. Called in order, on the thread of the run; it must not block."""

    def on_event(self, event: Event) -> None: ...


def notify(observers: Sequence[Observer], event: Event) -> None:
    """Hand `event` to each observer. One that fails is logged and never breaks the run it watches."""
    for observer in observers:
        try:
            observer.on_event(event)
        except Exception:  # noqa: BLE001 - seam: foreign code listens here
            misheard(observer)


def misheard(observer: Observer) -> None:
    """Log that `observer` failed at an event, with the exception at hand."""
    import logging  # seldom needed, and a seventh of what the engine costs to import

    logging.getLogger("dialoom.events").exception(
        "observer failed", extra={"observer": type(observer).__name__}
    )
