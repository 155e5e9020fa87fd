"""Adds authentication headers to messages, and renews them when a server refuses them.

After a 401 or 403 a message is sent once more if its credentials could be renewed (`send_signed`, for all
transports). Messages that were refused with the same headers share one renewal. The source of the headers is
passed in (`Credentials`). Their values never appear in an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

import aiohttp

from dragoman.cleaning import one_line
from dragoman.credentials import Challenge, Credentials
from dragoman.errors import ConnectError
from dragoman.transports.base import TransportFailure
from dragoman.transports.web import RequestFailed

if TYPE_CHECKING:
    from multidict import CIMultiDictProxy

REFUSALS: Final = (401, 403)
CHALLENGE_LIMIT: Final = 16
CHALLENGE_BYTES: Final = 8192


class NoCredentials(RequestFailed):
    """The authentication headers could not be obtained; nothing was sent."""

    def __init__(self, cause: str, hint: str | None = None) -> None:
        super().__init__(
            TransportFailure(
                "status", one_line(cause, 500), may_have_run=False, hint=hint, status=401, was_sent=False
            )
        )


class Signed(NamedTuple):
    headers: Mapping[str, str]
    turn: int
    """How often credentials had been renewed by then."""


class Signer:
    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._first: Mapping[str, str] | NoCredentials | None = None
        """The headers, or the error, of `prepare`, until they are used."""
        self._turn = 0
        self._failure: NoCredentials | None = None
        """Why the last renewal failed."""
        self._renewing = asyncio.Lock()
        self._last: Mapping[str, str] = {}

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that a server may repeat and that must not be shown."""
        return tuple(self._last.values())

    async def prepare(self) -> None:
        """Obtains headers in advance, so that the time it takes does not count for the server."""
        try:
            self._first = await self._ask()
        except NoCredentials as error:
            self._first = error

    async def sign(self, headers: Mapping[str, str]) -> Signed:
        own, self._first = self._first, None
        if own is None:
            own = await self._ask()
        if isinstance(own, NoCredentials):
            raise own
        return Signed(with_overrides(headers, own), self._turn)

    async def sign_again(
        self, headers: Mapping[str, str], refused: Signed, challenge: Challenge
    ) -> Signed | None:
        """For a message that was refused; None if there is nothing better to send."""
        async with self._renewing:
            if refused.turn == self._turn and not await self._renew(challenge):
                return None
            if self._failure is not None:
                raise self._failure
        return await self.sign(headers)

    async def _renew(self, challenge: Challenge) -> bool:
        """Whether the credentials are others than before, or there are none now (`_failure`)."""
        try:
            if not await self._credentials.renew(challenge):
                return False
        except Exception as error:  # border: the source of credentials is other code
            self._failure = _told(error)
        self._turn += 1  # not reached when cancelled: then the next message asks
        return True

    async def _ask(self) -> Mapping[str, str]:
        try:
            self._last = await self._credentials.headers()
        except Exception as error:  # border: the source of credentials is other code
            raise _told(error) from error
        self._failure = None
        return self._last


def _told(error: Exception) -> NoCredentials:
    if isinstance(error, ConnectError):  # made for people, and without secrets
        return NoCredentials(error.cause, error.hint)
    return NoCredentials(f"no credentials could be obtained: {type(error).__name__}")


class ResponseLike(Protocol):
    """The part of a response that is read here, for transports that have none, such as WebSocket."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> CIMultiDictProxy[str]: ...

    def close(self) -> None:
        """It is not needed any more."""
        ...


Answer = TypeVar("Answer", bound=aiohttp.ClientResponse | ResponseLike)


async def send_signed(
    signer: Signer | None,
    headers: Mapping[str, str],
    send: Callable[[Mapping[str, str]], Awaitable[Answer]],
) -> Answer:
    """The answer to a message, after at most one renewal of credentials.

    `send` sends the message with the headers it is given. A refusal that no renewal helps against is
    returned like any other answer.
    """
    if signer is None:
        return await send(headers)
    signed = await signer.sign(headers)
    answer = await send(signed.headers)
    if answer.status not in REFUSALS:
        return answer
    try:
        again = await signer.sign_again(headers, signed, challenge_in(answer, signed.headers))
    except BaseException:
        answer.close()
        raise
    if again is None:
        return answer
    answer.close()
    return await send(again.headers)


def challenge_in(answer: aiohttp.ClientResponse | ResponseLike, sent: Mapping[str, str]) -> Challenge:
    values = [each for each in answer.headers.getall("WWW-Authenticate", ()) if len(each) <= CHALLENGE_BYTES]
    nonce = answer.headers.get("DPoP-Nonce")
    return Challenge(
        answer.status,
        tuple(values[:CHALLENGE_LIMIT]),
        nonce if nonce is not None and len(nonce) <= CHALLENGE_BYTES else None,
        dict(sent),
    )


def secrets_of(headers: Mapping[str, str], signer: Signer | None) -> tuple[str, ...]:
    """Values of headers and credentials, which a server may repeat and which must not be shown."""
    return (*headers.values(), *(() if signer is None else signer.secrets))


def with_overrides(headers: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The headers with these set, however their names were spelled before."""
    names = {name.lower() for name in own}
    return {name: value for name, value in headers.items() if name.lower() not in names} | dict(own)
