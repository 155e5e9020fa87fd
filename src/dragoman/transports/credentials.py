"""Adds authentication headers to messages, and renews them when a server refuses them.

After a 401 or 403 a message is sent again if its credentials could be renewed (`send_signed`, for all
transports). Messages that were refused with the same headers share one renewal. The source of the headers is
passed in (`Credentials`). Their values never appear in an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

import aiohttp

from dragoman.cleaning import one_line
from dragoman.credentials import (
    Challenge,
    Credentials,
    OutgoingRequest,
    SignsRequests,
    TracksAcceptance,
)
from dragoman.errors import ConnectError, SignInNeeded, Unreachable
from dragoman.transports.base import TransportFailure
from dragoman.transports.web import RequestFailed

if TYPE_CHECKING:
    from multidict import CIMultiDictProxy

REFUSALS: Final = (401, 403)
CHALLENGE_LIMIT: Final = 16
CHALLENGE_BYTES: Final = 8192


class NoCredentials(RequestFailed):
    """The authentication headers could not be obtained; nothing was sent."""

    def __init__(
        self,
        cause: str,
        hint: str | None = None,
        *,
        is_unreachable: bool = False,
        challenge: str | None = None,
    ) -> None:
        """`is_unreachable`: the source of credentials could not be reached; a retry may succeed. `challenge`:
        the server's answer to the message without credentials."""
        kind, status = ("unreachable", None) if is_unreachable else ("status", 401)
        super().__init__(
            TransportFailure(
                kind,
                one_line(cause, 500),
                may_have_run=False,
                hint=hint,
                status=status,
                challenge=challenge,
                was_sent=False,
            )
        )


class Signed(NamedTuple):
    headers: Mapping[str, str]
    turn: int
    """The number of renewals at the time of signing."""


class Signer:
    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        # Checked once: `isinstance` with a protocol takes longer than all the rest of signing.
        self._acceptance = credentials if isinstance(credentials, TracksAcceptance) else None
        self._request_signer = credentials if isinstance(credentials, SignsRequests) else None
        self._first: Mapping[str, str] | NoCredentials | None = None
        """The headers, or the error, of `prepare`, until they are used."""
        self._turn = 0
        self._failure: NoCredentials | None = None
        """Why the last renewal failed."""
        self._renewing = asyncio.Lock()
        self._last: Mapping[str, str] = {}

    @property
    def renewals(self) -> int:
        """How often credentials are renewed for one message. Twice if the first renewal may only find the
        token of another process, which may no longer be valid either."""
        return 1 if self._acceptance is None else 2

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must not be shown, and that a server may repeat."""
        return tuple(self._last.values())

    async def prepare(self) -> None:
        """Obtains headers in advance, so that the time for it is not part of the server's time limit."""
        try:
            self._first = await self._ask()
        except NoCredentials as error:
            self._first = error

    async def sign(self, headers: Mapping[str, str], request: OutgoingRequest) -> Signed:
        obtained, self._first = self._first, None
        if obtained is None:
            obtained = await self._ask()
        if isinstance(obtained, NoCredentials):
            raise obtained
        if self._request_signer is not None:
            obtained = self._request_signer.request_headers(obtained, request)
        return Signed(with_overrides(headers, obtained) if obtained else headers, self._turn)

    def accepted(self, signed: Signed) -> None:
        if self._acceptance is not None:
            self._acceptance.accepted(signed.headers)

    async def sign_again(
        self, headers: Mapping[str, str], request: OutgoingRequest, refused: Signed, challenge: Challenge
    ) -> Signed | None:
        """The headers for a message that was refused; None if there are no better ones."""
        async with self._renewing:
            if refused.turn == self._turn and not await self._renew(challenge):
                return None
            if self._failure is not None:
                raise self._failure
        return await self.sign(headers, request)

    async def _renew(self, challenge: Challenge) -> bool:
        """Renews the credentials; returns whether they changed, or can no longer be obtained (`_failure`)."""
        try:
            if not await self._credentials.renew(challenge):
                return False
        except Exception as error:  # border: the source of credentials is other code
            self._failure = _no_credentials(error, challenge)
        self._turn += 1  # not reached when cancelled: then the next message asks
        return True

    async def _ask(self) -> Mapping[str, str]:
        try:
            self._last = await self._credentials.headers()
        except Exception as error:  # border: the source of credentials is other code
            raise _no_credentials(error) from error
        self._failure = None
        return self._last


def _no_credentials(error: Exception, challenge: Challenge | None = None) -> NoCredentials:
    wanted = next(iter(challenge.authenticate), None) if challenge is not None else None
    if isinstance(error, SignInNeeded):
        wanted = error.challenge or wanted
    if isinstance(error, ConnectError):  # made for people, and without secrets
        is_unreachable = isinstance(error, Unreachable)
        return NoCredentials(error.cause, error.hint, is_unreachable=is_unreachable, challenge=wanted)
    return NoCredentials(f"no credentials could be obtained: {type(error).__name__}", challenge=wanted)


class ResponseLike(Protocol):
    """The part of a response that is read here, for transports without HTTP responses, such as WebSocket."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> CIMultiDictProxy[str]: ...

    def close(self) -> None:
        """Closes a response that is no longer needed."""
        ...


Answer = TypeVar("Answer", bound=aiohttp.ClientResponse | ResponseLike)


async def send_signed(
    signer: Signer | None,
    headers: Mapping[str, str],
    request: OutgoingRequest,
    send: Callable[[Mapping[str, str]], Awaitable[Answer]],
) -> Answer:
    """The answer to a message, after as many renewals of credentials as the signer allows.

    `send` sends the message with these headers. A refusal that remains after the renewals is returned like
    any other answer.
    """
    if signer is None:
        return await send(headers)
    signed = await signer.sign(headers, request)
    for _ in range(signer.renewals):
        answer = await send(signed.headers)
        if answer.status not in REFUSALS:
            signer.accepted(signed)
            return answer
        try:
            again = await signer.sign_again(headers, request, signed, challenge_in(answer, signed.headers))
        except BaseException:
            answer.close()
            raise
        if again is None:
            return answer
        answer.close()
        signed = again
    answer = await send(signed.headers)
    if answer.status not in REFUSALS:
        signer.accepted(signed)
    return answer


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
    """The values of headers and credentials; a server may repeat them, and they must not be shown."""
    return (*headers.values(), *(() if signer is None else signer.secrets))


def with_overrides(headers: Mapping[str, str], overrides: Mapping[str, str]) -> dict[str, str]:
    """The headers with these set, however their names were spelled before."""
    names = {name.lower() for name in overrides}
    return {name: value for name, value in headers.items() if name.lower() not in names} | dict(overrides)
