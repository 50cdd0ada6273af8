"""Being told of changes by a server of either era, for as long as one connection lives."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, Final

from mcp.client.subscriptions import Subscription, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND, ServerCapabilities

from dialoom.mcp.backoff import Backoff
from dialoom.mcp.changes import KINDS, ListChanges
from dialoom.mcp.connection import Live
from dialoom.mcp.patience import Patience
from dialoom.mcp.sdk.verbs import is_modern, subscribe
from dialoom.mcp.subscriptions import Wanted

ACK_SECONDS: Final = 15.0
_log = logging.getLogger("dialoom.mcp")


async def keep_told(live: Live, wanted: Wanted, changes: ListChanges, *, backoff: Backoff) -> None:
    """See to it that notices come; ends when that needs no more work, or the server has none.

    An older server is told once for each connection, a newer one is listened to for ever.
    """
    if not is_modern(live):
        await _subscribe_again(live, wanted)
        return
    wanted.begin()
    gap = False
    while True:
        wanted.changed.clear()
        filters = _filters(live.client.server_capabilities, wanted)
        if not filters:
            await wanted.changed.wait()
            continue
        missed = changes if gap else None
        if not await _listen(_hear(live, filters, wanted, backoff=backoff, missed=missed), wanted):
            return
        if not wanted.changed.is_set():
            gap = True
            await asyncio.sleep(backoff.next())


async def _listen(stream: Coroutine[Any, Any, bool], wanted: Wanted) -> bool:
    """Listen until the stream ends or something else is wanted; return whether to listen again."""
    hearing = asyncio.ensure_future(stream)
    change = asyncio.ensure_future(wanted.changed.wait())
    try:
        await asyncio.wait({hearing, change}, return_when=asyncio.FIRST_COMPLETED)
        return hearing.result() if hearing.done() else True
    finally:
        change.cancel()
        hearing.cancel()
        await asyncio.wait({hearing, change})


async def _hear(
    live: Live, filters: dict[str, Any], wanted: Wanted, *, backoff: Backoff, missed: ListChanges | None
) -> bool:
    """Hear one stream to its end; return whether there may be another. `missed` is told of the gap before."""
    try:
        async with AsyncExitStack() as stack:
            async with Patience(idle=ACK_SECONDS, total=ACK_SECONDS):
                heard: Subscription = await stack.enter_async_context(live.client.listen(**filters))
            granted = frozenset(heard.honored.resource_subscriptions or ())
            await wanted.grant(filters.get("resource_subscriptions", ()), granted)
            if missed is not None:
                missed.mark(*KINDS)
            async for _ in heard:
                backoff.reset()  # what was heard reached the handler of notices by itself
    except MCPError as error:
        if error.code in {METHOD_NOT_FOUND, INVALID_PARAMS}:
            await wanted.refuse("it tells of no changes")
            return False
    except (SubscriptionLost, TimeoutError) as error:
        _log.debug("a subscription broke", extra={"error": type(error).__name__})
    return True


async def _subscribe_again(live: Live, wanted: Wanted) -> None:
    for uri in tuple(wanted.uris):
        try:
            async with Patience(idle=ACK_SECONDS, total=ACK_SECONDS):
                await subscribe(live, uri)
        except (MCPError, TimeoutError) as error:
            _log.warning("a subscription was not taken again", extra={"error": type(error).__name__})


def _filters(able: ServerCapabilities, wanted: Wanted) -> dict[str, Any]:
    """Return what to listen for, by the names of the SDK; empty when there is nothing to hear."""
    filters: dict[str, Any] = {
        f"{kind}_list_changed": True for kind in KINDS if getattr(getattr(able, kind), "list_changed", False)
    }
    if wanted.uris:
        filters["resource_subscriptions"] = tuple(wanted.uris)
    return filters
