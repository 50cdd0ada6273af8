"""The life of a run, told to the log."""

import logging
from typing import Any, Final

from dialoom.base.events import Event
from dialoom.graph.events import (
    ErrorEvent,
    InterruptEvent,
    NodeBegin,
    NodeEnd,
    Retry,
    RunBegin,
    RunFinished,
    StepCommitted,
)

_LINES: Final[dict[type[Event], tuple[int, str]]] = {
    RunBegin: (logging.INFO, "run of graph %(graph)r began"),
    NodeBegin: (logging.DEBUG, "node %(node)r began in step %(step)d"),
    NodeEnd: (logging.DEBUG, "node %(node)r ended in step %(step)d: %(status)s after %(elapsed).3f s"),
    Retry: (logging.WARNING, "node %(node)r failed attempt %(attempt)d and is tried again in %(delay).3f s"),
    InterruptEvent: (logging.INFO, "step %(step)d waits for an answer"),
    StepCommitted: (logging.DEBUG, "step %(step)d committed"),
    ErrorEvent: (logging.WARNING, "node %(node)r failed in step %(step)d"),
    RunFinished: (logging.INFO, "run ended after %(steps)d steps: %(stop_reason)s"),
}
_CONTENT: Final = {"value", "message", "interrupt"}


class LoggingObserver:
    """Writes runs and pauses at INFO, failures at WARNING, the rest at DEBUG, by default to `dialoom.graph`.

    Every record has the fields of its event too. What nodes emit is never logged, and what an error says
    only at DEBUG: both may quote what people wrote.
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._log = logging.getLogger("dialoom.graph") if logger is None else logger

    def on_event(self, event: Event) -> None:
        line = _LINES.get(type(event))
        if line is None or not self._log.isEnabledFor(line[0]):
            return
        level, text = line
        fields: dict[str, Any] = {
            name: getattr(event, name) for name in event.__struct_fields__ if name not in _CONTENT
        }
        self._log.log(level, text, fields, extra=fields)
        if isinstance(event, (ErrorEvent, Retry)):
            self._log.debug("node %(node)r says: %(error)s", {**fields, "error": event.message}, extra=fields)
