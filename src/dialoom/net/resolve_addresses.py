"""Which IP addresses belong to the public internet, by a table of our own.

`ipaddress.is_global` lets through wrapped IPv4 addresses, multicast and a cloud's metadata address, and
changes with the version of Python.
"""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_CLOSED_V4: Final = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared by carriers; one cloud's metadata
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's host agent, in public space
        "169.254.0.0/16",  # link-local, most clouds' metadata
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments, one cloud's metadata
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_OPEN_V6: Final = IPv6Network("2000::/3")
_CLOSED_V6: Final = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments, Teredo
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = IPv6Network("::/96")


def parse_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """The networks of texts such as `10.0.0.0/8`. Raises `ValueError` for one that is none."""
    return tuple(ip_network(text) for text in texts)


def parse_address(text: str) -> Address | None:
    """The address a text spells in the usual way, without a zone; None for any other text."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return None if isinstance(address, IPv6Address) and address.scope_id else address


def is_permitted(address: Address, extra: Sequence[Network] = ()) -> bool:
    """Whether `address`, and the IPv4 address inside of it if any, is public or in one of the networks."""
    return all(_is_public(face) or any(face in network for network in extra) for face in _faces(address))


def plain(address: Address) -> Address:
    """The IPv4 address that a mapped one stands for; any other address as it is."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _faces(address: Address) -> tuple[Address, ...]:
    """What a packet to `address` may reach: itself, and where a translator or tunnel would send it."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    low = IPv4Address(int(address) & 0xFFFF_FFFF)
    if address in _NAT64:  # the usual way out of a network without IPv4
        return (low,)
    if address.sixtofour is not None:
        return (address, address.sixtofour)
    if address.teredo is not None:
        return (address, address.teredo[1])
    return (address, low) if address in _COMPATIBLE and int(low) > 1 else (address,)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _CLOSED_V4)
    return address in _OPEN_V6 and not any(address in network for network in _CLOSED_V6)
