from ipaddress import ip_address

import pytest

from dragoman.addresses import is_public, parse_address, why_forbidden
from dragoman.urls import parse_url

PRIVATE = "it has an address in a private network, and the server itself has none"
NEVER = "it has an address of a local or cloud metadata service"

HOSTS: dict[str, str | None] = {
    "93.184.216.34": None,
    "[2606:2800:220:1::1]": None,
    "127.1": PRIVATE,
    "2130706433": PRIVATE,
    "0x7f000001": PRIVATE,
    "[::ffff:127.0.0.1]": PRIVATE,
    "[::127.0.0.1]": PRIVATE,
    "[::ffff:0:127.0.0.1]": PRIVATE,
    "[64:ff9b::127.0.0.1]": PRIVATE,
    "[2002:7f00:1::]": PRIVATE,
    "[fec0::1]": PRIVATE,
    "[fc00::1]": PRIVATE,
    "10.0.0.1": PRIVATE,
    "172.31.255.255": PRIVATE,
    "192.168.1.1": PRIVATE,
    "100.64.0.1": PRIVATE,
    "198.18.0.1": PRIVATE,
    "0": NEVER,
    "0.1.2.3": NEVER,
    "[::]": NEVER,
    "169.254.169.254": NEVER,
    "[64:ff9b::a9fe:a9fe]": NEVER,
    "[::ffff:169.254.169.254]": NEVER,
    "[fe80::1]": NEVER,
    "[fd00:ec2::254]": NEVER,
    "168.63.129.16": NEVER,
    "100.100.100.200": NEVER,
    "224.0.0.1": NEVER,
    "[ff02::1]": NEVER,
    "255.255.255.255": NEVER,
}


@pytest.mark.requirement("AUT-1")
@pytest.mark.parametrize("host", HOSTS)
def test_which_addresses_may_be_contacted_for_a_public_server(host: str):
    address = parse_address(parse_url(f"https://{host}/").host)
    assert address is not None
    assert why_forbidden([address], allow_private=False) == HOSTS[host]
    assert why_forbidden([address], allow_private=True) == (NEVER if HOSTS[host] == NEVER else None)
    assert is_public(address) == (HOSTS[host] is None or host == "168.63.129.16")


def test_one_forbidden_address_is_enough():
    good, bad = ip_address("93.184.216.34"), ip_address("10.0.0.1")
    assert why_forbidden([good, bad], allow_private=False) == PRIVATE
    assert why_forbidden([good, bad], allow_private=True) is None
    assert why_forbidden([], allow_private=False) is None


@pytest.mark.parametrize("host", ["a.example", "localhost", "1.2.3", "x::", ""])
def test_a_host_name_is_not_an_address(host: str):
    assert parse_address(host) is None
