"""Classifies network addresses: public, private, or never contacted when a server names them. Pure.

Used where a server, or a list of servers, names the address (protection against SSRF). An IPv6 address that
contains an IPv4 address is judged as that one.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address

_NEVER: Final = tuple(
    ip_network(each)
    for each in (
        "169.254.0.0/16",
        "fe80::/10",
        "fd00:ec2::/32",  # metadata services of Amazon
        "fd20:ce::/32",  # of Google
        "100.100.100.200/32",  # of Alibaba
        "168.63.129.16/32",  # of Azure
        "0.0.0.0/8",
        "::/128",
        "224.0.0.0/4",
        "ff00::/8",
        "255.255.255.255/32",
    )
)
_NAT64: Final = bytes.fromhex("0064ff9b0000000000000000")
"""The first bytes of an IPv6 address that represents the IPv4 address behind it (RFC 6052)."""
_UNICAST: Final = IPv6Network("2000::/3")
"""The range of all global unicast IPv6 addresses. Outside it are forms that carry an IPv4 address
(`::127.0.0.1`, `::ffff:0:127.0.0.1`) and addresses of one site, not all of which `is_global` knows."""


def parse_address(host: str) -> Address | None:
    """The address in the host part of a canonical URL; None for a name."""
    try:
        address = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    if address.packed.startswith(_NAT64):
        return IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour or address


def is_public(address: Address) -> bool:
    """Whether the address can be reached from anywhere."""
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return False
    return address.is_global and not address.is_multicast


def why_forbidden(addresses: Iterable[Address], *, allow_private: bool) -> str | None:
    """Why a host with these addresses is not contacted; None if it may be. One forbidden address is
    enough."""
    for address in addresses:
        if any(address in network for network in _NEVER if network.version == address.version):
            return "it has an address of a local or cloud metadata service"
        if not allow_private and not is_public(address):
            return "it has an address in a private network, and the server itself has none"
    return None
