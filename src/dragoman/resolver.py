"""Resolves names for aiohttp in threads of their own: name servers that do not answer delay nothing else."""

from __future__ import annotations

import socket
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from dragoman.own_threads import resolve


class Resolver(AbstractResolver):
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await resolve(host, port, family=family, flags=socket.AI_ADDRCONFIG)
        return [
            ResolveResult(
                hostname=host,
                host=_with_scope(address),
                port=port,
                family=socket.AddressFamily(kind),
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        return


def _with_scope(address: tuple[Any, ...]) -> str:
    """The address; a link-local IPv6 address with its scope."""
    host, scope = str(address[0]), (*address, 0, 0)[3]
    return f"{host}%{scope}" if scope and "%" not in host else host
