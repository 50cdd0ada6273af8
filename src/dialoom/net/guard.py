"""Which URLs may be fetched at all: the policy, and what can be said of a URL from its text alone."""

import re
import unicodedata
from ipaddress import IPv4Address
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

import msgspec

from dialoom.base.errors import DialoomError, UsageError
from dialoom.base.text import one_line
from dialoom.net.address import is_loopback, safe_url
from dialoom.net.resolve_addresses import Address, Network, is_permitted, parse_address, parse_networks
from dialoom.net.transport import HttpTimeouts

UrlRefusal = Literal[
    "scheme",
    "characters",
    "userinfo",
    "port",
    "address",
    "redirects",
    "downgrade",
    "protocol",
    "peer",
    "content_type",
    "size",
]
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
READABLE_TYPES: Final = frozenset(
    {
        "text/*",
        "application/xhtml+xml",
        "application/xml",
        "application/json",
        "application/jsonl",
        "application/x-ndjson",
        "application/pdf",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    }
)
_LONGEST = 8_192
# Controls, white space of any script, what is invisible or turns the text around, backslash, lone surrogates.
_UNUSABLE = re.compile(
    "[\x00-\x20\x7f-\xa0\xad\\\\\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180e\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u3000\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]"
)
_HOST = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"0x[0-9a-f]{0,16}|[0-9]{1,16}")


class UrlRefusedError(DialoomError):
    """A URL, or what it led to, is not allowed. `reason` says which rule; nothing more was read."""

    code = "url_refused"

    def __init__(self, reason: UrlRefusal, message: str) -> None:
        super().__init__(message)
        self.reason: UrlRefusal = reason


class UrlPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What may be fetched. The default lets only public addresses through; each field relaxes one rule.

    Raises `UsageError` for a network that is none or a bound that is not positive.
    """

    schemes: frozenset[str] = frozenset(DEFAULT_PORTS)
    """Of `http` and `https`."""
    ports: frozenset[int] | None = frozenset({80, 443, 8080, 8443})
    """None for any port."""
    userinfo: bool = False
    """Let a URL carry a name and password; they are never sent."""
    allow_networks: tuple[str, ...] = ()
    """Networks that may be reached though they are not public, such as `10.1.0.0/16` or `127.0.0.1/32`."""
    allow_downgrade: bool = False
    """Follow a redirect from https to http."""
    max_redirects: int = 5
    content_types: frozenset[str] = READABLE_TYPES
    """Media types that are read; `text/*` stands for all of one kind."""
    max_bytes: int = 20_000_000
    """Of the body, as sent and as unpacked."""
    timeouts: HttpTimeouts = HttpTimeouts(connect=10.0, read=20.0, total=60.0)
    """`total` bounds the whole fetch with its redirects."""

    def __post_init__(self) -> None:
        self.networks()
        if not self.schemes <= DEFAULT_PORTS.keys():
            raise UsageError(f"schemes are {sorted(self.schemes)}; give http, https or both")
        if self.max_bytes < 1 or self.max_redirects < 0:
            raise UsageError("max_bytes must be 1 or more, and max_redirects 0 or more")

    def networks(self) -> tuple[Network, ...]:
        """`allow_networks`, parsed."""
        try:
            return parse_networks(self.allow_networks)
        except ValueError as error:
            raise UsageError(f"allow_networks: {one_line(str(error))}; write one like 10.1.0.0/16") from error


class UrlTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A URL that its text does not rule out, in parts.

    `host` is in lower case and ASCII, `path` begins with a slash and holds the query, `address` is there
    when the host is an address however it was spelled.
    """

    scheme: str
    host: str
    port: int
    path: str
    address: str | None = None

    @property
    def authority(self) -> str:
        """Host and port as the `Host` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The whole, without user name, password and fragment."""
        return f"{self.scheme}://{self.authority}{self.path}"

    def shown(self) -> str:
        """The URL as it may be shown: without its query."""
        return safe_url(self.url)


