"""One connection to one server, kept up by one task: everybody else only asks through it."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Generator
from contextlib import AsyncExitStack, contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeVar

from dialoom.base.errors import MissingExtraError, UsageError
from dialoom.mcp.backoff import Backoff, Budget
from dialoom.mcp.config_fields import McpTimeouts
from dialoom.mcp.errors import NO_FACTS, McpError, McpFacts
from dialoom.mcp.logs import OURS, hush
from dialoom.mcp.patience import Patience
from dialoom.mcp.redact import Redaction

if TYPE_CHECKING:
    import mcp
    from dialoom.mcp.sdk.streams import Link

ConnectionState = Literal["idle", "connecting", "ready", "down", "failed", "closed"]
"""`down`: it will be tried again. `failed`: not before somebody changes something and connects again."""

MOST_STARTS: Final = 5
STARTS_WITHIN: Final = 60.0
"""A server that ends so often within so many seconds is left down until that time has passed."""
DRAIN_SECONDS: Final = 5.0
"""When the session is lost: for the requests that were sent in it."""
CLOSE_MARGIN: Final = 1.0
"""On top of the two waits of closing: for what the operating system takes."""
_WIND_DOWN: Final = 2.0

_log = logging.getLogger("dialoom.mcp")

T = TypeVar("T")


class Route(Protocol):
    """A way to make the connection, once or again."""

    @property
    def redaction(self) -> Redaction:
        """Takes out of texts what this way has to keep secret."""
        ...

    def open(self, link: "Link", *, mode: str) -> "mcp.Client":
        """Return a client of the SDK that will connect when it is entered."""
        ...

    def child(self) -> McpFacts:
        """Return what is known of the server's process, where it is one."""
        ...

    def fallback(self, error: McpError) -> "Route | None":
        """Return another way to try at once after `error`, None when there is no other."""
        ...


class Live:
    """A connection while it is up. `over` is set when everything of it is gone."""

    def __init__(self, client: "mcp.Client", link: "Link") -> None:
        self.client = client
        self.link = link
        self.over = asyncio.Event()
        self._requests = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @contextmanager
    def requesting(self) -> Generator[None]:
        """Hold the connection for a request on its way."""
        self._requests += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._requests -= 1
            if not self._requests:
                self._idle.set()

    async def drained(self, seconds: float) -> None:
        """Wait, at most so long, for the answers to the requests on their way."""
        await _at_most(seconds, self._idle)

    @property
    def usable(self) -> bool:
        return not (self.link.ended.is_set() or self.link.lost.is_set())


class ConnectionListener(Protocol):
    """Who is told how the connection fares. Both are called on the event loop and must not block."""

    def on_state(self, state: ConnectionState, error: McpError | None) -> None: ...

    async def while_ready(self, live: Live) -> None:
        """Run for as long as the connection is up; cancelled when it is over."""
        ...


