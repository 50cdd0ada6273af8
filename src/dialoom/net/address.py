"""Where a URL points to, asked without any network."""

import ipaddress
from urllib.parse import SplitResult, urlsplit

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line


def split_url(url: str) -> SplitResult:
    """Return the parts of an absolute http or https URL. Raises `UsageError` on any other text."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _unusable(url) from error
    broken = any(ord(char) <= 0x20 or ord(char) == 0x7F for char in url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0 or broken:
        raise _unusable(url)
    return parts


def is_loopback(host: str) -> bool:
    """Whether `host` names this machine itself, as far as its text says."""
    name = host.lower().rstrip(".").strip("[]")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def safe_url(url: str) -> str:
    """Return `url` as it may be shown: without user name, password, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if not parts.netloc:
        return one_line(url.partition("?")[0].rpartition("@")[2], 60)
    place = parts.netloc.rpartition("@")[2]
    return one_line(f"{parts.scheme}://{place}{parts.path}")


def _unusable(url: str) -> UsageError:
    return UsageError(f"{safe_url(url)!r} is no http address; write one like http://127.0.0.1:11434/v1")
