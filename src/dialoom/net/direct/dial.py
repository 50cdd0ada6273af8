"""Making a connection: the name looked up, its addresses tried, TLS begun."""

import asyncio
import socket
import ssl
from collections.abc import Sequence

from dialoom.net.direct.connection import Connection
from dialoom.net.direct.place import Place
from dialoom.net.resolve import SystemResolver
from dialoom.net.resolve_addresses import parse_address

HEAD_START_SECONDS = 0.25
"""How long an address is tried before the next one is tried beside it (RFC 8305)."""
MAX_ADDRESSES = 16


async def dial(place: Place, tls: ssl.SSLContext | None) -> Connection:
    """Return a connection to `place`. Raises `OSError`; the caller bounds the time."""
    opened = await _open(await _addresses(place.host), place.port)
    connection = Connection(place)
    try:
        await asyncio.get_running_loop().create_connection(
            lambda: connection, sock=opened, ssl=tls, server_hostname=place.host if tls else None
        )
    except BaseException:
        connection.abort()
        raise
    return connection


async def _addresses(host: str) -> Sequence[str]:
    if parse_address(host) is not None:
        return [host]
    found = alternated(list(dict.fromkeys(await SystemResolver().resolve(host))))
    if not found:
        raise socket.gaierror(socket.EAI_NONAME, "no address")
    return found[:MAX_ADDRESSES]


def alternated(addresses: Sequence[str]) -> list[str]:
    """Return addresses so that the second is of the other family: one of the two may lead nowhere."""
    other = next((each for each in addresses if (":" in each) != (":" in addresses[0])), None)
    rest = [each for each in addresses if each != other]
    return [*rest[:1], *([] if other is None else [other]), *rest[1:]]


async def _open(addresses: Sequence[str], port: int) -> socket.socket:
    """Return a socket connected to the first address that answers; each later one starts a little behind."""
    if len(addresses) == 1:
        return await _open_one(addresses[0], port)
    tries: list[asyncio.Task[socket.socket]] = []
    won: asyncio.Task[socket.socket] | None = None
    try:
        for left in reversed(range(len(addresses))):
            tries.append(asyncio.create_task(_open_one(addresses[len(tries)], port)))
            won = await _first(tries, HEAD_START_SECONDS if left else None)
            if won is not None:
                break
        return (won or tries[0]).result()
    finally:
        await drop([each for each in tries if each is not won])


async def _first(
    tries: Sequence[asyncio.Task[socket.socket]], seconds: float | None
) -> asyncio.Task[socket.socket] | None:
    """Return the first of `tries` that succeeds; None when another is due, or when all have failed."""
    running = {each for each in tries if not each.done()}
    while running:
        done, running = await asyncio.wait(running, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        won = next((each for each in done if each.exception() is None), None)
        if won is not None or seconds is not None:
            return won
    return None


async def drop(tries: Sequence[asyncio.Task[socket.socket]]) -> None:
    """End tries; a socket that came of one after all is closed."""
    for each in tries:
        each.cancel()
    for late in await asyncio.gather(*tries, return_exceptions=True):
        if isinstance(late, socket.socket):
            late.close()


async def _open_one(address: str, port: int) -> socket.socket:
    opened = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        opened.settimeout(0)
        await asyncio.get_running_loop().sock_connect(opened, (address, port))
    except BaseException:
        opened.close()
        raise
    return opened