def check_url(url: str, policy: UrlPolicy) -> UrlTarget:
    """The parts of a URL that may be looked up. Raises `UrlRefusedError`; asks no network."""
    check_characters(url)
    parts = _split(url)
    if parts.scheme not in policy.schemes:
        allowed = " or ".join(sorted(policy.schemes))
        raise _refused("scheme", url, f"does not begin with {allowed}")
    host = _ascii_host(parts.hostname or "", url)
    address = _literal(host, url)
    if address is not None:
        check_address(address, policy, url)
    if parts.username is not None and not policy.userinfo:
        raise _refused("userinfo", url, "carries a user name; leave it out")
    port = _port(parts, url)
    if policy.ports is not None and port not in policy.ports:
        raise _refused("port", url, f"goes to port {port}, which is not among those allowed")
    return UrlTarget(
        scheme=parts.scheme,
        host=host if address is None else str(address),
        port=port,
        path=f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}",
        address=None if address is None else str(address),
    )


def check_characters(url: str) -> None:
    """Raise `UrlRefusedError("characters")` for a text that is no URL, whatever it begins with."""
    if len(url) > _LONGEST or _UNUSABLE.search(url):
        raise _refused("characters", url, "holds blanks, controls or hidden characters, or is too long")


def check_address(address: Address, policy: UrlPolicy, url: str) -> None:
    """Raise `UrlRefusedError("address")` unless the policy lets `address` be reached."""
    if not is_permitted(address, policy.networks()):
        raise _refused("address", url, "leads to an address that is not public")


def _refused(reason: UrlRefusal, url: str, why: str) -> UrlRefusedError:
    return UrlRefusedError(reason, f"{safe_url(url)!r} was not fetched: it {why}")


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:  # a bracket without its twin, or a character that would become a slash
        raise _refused("characters", url, "is not written as a URL") from error


def _port(parts: SplitResult, url: str) -> int:
    try:
        port = parts.port
    except ValueError as error:
        raise _refused("port", url, "names a port that does not exist") from error
    return DEFAULT_PORTS[parts.scheme] if port is None else port


def _ascii_host(host: str, url: str) -> str:
    """The host as a resolver is asked for it: full-width and other look-alike letters become plain ones."""
    host = unicodedata.normalize("NFKC", host).replace("\u3002", ".").lower().rstrip(".")
    if not host:
        raise _refused("address", url, "names no host")
    if ":" in host:
        return host
    if not host.isascii():
        import httpx2  # knows international names, and is asked only for those

        try:
            host = httpx2.URL(f"http://{host}/").raw_host.decode("ascii")
        except httpx2.InvalidURL as error:
            raise _refused("characters", url, "names a host that does not exist") from error
    if len(host) > 253 or not _HOST.fullmatch(host):
        raise _refused("characters", url, "names a host that does not exist")
    return host


def _literal(host: str, url: str) -> Address | None:
    """The address `host` spells in any way a resolver understands; None for a name."""
    if ":" in host:
        address = parse_address(host)
        if address is None:
            raise _refused("address", url, "names an address that does not exist")
        return address
    if is_loopback(host):  # localhost is this machine, whatever a name server says of it
        return parse_address(host) or IPv4Address("127.0.0.1")
    *front, last = host.split(".")
    if not (last.isdecimal() or _NUMBER.fullmatch(last)):
        return None
    numbers = [_number(part) for part in (*front, last)]
    small = all(number is not None and number < 256 for number in numbers[:-1])
    final = numbers[-1]
    if len(numbers) > 4 or not small or final is None or final >= 256 ** (5 - len(numbers)):
        raise _refused("address", url, "names an address that does not exist")
    top = sum((number or 0) << 8 * (3 - place) for place, number in enumerate(numbers[:-1]))
    return IPv4Address(top + final)


def _number(text: str) -> int | None:
    """A part of an IPv4 address as C reads it: decimal, octal after 0, hexadecimal after 0x."""
    if not _NUMBER.fullmatch(text):
        return None
    try:
        if text.startswith("0x"):
            return int(text[2:] or "0", 16)
        return int(text, 8) if text.startswith("0") else int(text)
    except ValueError:
        return None
