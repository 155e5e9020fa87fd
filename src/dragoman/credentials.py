"""The interface of the source of authentication headers (`Credentials`), and the refusal it is given
(`Challenge`).

The packages `transports` and `auth`, which both use them, do not import each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct


class Challenge(Struct, frozen=True):
    """The refusal of a message by a server. Its repr is short, because it contains the sent headers."""

    status: int
    """401: the credentials are missing or not valid. 403: they do not permit this request."""
    authenticate: tuple[str, ...] = ()
    """Each `WWW-Authenticate` header as sent, such as `Bearer error="insufficient_scope", scope="files"`;
    headers over the limit of size or number are left out."""
    dpop_nonce: str | None = None
    """`DPoP-Nonce`: the nonce that the next DPoP proof has to contain."""
    sent: Mapping[str, str] = {}
    """All headers of the refused message."""

    def __repr__(self) -> str:
        return f"<Challenge {self.status}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class OutgoingRequest(Struct, frozen=True):
    """The HTTP request that is about to be sent."""

    method: str
    url: str
    body: bytes | None = None

    def __repr__(self) -> str:
        return f"<OutgoingRequest {self.method}>"


class Credentials(Protocol):
    """The source of authentication headers for one server."""

    async def headers(self) -> Mapping[str, str]:
        """The headers for the next message; called before each one."""
        ...

    async def renew(self, challenge: Challenge) -> bool:
        """Called when a server refuses a message; it is sent once more if this returns true.

        False: nothing better can be given (as for a 403, where no more rights can be obtained); the server's
        answer is final. An exception means that the credentials cannot be renewed: a sign-in is needed.
        Messages that were refused with the same headers share one renewal.
        """
        ...


@runtime_checkable
class TracksAcceptance(Protocol):
    """`Credentials` that learn which headers a server has accepted.

    They are renewed up to twice for one message, and must not renew again what was refused at once.
    """

    def accepted(self, headers: Mapping[str, str]) -> None:
        """A message with these headers was not refused."""
        ...


@runtime_checkable
class SignsRequests(Protocol):
    """`Credentials` whose headers depend on the request, as with DPoP."""

    def request_headers(self, headers: Mapping[str, str], request: OutgoingRequest) -> Mapping[str, str]:
        """The headers that are sent with this request instead of `headers`."""
        ...
