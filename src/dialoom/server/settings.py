"""How a server is reached, what it holds where, and its bounds."""

import re
from pathlib import Path

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.net.address import is_loopback

MIN_TOKEN = 16
DEFAULT_PORT = 8321
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\]")
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


class RateLimit(msgspec.Struct, frozen=True):
    """`per_second` calls go on for ever, `burst` at once."""

    per_second: float
    burst: int

    def __post_init__(self) -> None:
        if not self.per_second > 0 or self.burst < 1:
            raise UsageError("a rate limit needs more than 0 calls a second and a burst of 1 or more")


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Frozen choices of one server. Raises `UsageError` for what would leave it open or unreachable.

    `token` is what machines send as bearer and what browser cookies are signed with. `host` is the address
    to listen at; `allowed_hosts` are further names people may reach it by, such as that of a proxy, each with
    its port unless that is the scheme's own. An address that is not this machine's own needs at least one.
    """

    token: str
    data: Path
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    allowed_hosts: tuple[str, ...] = ()
    secure: bool = False
    """People come over https, through a proxy: cookies are marked so, and origins are `https://`."""
    max_body: int = 4 * 1024 * 1024
    """Bytes of a JSON body."""
    max_import: int = 32 * 1024 * 1024
    """Bytes of a conversation file."""
    max_file: int = 64 * 1024 * 1024
    """Bytes of one uploaded file."""
    max_files: int = 10 * 1024 * 1024 * 1024
    """Bytes of all uploaded files together."""
    calls: RateLimit = RateLimit(100, 400)
    """For each browser or machine."""
    logins: RateLimit = RateLimit(0.2, 10)
    """For everyone together: a token is not to be guessed."""
    runs: RateLimit = RateLimit(5, 30)
    """Answers that may be started, for each browser or machine."""
    max_streams: int = 1_000
    """Event streams open at once, those of AG-UI among them."""
    max_connections: int = 1_500
    """Connections open at once, streams among them: what is above `max_streams` is left for calls."""
    approval_seconds: float | None = None
    """How long an approval waits for a person before it expires; None is for as long as the center says."""
    session_days: int = 30

    def __post_init__(self) -> None:
        if len(self.token) < MIN_TOKEN or not self.token.isascii() or not self.token.isprintable():
            raise UsageError(f"the server's token needs {MIN_TOKEN} or more printable ASCII characters")
        if not 0 <= self.port < 65_536:
            raise UsageError(f"{self.port} is no port; use 1 to 65535, or 0 for any that is free")
        if not is_loopback(self.host) and not self.allowed_hosts:
            raise UsageError(
                f"{one_line(self.host, 80)} is not this machine's own address; name the hosts people use "
                "with allowed_hosts"
            )
        if not 0 < self.max_streams < self.max_connections:
            raise UsageError(
                f"{self.max_streams} streams leave none of {self.max_connections} connections for calls; "
                "choose fewer streams, 1 or more, or more connections"
            )
        for each in self.allowed_hosts:
            name, _, port = each.rpartition(":") if each.rpartition(":")[2].isdigit() else (each, "", "")
            if not _NAME.fullmatch(name) or (port and int(port) > 65_535):
                raise UsageError(
                    f"{one_line(repr(each), 80)} is no host; write it like chat.example.org or [::1]:8321"
                )

    def __repr__(self) -> str:
        return f"ServerSettings(host={self.host!r}, port={self.port}, data={str(self.data)!r}, token=set)"

    @property
    def hosts(self) -> frozenset[str]:
        """Return every `Host` header that is answered."""
        own = {_bracketed(self.host), *(_LOOPBACK_NAMES if is_loopback(self.host) else ())}
        suffix = "" if self.port == (443 if self.secure else 80) else f":{self.port}"
        return frozenset([*(f"{name}{suffix}" for name in own), *self.allowed_hosts])

    @property
    def origins(self) -> frozenset[str]:
        """Return every origin whose pages may call."""
        scheme = "https" if self.secure else "http"
        return frozenset(f"{scheme}://{host}" for host in self.hosts)

    @property
    def cookie(self) -> str:
        """Return the cookie's name: browsers share cookies between ports, so it holds the port."""
        return f"dialoom_{self.port}"

    @property
    def url(self) -> str:
        """Return where people find it."""
        scheme = "https" if self.secure else "http"
        if self.allowed_hosts and not is_loopback(self.host):
            return f"{scheme}://{self.allowed_hosts[0]}"
        return f"{scheme}://{_bracketed(self.host)}:{self.port}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host.lower()
