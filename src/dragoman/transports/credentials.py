"""Authentication headers for HTTP requests: obtains them, adds them to a message's headers, and renews them.

After a 401 a message is sent once more with renewed headers. Messages that were refused with the same headers
share one renewal. The source of the headers is passed in (`Credentials`). Their values never appear in an
error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol

import aiohttp

from dragoman.cleaning import one_line
from dragoman.errors import ConnectError
from dragoman.transports.base import TransportFailure
from dragoman.transports.web import RequestFailed


class Credentials(Protocol):
    """The source of authentication headers."""

    async def headers(self, *, renewed: bool) -> Mapping[str, str]:
        """`renewed`: those given last were refused."""
        ...


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
            self._first = await self._ask(renewed=False)
        except NoCredentials as error:
            self._first = error

    async def sign(self, headers: Mapping[str, str]) -> Signed:
        own, self._first = self._first, None
        if own is None:
            own = await self._ask(renewed=False)
        if isinstance(own, NoCredentials):
            raise own
        return Signed(laid_over(headers, own), self._turn)

    async def sign_again(self, headers: Mapping[str, str], refused: Signed) -> Signed:
        """For a message that was refused with a 401."""
        async with self._renewing:
            if refused.turn == self._turn:
                await self._renew()
            if self._failure is not None:
                raise self._failure
        return await self.sign(headers)

    async def _renew(self) -> None:
        try:
            self._first = await self._ask(renewed=True)
        except NoCredentials as error:
            self._failure = error
        self._turn += 1  # not reached when cancelled: then the next message asks

    async def _ask(self, *, renewed: bool) -> Mapping[str, str]:
        try:
            self._last = await self._credentials.headers(renewed=renewed)
        except ConnectError as error:  # made for people, and without secrets
            raise NoCredentials(error.cause, error.hint) from None
        except Exception as error:  # border: the source of credentials is other code
            raise NoCredentials(f"no credentials could be obtained: {type(error).__name__}") from error
        self._failure = None
        return self._last


Send = Callable[[Mapping[str, str]], Awaitable[aiohttp.ClientResponse]]
"""Sends one request with these headers."""


async def send_signed(
    signer: Signer | None, headers: Mapping[str, str], send: Send
) -> aiohttp.ClientResponse:
    """The response to a request, after at most one renewal of credentials."""
    if signer is None:
        return await send(headers)
    signed = await signer.sign(headers)
    response = await send(signed.headers)
    if response.status != 401:
        return response
    response.close()
    return await send((await signer.sign_again(headers, signed)).headers)


def secrets_of(headers: Mapping[str, str], signer: Signer | None) -> tuple[str, ...]:
    """Values of headers and credentials, which a server may repeat and which must not be shown."""
    return (*headers.values(), *(() if signer is None else signer.secrets))


def laid_over(headers: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The headers with these set, however their names were spelled before."""
    names = {name.lower() for name in own}
    return {name: value for name, value in headers.items() if name.lower() not in names} | dict(own)
