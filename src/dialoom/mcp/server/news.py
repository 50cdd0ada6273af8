"""What has changed of what is served: said by the program, heard by the servers that offer it."""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from dialoom.mcp.changes import ListKind


class ListChanged(msgspec.Struct, frozen=True):
    """There are more, fewer or other ones of a kind."""

    kind: ListKind


class ResourceChanged(msgspec.Struct, frozen=True):
    """What is read at `uri` is different now."""

    uri: str


Change: TypeAlias = ListChanged | ResourceChanged


class News:
    """Passes changes on to whoever listens. Used on one event loop."""

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[Change], None]] = {}

    def tell(self, change: Change) -> None:
        """Say that something changed; clients hear of it as soon as they can."""
        for listener in tuple(self._listeners.values()):
            listener(change)

    def listen(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Call `listener` for each change; it must not block. Returns what ends that."""
        token = object()
        self._listeners[token] = listener

        def end() -> None:
            self._listeners.pop(token, None)

        return end
