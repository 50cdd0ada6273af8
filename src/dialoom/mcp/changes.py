"""Which of a server's lists changed, and telling those who want to know: soon, and once."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeAlias, get_args

from dialoom.base.clock import SYSTEM_CLOCK, Clock

ListKind = Literal["tools", "resources", "prompts"]
KINDS: Final[tuple[ListKind, ...]] = get_args(ListKind)
DEBOUNCE_SECONDS: Final = 0.2

_log = logging.getLogger("dialoom.mcp")

OnChange: TypeAlias = Callable[[frozenset[ListKind]], Awaitable[None]]


class ListChanges:
    """A flag for each kind of list, and listeners that hear of it a moment later.

    However many notices come, a listener runs once for all that came before, and once more for all that
    came while it ran.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._changed: set[ListKind] = set()
        self._times = dict.fromkeys(KINDS, 0)
        self._untold: set[ListKind] = set()
        self._news = asyncio.Event()
        self._listeners: list[OnChange] = []

    def is_set(self, kind: ListKind) -> bool:
        return kind in self._changed

    def clear(self, kind: ListKind) -> None:
        """Forget that this kind changed; the others stay as they are."""
        self._changed.discard(kind)

    def times(self, kind: ListKind) -> int:
        """How often this kind may have changed so far."""
        return self._times[kind]

    def mark(self, *kinds: ListKind) -> None:
        """Note that these lists may have changed."""
        self._changed.update(kinds)
        self._untold.update(kinds)
        for kind in kinds:
            self._times[kind] += 1
        self._news.set()

    def listen(self, listener: OnChange) -> Callable[[], None]:
        """Call `listener` with the kinds that changed. Returns what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def tell(self) -> None:
        """Tell the listeners of changes, for ever."""
        while True:
            await self._news.wait()
            await self._clock.sleep(DEBOUNCE_SECONDS)
            self._news.clear()
            kinds = frozenset(self._untold)
            self._untold.clear()
            for listener in tuple(self._listeners):
                try:
                    await listener(kinds)
                except Exception:  # noqa: BLE001 - seam: foreign code listens here
                    _log.exception("a listener to list changes failed")
