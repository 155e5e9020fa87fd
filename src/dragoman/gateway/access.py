"""Who may use the gateway over HTTP: which hosts and origins a request may name, and which caller a token
stands for. Pure but for the creation of tokens.

Everything fails closed: a request without a valid token is refused before it is read.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final

from msgspec import Struct

from dragoman.addresses import parse_address
from dragoman.interaction import Caller

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Refused(Exception):
    """A request is refused with this status."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = dict(headers or {})


class Addresses(Struct, frozen=True):
    """The names by which the gateway is reached."""

    hosts: frozenset[str]
    """Values of the header `Host`, in small letters, with the port."""
    origins: frozenset[str]
    """Values of the header `Origin` of pages that may use it."""

    @classmethod
    def of(cls, host: str, port: int, more_hosts: Collection[str] = ()) -> Addresses:
        """Those of a gateway that listens here. `more_hosts`: public names, with a port if it is unusual."""
        bare = f"[{host}]" if ":" in host else host
        names = set(LOOPBACK_NAMES) if is_loopback(host) else {bare.lower()}
        hosts = {f"{name}:{port}" for name in names}
        hosts |= names if port == 80 else set()
        hosts |= {name.lower() for name in more_hosts}
        origins = {f"{scheme}://{name}" for name in hosts for scheme in ("http", "https")}
        return cls(frozenset(hosts), frozenset(origins))

    def check(self, host: str | None, origin: str | None) -> None:
        """`Refused` for a request that names another host, or comes from another page: one that was made to
        reach this machine by DNS rebinding, or by a page that a person has open."""
        if host is None or host.lower() not in self.hosts:
            raise Refused(421, "the header Host names another server")
        if origin is not None and origin.lower() not in self.origins:
            raise Refused(403, "the header Origin names a page that may not use this gateway")


def is_loopback(host: str) -> bool:
    address = parse_address(host)
    return host == "localhost" if address is None else address.is_loopback


Identify = Callable[[Collection[str]], Awaitable[Caller]]
"""The caller of a request, from its headers `Authorization`; raises `Refused` if there is none."""
Verify = Callable[[str], Awaitable["Caller | None"]]
"""The caller that a token stands for; None if it stands for none."""


class BearerTokens:
    """Callers that are known by a fixed token each."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        """`tokens`: the caller's id → its token."""
        self._tokens = {caller: token.encode() for caller, token in tokens.items()}

    async def __call__(self, token: str) -> Caller | None:
        given = token.encode(errors="surrogateescape")
        found = [caller for caller, known in self._tokens.items() if hmac.compare_digest(known, given)]
        return Caller(found[0]) if found else None


def with_token(verify: Verify, challenge: str = "Bearer") -> Identify:
    """Admits requests with a valid bearer token."""
    headers = {"WWW-Authenticate": challenge}

    async def identify(authorization: Collection[str]) -> Caller:
        if len(authorization) != 1:
            raise Refused(401, "one header Authorization with a bearer token is needed", headers)
        scheme, _, token = next(iter(authorization)).partition(" ")
        try:
            caller = await verify(token.strip()) if scheme.lower() == "bearer" else None
        except Exception:  # border: whatever the check of a token raises admits no request
            raise Refused(503, "tokens cannot be checked now") from None
        if caller is None:
            raise Refused(401, "the bearer token is not valid", headers)
        return caller

    return identify
