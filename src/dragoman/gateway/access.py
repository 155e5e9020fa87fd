"""Access control of the gateway over HTTP: checks the host and origin that a request names, and identifies
its caller.

Everything fails closed: a request without a valid token is refused before it is read.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct, structs

from dragoman.addresses import parse_address
from dragoman.gateway.settings import EVERYTHING, CallerEntry, Rights
from dragoman.interaction import LOCAL_CALLER, Caller

WRONG_PATH: Final = (
    "this caller may not use this path, and another sign-in does not change that; "
    "use the path of a view: /mcp/NAME"
)
LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


class RequestRefused(Exception):
    """A request is refused with this status."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = dict(headers or {})


class KnownCaller(Struct, frozen=True):
    """A caller that was identified, and what it may use."""

    caller: Caller
    selections: tuple[Rights, ...] = (EVERYTHING,)
    """The rights of the caller: it may use what any one of them contains."""
    calls_per_minute: int | None = None

    @property
    def rights(self) -> tuple[Rights, ...]:
        """The selections without tokens."""
        return tuple(Rights(each.servers, each.tools, each.views) for each in self.selections)

    @property
    def key(self) -> str:
        """A key that is the same for the same caller with the same rights, in every replica."""
        return f"{hashlib.sha256(msgspec.json.encode(self.selections)).hexdigest()[:16]} {self.caller.id}"

    def at(self, view: str) -> KnownCaller:
        """The caller with the rights that it has in a view, or outside of every view; `RequestRefused` if it
        may not use the path."""
        held = [each for each in self.selections if each.apply_at(view)]
        if len(held) == len(self.selections):
            return self
        if not held:
            raise RequestRefused(403, WRONG_PATH)
        return structs.replace(self, selections=tuple(held))


LOCAL: Final = KnownCaller(LOCAL_CALLER)


class Addresses(Struct, frozen=True):
    """The names by which the gateway is reached."""

    hosts: frozenset[str] = frozenset()
    """Values of the header `Host`, in lower case, with the port."""
    origins: frozenset[str] = frozenset()
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

    def check(self, hosts: Sequence[str], origins: Sequence[str]) -> None:
        """`RequestRefused` for a request that names another host, or comes from another page: one that was
        made to reach this machine by DNS rebinding, or by a page that a person has open."""
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            raise RequestRefused(421, "the header Host names another server")
        if origins and any(origin.lower() not in self.origins for origin in origins):
            raise RequestRefused(403, "the header Origin names a page that may not use this gateway")


def is_loopback(host: str) -> bool:
    address = parse_address(host)
    return host == "localhost" if address is None else address.is_loopback


Identify = Callable[[Sequence[str]], Awaitable[KnownCaller]]
"""The caller of a request, from its headers `Authorization`; raises `RequestRefused` if there is none."""
Verify = Callable[[str], Awaitable[KnownCaller | None]]
"""Returns the caller of a token; None if the token is not valid."""


def fixed_tokens(callers: Mapping[str, CallerEntry]) -> Verify:
    """Callers that are known by a fixed token each."""
    known = [
        (entry.token.encode(), KnownCaller(Caller(name), (entry,), entry.calls_per_minute))
        for name, entry in callers.items()
    ]

    async def verify(token: str) -> KnownCaller | None:
        given = token.encode(errors="surrogateescape")
        found = [caller for own, caller in known if hmac.compare_digest(own, given)]
        return found[0] if found else None

    return verify


def with_token(*verifiers: Verify, challenge: str = "Bearer") -> Identify:
    """Admits requests with a bearer token that one of these knows."""
    headers = {"WWW-Authenticate": challenge}

    async def identify(authorization: Sequence[str]) -> KnownCaller:
        if len(authorization) != 1:
            raise RequestRefused(401, "one header Authorization with a bearer token is needed", headers)
        scheme, _, token = authorization[0].partition(" ")
        if scheme.lower() == "bearer":
            try:
                for verify in verifiers:
                    found = await verify(token.strip())
                    if found is not None:
                        return found
            except Exception:  # border: if the check of a token raises, the request is refused
                raise RequestRefused(503, "tokens cannot be checked now") from None
        raise RequestRefused(401, "the bearer token is not valid", headers)

    return identify
