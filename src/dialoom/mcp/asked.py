"""Which call a server's question belongs to, so that whoever made that call is asked."""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from dialoom.mcp.inputs import Elicit, Fields
from dialoom.mcp.patience import Patience

_log = logging.getLogger("dialoom.mcp")

CANCELLED: Final[Fields] = {"action": "cancel"}
_current: Final[ContextVar["LiveCall | None"]] = ContextVar("mcp_call", default=None)


class LiveCall:
    """A request on its way that may lead to questions. `failure` is what asking raised."""

    def __init__(self, elicit: Elicit | None) -> None:
        self.elicit = elicit
        self.patience: Patience | None = None
        self.failure: BaseException | None = None


class Asker:
    """Puts a server's questions to the call they belong to, else to `otherwise`.

    Over HTTP a question comes on the stream of its call. Over a pipe nothing says which call it is for: the
    only one that can be asked is it, and with several the question goes to `otherwise`.
    """

    def __init__(self, otherwise: Elicit | None) -> None:
        self._otherwise = otherwise
        self._calls: list[LiveCall] = []

    @contextmanager
    def call(self, elicit: Elicit | None) -> Generator[LiveCall]:
        """Hold a call open. What its `elicit` raised is raised from here, whatever the call ended with."""
        live = LiveCall(elicit)
        self._calls.append(live)
        token = _current.set(live)
        try:
            yield live
        except Exception:
            if live.failure is None:
                raise
        finally:
            _current.reset(token)
            self._calls.remove(live)
        if live.failure is not None:
            raise live.failure

    async def elicit(self, params: Fields) -> Fields:
        """Return the answer to a question; nobody there to ask counts as cancelled."""
        call = self._call_of_question()
        ask = call.elicit if call and call.elicit else self._otherwise
        if ask is None:
            return CANCELLED
        waiting = [each.patience for each in ([call] if call else self._calls) if each.patience]
        for patience in waiting:
            patience.pause()
        try:
            return await ask(params)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - seam: foreign code asks, and may interrupt a run
            _fail(call, error)
            return CANCELLED
        finally:
            for patience in waiting:
                patience.resume()

    def _call_of_question(self) -> LiveCall | None:
        call = _current.get()
        if call in self._calls:
            return call
        able = [each for each in self._calls if each.elicit]
        return able[0] if len(able) == 1 else None


def _fail(call: LiveCall | None, error: BaseException) -> None:
    if call is None:
        _log.error("asking a person failed", extra={"error": type(error).__name__})
        return
    call.failure = error
    if call.patience is not None:
        call.patience.give_up()
