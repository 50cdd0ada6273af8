"""Which server a request goes to, and what it says there."""

import re
from collections.abc import Mapping

import msgspec

from dialoom.net.address import split_url
from dialoom.net.transport import HttpRequest

_METHODS = frozenset({"DELETE", "GET", "PATCH", "POST", "PUT"})
_WITH_BODY = frozenset({"PATCH", "POST", "PUT"})
_FRAMED_BY_CALLER = frozenset(
    {"connection", "content-length", "expect", "te", "transfer-encoding", "upgrade"}
)
_MOST_LETTERS = 8_192
_HOST = re.compile(r"[0-9A-Za-z_.-]{1,253}|[0-9A-Fa-f:.]{2,45}")
_TARGET = re.compile(r"(?:[0-9A-Za-z\-_~!$&'()*+,;=:@/?]|%[0-9A-F]{2}|(?<![/.])\.)*")
"""Paths that every client writes the same: nothing to be quoted, no dots to be folded."""
_DEFAULTS: Mapping[str, str] = {"accept": "*/*", "connection": "keep-alive", "user-agent": "dialoom"}
_PORTS = {"http": 80, "https": 443}


class Place(msgspec.Struct, frozen=True):
    """A server: the host without brackets."""

    host: str
    port: int
    tls: bool

    @property
    def scheme(self) -> str:
        return "https" if self.tls else "http"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def place_of(request: HttpRequest) -> Place | None:
    """Return where a plain request goes; None for one that needs a client of more parts.

    Raises `UsageError` for an address that is none.
    """
    parts = split_url(request.url)
    host = (parts.hostname or "").lower()
    headers = {name.lower() for name in request.headers}
    plain = (
        request.method in _METHODS
        and len(request.url) <= _MOST_LETTERS
        and "@" not in parts.netloc
        and not headers & _FRAMED_BY_CALLER
        and _HOST.fullmatch(host)
        and _TARGET.fullmatch(_target_of(request.url))
    )
    return Place(host, parts.port or _PORTS[parts.scheme], parts.scheme == "https") if plain else None


def request_bytes(request: HttpRequest, place: Place, headers: Mapping[str, str]) -> bytes:
    """Return the request as it is sent to its place."""
    lines = {"host": str(place), **_DEFAULTS, **headers}
    if request.body or request.method in _WITH_BODY:
        lines["content-length"] = str(len(request.body))
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{request.method} {_target_of(request.url)} HTTP/1.1\r\n{head}\r\n".encode("ascii") + request.body


def _target_of(url: str) -> str:
    parts = split_url(url)
    path = parts.path or "/"
    return f"{path}?{parts.query}" if parts.query else path
