"""Names become addresses once, every answer is checked, and the connection goes to one that was checked."""

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread
from typing import Protocol

import msgspec

from dialoom.base.text import one_line
from dialoom.net.guard import UrlPolicy, UrlRefusedError, UrlTarget, check_address
from dialoom.net.resolve_addresses import parse_address

_MOST_ADDRESSES = 64


class Resolver(Protocol):
    """Looks names up. Raises `OSError` for one that it cannot find."""

    async def resolve(self, host: str) -> Sequence[str]:
        """Every address of `host`, the preferred one first."""
        ...


class SystemResolver:
    """Asks the system, hosts file and name servers alike."""

    async def resolve(self, host: str) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[str] | OSError] = loop.create_future()

        def look_up() -> None:
            try:
                found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
                result: list[str] | OSError = [str(each[4][0]) for each in found]
            except OSError as error:
                result = error
            except UnicodeError:  # how Python says that a part of a name is empty or too long
                result = OSError("not a name")
            with suppress(RuntimeError):  # nobody waits any more and the loop is closed
                loop.call_soon_threadsafe(_answer, answer, result)

        # a look-up cannot be stopped; a thread of its own holds up neither the executor nor the exit
        Thread(target=look_up, name="dialoom-resolve", daemon=True).start()
        result = await answer
        if isinstance(result, OSError):
            raise result
        return result


class UrlResolution(msgspec.Struct, frozen=True, kw_only=True):
    """One request that passed the checks: connect to `address` and to no other, whatever the name says."""

    target: UrlTarget
    address: str


async def resolve_target(target: UrlTarget, policy: UrlPolicy, resolver: Resolver) -> list[UrlResolution]:
    """Look `target` up once; its checked addresses in the order they are to be tried.

    Raises `UrlRefusedError("address")` when one of them is not allowed, or there is none.
    """
    if target.address is not None:  # checked with the text
        return [UrlResolution(target=target, address=target.address)]
    try:
        answers = list(await resolver.resolve(target.host))[:_MOST_ADDRESSES]
    except OSError as error:
        raise _nowhere(target, one_line(str(error), 80)) from error
    if not answers:
        raise _nowhere(target, "the answer is empty")
    resolutions: dict[str, UrlResolution] = {}
    for text in answers:
        address = parse_address(text)
        if address is None:
            raise _nowhere(target, "the answer is no usable address")
        check_address(address, policy, target.url)
        resolutions.setdefault(str(address), UrlResolution(target=target, address=str(address)))
    return list(resolutions.values())


def _nowhere(target: UrlTarget, why: str) -> UrlRefusedError:
    return UrlRefusedError("address", f"the host {target.host} has no address ({why}); check the name")


def _answer(future: "asyncio.Future[list[str] | OSError]", result: list[str] | OSError) -> None:
    if not future.done():
        future.set_result(result)
