"""HTTP requests to authorization servers and for metadata.

Guarantees: no redirects, no cookies, https except on loopback, a limit on size and time, and only addresses
that `addresses.py` allows. A name is resolved once, and the connection is made to the addresses that were
checked; behind a proxy, which resolves names itself, only literal addresses can be checked.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult
from msgspec import Struct
from yarl import URL

from dragoman.addresses import is_public, parse_address, why_forbidden
from dragoman.auth.errors import Refused, Unavailable
from dragoman.errors import ConfigError
from dragoman.own_threads import resolve
from dragoman.urls import ServerUrl, is_loopback, parse_page_url, parse_url

BODY_LIMIT_BYTES: Final = 256 * 1024
REQUEST_SECONDS: Final = 30.0
RETRY_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that only mean that a later request may succeed."""
_FAULTS: Final = (aiohttp.ClientError, OSError, TimeoutError, ValueError)


class NetworkAccess(Struct, frozen=True):
    """How requests leave this machine."""

    proxy_of: Callable[[str], str | None] = lambda url: None
    """By URL: the proxy to use."""
    tls_of: Callable[[str], ssl.SSLContext | bool] = lambda url: True
    """By URL: the TLS settings against which certificates are checked."""


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    def document(self) -> dict[str, Any] | None:
        """The body as a JSON object; None if it is not one."""
        try:
            return msgspec.json.decode(self.body, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None


class OAuthHttp:
    """Requests on behalf of one configured server."""

    def __init__(self, server_url: str, access: NetworkAccess, *, allow_private: bool = False) -> None:
        """`allow_private`: whether the entry allows private addresses although the server's is public."""
        self._server = parse_url(server_url)
        self._access = access
        self._allow_private = allow_private
        self._knows_server = allow_private

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> Answer:
        return await self._request("GET", url, headers=headers or {})

    async def post_form(
        self, url: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> Answer:
        data = aiohttp.FormData(dict(form))
        return await self._request("POST", url, headers=headers or {}, data=data)

    async def post_json(self, url: str, document: Mapping[str, Any]) -> Answer:
        body = msgspec.json.encode(document)
        return await self._request("POST", url, headers={"Content-Type": "application/json"}, data=body)

    async def _request(
        self, method: str, url: str, *, headers: Mapping[str, str], data: Any = None
    ) -> Answer:
        parsed = checked(url)
        allow_private = await self._private_allowed()
        literal = parse_address(parsed.host)
        if literal is not None and (why := why_forbidden([literal], allow_private=allow_private)):
            raise Refused(f"{parsed.origin} is not contacted: {why}")
        resolver = _CheckedResolver(allow_private)
        connector = aiohttp.TCPConnector(
            resolver=resolver, use_dns_cache=False, ssl=self._access.tls_of(url), force_close=True
        )
        try:
            async with (
                asyncio.timeout(REQUEST_SECONDS),
                aiohttp.ClientSession(
                    connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
                ) as session,
                session.request(
                    method,
                    URL(str(parsed), encoded=True),
                    headers={"Accept": "application/json", **headers},
                    data=data,
                    proxy=self._access.proxy_of(url),
                    allow_redirects=False,
                ) as response,
            ):
                return Answer(response.status, response.headers, await _body(response, parsed))
        except _FAULTS as error:
            if resolver.refused is not None:
                raise Refused(f"{parsed.origin} is not contacted: {resolver.refused}") from None
            raise Unavailable(f"{parsed.origin} could not be asked: {_in_words(error)}") from None

    async def _private_allowed(self) -> bool:
        """Whether the configured server itself is in a private network. Determined once."""
        if not self._knows_server:
            self._allow_private = await self._is_server_private()
            self._knows_server = True
        return self._allow_private

    async def _is_server_private(self) -> bool:
        host = self._server.host
        if is_loopback(self._server):
            return True
        if (literal := parse_address(host)) is not None:
            return not is_public(literal)
        try:
            found = await resolve(host, self._server.port)
        except OSError as error:  # not cached: the network may be available again later
            raise Unavailable(f"{host} could not be resolved: {error.strerror}") from None
        addresses = [parse_address(str(each[4][0])) for each in found]
        return bool(addresses) and all(each is not None and not is_public(each) for each in addresses)


class _CheckedResolver(AbstractResolver):
    """Resolves a name once, and returns only addresses that may be contacted."""

    def __init__(self, allow_private: bool) -> None:
        self._allow_private = allow_private
        self.refused: str | None = None
        """Why a host was refused."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await resolve(host, port, family=family, flags=socket.AI_ADDRCONFIG)
        usable = [(each, parse_address(str(each[4][0]))) for each in found]
        addresses = [address for _, address in usable if address is not None]
        self.refused = why_forbidden(addresses, allow_private=self._allow_private)
        if self.refused is not None:
            raise OSError(f"the addresses of {host} are not allowed")
        return [
            ResolveResult(
                hostname=host,
                host=str(each[4][0]),
                port=port,
                family=socket.AddressFamily(each[0]),
                proto=each[2],
                flags=socket.AI_NUMERICHOST,
            )
            for each, address in usable
            if address is not None
        ]

    async def close(self) -> None:
        return


def checked(url: str) -> ServerUrl:
    """A URL that may be contacted: https, or http on loopback."""
    try:
        parsed = parse_url(url)
    except ConfigError as error:
        raise Refused(str(error)) from None
    if parse_page_url(url) is None:
        raise Refused(f"{parsed.origin} is not contacted: it is not a plain https URL")
    return parsed


async def _body(response: aiohttp.ClientResponse, url: ServerUrl) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        parts.append(chunk)
        size += len(chunk)
        if size > BODY_LIMIT_BYTES:
            raise Refused(f"{url.origin} answered more than {BODY_LIMIT_BYTES // 1024} kB")
    return b"".join(parts)


def _in_words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    inner = getattr(error, "os_error", error)
    text = getattr(inner, "strerror", None) or type(error).__name__
    return str(text)