class Connection:
    """Connects when first asked, again when the connection is lost, and until it is closed.

    It belongs to the event loop of the first call. `close` may be called by any task, more than once, and
    takes no longer than twice the grace and two seconds. A program that forgets to close it still ends.
    """

    def __init__(
        self,
        make_route: Callable[[], Route],
        listener: ConnectionListener,
        *,
        name: str,
        timeouts: McpTimeouts,
        legacy: bool = False,
        rng: random.Random | None = None,
    ) -> None:
        """`make_route` is called once, when connecting for the first time, and may raise `UsageError`.

        `legacy` skips the question for the newest revision, for a server that is known to be older.
        """
        self.name = name
        self.state: ConnectionState = "idle"
        self.error: McpError | None = None
        self._make_route = make_route
        self._route: Route | None = None
        self._listener = listener
        self._timeouts = timeouts
        self._always_legacy = self._legacy = legacy
        self._backoff = Backoff(timeouts.reconnect, timeouts.max_reconnect, rng=rng)
        self._budget = Budget(MOST_STARTS, STARTS_WITHIN)
        self._live: Live | None = None
        self._link: Link | None = None
        self._outcome: asyncio.Future[Live | McpError] | None = None
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._closing = False

    async def connect(self) -> Live:
        """Return the live connection, trying anew at once if there is none. Raises `McpError`."""
        self._check_loop()
        if self._live is None or not self._live.usable:
            self._begin(anew=True)
            self._wake.set()
        return await self.live()

    async def live(self) -> Live:
        """Return the live connection, waiting for one that is being made. Raises `McpError`.

        After a failed attempt it raises that failure at once, though the next attempt is on its way.
        """
        self._check_loop()
        if self._live is not None and self._live.usable:
            return self._live
        outcome = await asyncio.shield(self._begin(anew=False))
        if isinstance(outcome, McpError):
            raise McpError(str(outcome), server=outcome.server, kind=outcome.kind, facts=outcome.facts)
        return outcome

    async def request(self, send: Callable[[Live, Patience], Awaitable[T]], *, bounds: McpTimeouts) -> T:
        """Return what `send` gets. Raises `McpError`.

        What a server refused because it forgot the session is asked once more in a fresh one.
        """
        live = await self.live()
        try:
            return await self._send(live, send, bounds)
        except McpError as error:
            if error.kind != "session":
                raise
        live.link.lost.set()
        return await self._send(await self.live(), send, bounds)

    def diagnostics(self) -> tuple[str, ...]:
        """Return what the server said that is no message: on its output, then on its error output."""
        if self._route is None or self._link is None:
            return ()
        lines = (*self._link.noise, *self._route.child().stderr_tail)
        return tuple(self._route.redaction.text(line) for line in lines)

    async def close(self) -> None:
        """End the connection and everything that belongs to it."""
        self._closing = True
        self._wake.set()
        task = self._task
        if task is None:
            self._settle("closed", self._closed_error())
            return
        if self.state == "connecting":
            task.cancel()  # there is nothing to say goodbye to
        done, _ = await asyncio.wait({task}, timeout=2 * self._timeouts.grace + CLOSE_MARGIN)
        if not done:
            task.cancel()
            await asyncio.wait({task}, timeout=CLOSE_MARGIN)

    def _check_loop(self) -> None:
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if loop is not self._loop:
            raise UsageError(
                f"mcp server {self.name!r} belongs to another event loop; make a client for each"
            )

    def _begin(self, *, anew: bool) -> "asyncio.Future[Live | McpError]":
        """Return the outcome of the attempt that counts, and see to it that somebody makes it."""
        if self._closing:
            raise self._closed_error()
        loop = asyncio.get_running_loop()
        outcome = self._outcome
        if outcome is None or (outcome.done() and (anew or isinstance(outcome.result(), Live))):
            outcome = self._outcome = loop.create_future()
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._supervise(), name=f"mcp {self.name}")
        return outcome

    async def _supervise(self) -> None:
        OURS.set(True)
        try:
            while not self._closing:
                self._wake.clear()
                failure = await self._one_life()
                if failure is not None:
                    self._settle("failed" if failure.lasting else "down", failure)
                    await self._pause(None if failure.lasting else self._backoff.next())
                elif wait := self._budget.wait(_now()):
                    self._settle("down", self._ends_too_often())
                    await self._pause(wait)
        finally:
            self._settle("closed" if self._closing else "down", self._closed_error())

    async def _one_life(self) -> McpError | None:
        """Connect and stay connected; return what went wrong, None when it is to begin anew at once."""
        self._settle("connecting", None)
        try:
            # takes most of a second, which the event loop is spared
            streams = await asyncio.to_thread(import_module, "dialoom.mcp.sdk.streams")
        except ImportError:
            return McpError(str(MissingExtraError("mcp", "mcp")), server=self.name, kind="config")
        hush()  # its loggers are there now
        link: Link = streams.Link()
        self._link = link
        live: Live | None = None
        try:
            async with AsyncExitStack() as stack:
                live = await self._connect(stack, link)
                await self._stay(live)
        except (Exception, BaseExceptionGroup) as error:  # seam: whatever the SDK and what is below it raise
            if _is_cancelled():
                raise asyncio.CancelledError from error
            failure = self._failure(error, starting=live is None)
            return self._other_way(failure) if live is None else failure
        finally:
            if live is not None:
                live.over.set()
        self._budget.spend(_now())
        if link.ended.is_set():
            await self._pause(self._backoff.next())
        return None

    async def _connect(self, stack: AsyncExitStack, link: "Link") -> Live:
        seconds = self._timeouts.connect
        if self._route is None:
            self._route = self._make_route()
        client = self._route.open(link, mode="legacy" if self._legacy else "auto")
        async with Patience(idle=seconds, total=seconds):
            await stack.enter_async_context(client)
        self._legacy = client.session.initialize_result is not None
        self._live = live = Live(client, link)
        self._settle("ready", live)
        return live

    async def _stay(self, live: Live) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._listener.while_ready(live))
                while live.usable and not self._closing:
                    self._wake.clear()
                    await _first(live.link.ended, live.link.lost, self._wake)
                watch.cancel()
            self._live = None
            if live.link.lost.is_set():
                await live.drained(DRAIN_SECONDS)  # the others are told so too, each by its own answer
        finally:
            self._live = None
            live.link.hurry = _is_cancelled()

    def _other_way(self, failure: McpError) -> McpError | None:
        """Return `failure`, None when there is another way that was not tried."""
        fallback = self._route.fallback(failure) if self._route else None
        if fallback is not None:
            self._route = fallback
            return None
        if self._legacy and not self._always_legacy and not failure.undone:
            self._legacy = False  # it may have learned the newest revision since
            return None
        return failure

    async def _send(
        self, live: Live, send: Callable[[Live, Patience], Awaitable[T]], bounds: McpTimeouts
    ) -> T:
        token = OURS.set(True)
        try:
            async with Patience(idle=bounds.idle, total=bounds.total) as patience:
                with live.requesting():
                    result = await send(live, patience)
        except UsageError:
            raise
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - seam: whatever the SDK raises
            if live.link.ended.is_set():
                await _at_most(_WIND_DOWN, live.over)
            _log.debug("a request to an mcp server failed", extra={"error": type(error).__name__})
            # the chain would bring the server's words, unredacted, into every traceback and log
            raise self._failure(error) from None
        finally:
            OURS.reset(token)
        self._backoff.reset()
        return result

    def _failure(self, error: BaseException, *, starting: bool = False) -> McpError:
        from dialoom.mcp.sdk.failures import translated

        redaction = self._route.redaction if self._route else Redaction()
        child = self._route.child() if self._route else NO_FACTS
        return translated(error, server=self.name, redaction=redaction, child=child, starting=starting)

    async def _pause(self, seconds: float | None) -> None:
        await _at_most(seconds, self._wake)

    def _settle(self, state: ConnectionState, result: Live | McpError | None) -> None:
        """Change the state, and let those who wait for an attempt know its result."""
        self.state = state
        if isinstance(result, McpError) and state != "closed":
            self.error = result
        if result is not None:
            if self._outcome is None or self._outcome.done():
                self._outcome = asyncio.get_running_loop().create_future()
            self._outcome.set_result(result)
        self._listener.on_state(state, result if isinstance(result, McpError) else None)

    def _closed_error(self) -> McpError:
        return McpError(
            f"mcp server {self.name!r} was closed; make a new client to connect again",
            server=self.name,
            kind="unavailable",
        )

    def _ends_too_often(self) -> McpError:
        return McpError(
            f"mcp server {self.name!r} ended {MOST_STARTS} times within {STARTS_WITHIN:.0f} s and is left"
            " alone for a while; look at its error output",
            server=self.name,
            kind="unavailable",
        )


async def _first(*events: asyncio.Event) -> None:
    """Wait until one of `events` is set."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _at_most(seconds: float | None, event: asyncio.Event) -> None:
    """Wait for `event`, but not longer than `seconds`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _is_cancelled() -> bool:
    """Whether somebody wants this task to end, as opposed to the SDK cancelling within it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _now() -> float:
    return asyncio.get_running_loop().time()
