"""`headersHelper`: a command that prints authentication headers.

Defines what the command is given, how long it may take, and which headers of its output may be sent. It runs
once for each connection and again when a server refuses its headers. Its output is secret: no error contains
any of it. The transport decides which messages share one run, and which headers it overrides.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from dragoman.credentials import Challenge
from dragoman.errors import SignInNeeded
from dragoman.programs import CommandFailure, Watches, run
from dragoman.protocol import HTTP_TOKEN

LIMIT_SECONDS: Final = 10.0
OUTPUT_LIMIT_BYTES: Final = 256 * 1024
HEADER_LIMIT: Final = 64
NAME_LIMIT: Final = 256
VALUE_LIMIT: Final = 64 * 1024
"""Kerberos tickets are the longest values in use: up to 64 kB."""

RESERVED_HEADERS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "last-event-id",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers about the transfer of a message, which only the transport sets."""
RESERVED_PREFIXES: Final = ("mcp-", "proxy-", "sec-websocket-")
"""Headers of the protocol, of proxies, and of the WebSocket handshake."""

HINT: Final = (
    "Run the command by hand, with DRAGOMAN_SERVER_NAME and DRAGOMAN_SERVER_URL set; "
    'it has to print one JSON object such as {"Authorization": "Bearer …"}. Then reconnect.'
)

_TOKEN: Final = re.compile(HTTP_TOKEN)
_BETWEEN: Final = re.compile(r"[\s,;]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")


class BadHeaders(ValueError):
    """Printed headers cannot be used. The text says why, and contains nothing of them."""


class HeadersHelper:
    """The headers that the command of one connection prints."""

    def __init__(
        self,
        server: str,
        command: str,
        *,
        env: Mapping[str, str],
        cwd: str,
        watchdog: Watches,
        learned: Callable[[Iterable[str]], None] | None = None,
    ) -> None:
        """`env`: the whole environment of the command, with the variables of `facts`.

        `learned` is called with every value, so that it is redacted everywhere.
        """
        self._server = server
        self._command = command
        self._env = env
        self._cwd = cwd
        self._watchdog = watchdog
        self._learned = learned
        self._given: Mapping[str, str] | None = None
        self._running = asyncio.Lock()

    async def headers(self) -> Mapping[str, str]:
        """The headers of the last run; runs the command if there was none."""
        async with self._running:
            return self._given if self._given is not None else await self._obtain()

    async def renew(self, challenge: Challenge) -> bool:
        """Runs the command again after a 401. Not after a 403, because the command does not learn which
        rights are missing."""
        if challenge.status != 401:
            return False
        async with self._running:
            self._given = None  # after a failure, the refused headers are not kept
            await self._obtain()
        return True

    async def _obtain(self) -> Mapping[str, str]:
        self._given = await self._run()
        if self._learned is not None:
            self._learned([part for value in self._given.values() for part in (value, *_parts(value))])
        return self._given

    async def _run(self) -> Mapping[str, str]:
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                ended = await run(
                    self._command,
                    env=self._env,
                    cwd=self._cwd,
                    limit_bytes=OUTPUT_LIMIT_BYTES,
                    watchdog=self._watchdog,
                )
        except TimeoutError:
            raise self._failed(f"did not end within {LIMIT_SECONDS:g} s") from None
        except CommandFailure as failure:
            raise self._failed(str(failure)) from None
        if ended.exit_code:
            raise self._failed(_end_in_words(ended.exit_code))
        try:
            return read_headers(ended.stdout)
        except BadHeaders as bad:
            raise self._failed(str(bad)) from None

    def _failed(self, what: str) -> SignInNeeded:
        return SignInNeeded(self._server, "connect", f"its headersHelper {what}", hint=HINT)


def _parts(value: str) -> Iterator[str]:
    """What a server may repeat of a header alone: each word, and each parameter's value (`session=…`)."""
    for word in _BETWEEN.split(value):
        yield word
        yield word.partition("=")[2].strip("\"'")


def facts(server: str, url: str) -> dict[str, str]:
    """The server's name and URL, in Dragoman's variables and in those that most helpers expect."""
    values = {"SERVER_NAME": server, "SERVER_URL": url}
    prefixes = ("DRAGOMAN_", "CLAUDE_CODE_MCP_")
    return {prefix + name: value for prefix in prefixes for name, value in values.items()}


def read_headers(output: bytes) -> dict[str, str]:
    """The headers of one JSON object; raises `BadHeaders` if one of them may not be sent."""
    if not output.strip():
        raise BadHeaders("printed nothing")
    try:
        found = msgspec.json.decode(output, type=dict[str, str])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The decoder's message may repeat its input.
        raise BadHeaders("did not print one JSON object of texts") from None
    if len(found) > HEADER_LIMIT:
        raise BadHeaders(f"gave more than {HEADER_LIMIT} headers")
    if len({name.lower() for name in found}) < len(found):
        raise BadHeaders("gave one header twice")
    for name, value in found.items():
        _check(name, value)
    return found


def _check(name: str, value: str) -> None:
    if len(name) > NAME_LIMIT or not _TOKEN.fullmatch(name):
        raise BadHeaders("gave a header whose name is not one word of letters, digits and hyphens")
    if (owned := _owned(name.lower())) is not None:
        raise BadHeaders(f"gave the header {owned}, which a helper must not set")
    if _CONTROL.search(value):
        raise BadHeaders("gave a header with a line break or another control character in its value")
    if len(value.encode()) > VALUE_LIMIT:
        raise BadHeaders(f"gave a header of more than {VALUE_LIMIT // 1024} kB")


def _owned(name: str) -> str | None:
    """The transport's header that this name means, as spelled in the list here, so that it can be shown."""
    if name in RESERVED_HEADERS:
        return name
    return next((f"{family}…" for family in RESERVED_PREFIXES if name.startswith(family)), None)


def _end_in_words(exit_code: int) -> str:
    if exit_code < 0:
        return f"was ended by signal {-exit_code}"
    if exit_code in (126, 127):
        return f"was not found or cannot be run (exit code {exit_code}); give its whole path"
    return f"ended with exit code {exit_code}"
