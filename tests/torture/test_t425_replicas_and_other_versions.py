"""T425: a grant in Redis written by another version of the gateway does not keep a revoked one valid; an
empty command does not disturb a local gateway."""

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from dragoman.cli.local_gateway.server import LocalGateway, RequestedCall, _Declined
from dragoman.gateway.replicas import GrantsChanged, Replicas

pytestmark = pytest.mark.requirement("GWY-4")
KEY = ("desk", "add", None, "ada")


async def test_t425_grants_of_another_version_are_ignored():
    async def stored() -> list[bytes]:
        return [b'{"of": "another version"}', msgspec.json.encode((KEY, "digest"))]

    kept = list[Any]()
    grants = SimpleNamespace(replace_all=kept.append)
    gateway: Any = SimpleNamespace(host=SimpleNamespace(servers={}, grants=lambda: grants))
    store: Any = SimpleNamespace(replica="this", grants=stored)
    replicas: Any = Replicas(gateway, store)
    replicas._take("other", GrantsChanged())
    await asyncio.gather(*replicas._tasks.values())
    assert kept == [{KEY: "digest"}]


async def test_t425_an_empty_command_is_declined():
    gateway: Any = LocalGateway.__new__(LocalGateway)
    with pytest.raises(_Declined):
        gateway._find_tool(RequestedCall())
