"""How the network is reached: proxies, limits on bodies, and plain words for faults."""

import asyncio
import contextlib
import errno
import gzip
import math
import ssl
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from email.utils import formatdate
from time import time
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.client_exceptions import UnixClientConnectorError
from aiohttp.client_reqrep import ConnectionKey
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from dragoman.errors import ConfigError, SignInNeeded, Unreachable
from dragoman.transports.base import TransportFailure, connect_error
from dragoman.transports.web import (
    ERROR_BODY_BYTES,
    Network,
    TooLarge,
    accepts_connections,
    failure_of,
    failure_of_status,
    open_client,
    proxy_for,
    read_body,
    read_start,
    retry_after,
    tls_of,
)
from tests.unit.transports.sinks import site

# --- the proxy that the environment names ---

PLAIN, SECURE = "http://box.example/mcp", "https://box.example/mcp"


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        (PLAIN, {}, None),
        (PLAIN, {"HTTP_PROXY": "http://p:1"}, "http://p:1"),
        (PLAIN, {"http_proxy": "http://p:1"}, "http://p:1"),
        (PLAIN, {"HTTPS_PROXY": "http://p:1"}, None),
        (SECURE, {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        (SECURE, {"HTTP_PROXY": "http://p:1"}, None),
        (SECURE, {"ALL_PROXY": "http://p:1"}, "http://p:1"),
        (SECURE, {"all_proxy": "http://all:1", "https_proxy": "http://p:1"}, "http://p:1"),
        (SECURE, {"HTTPS_PROXY": "p:1"}, "http://p:1"),
        (SECURE, {"HTTPS_PROXY": "https://u:p@p:1"}, "https://u:p@p:1"),
        (SECURE, {"HTTPS_PROXY": ""}, None),
        ("ws://box.example", {"HTTP_PROXY": "http://p:1"}, "http://p:1"),
        ("wss://box.example", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("wss://box.example", {"HTTP_PROXY": "http://p:1"}, None),
        # Under CGI a stranger's header arrives as HTTP_PROXY.
        (PLAIN, {"HTTP_PROXY": "http://evil:1", "REQUEST_METHOD": "GET"}, None),
        (SECURE, {"HTTPS_PROXY": "http://p:1", "REQUEST_METHOD": "GET"}, "http://p:1"),
    ],
    ids=str,
)
def test_which_proxy_is_used_for_a_url(url: str, environ: dict[str, str], proxy: str | None):
    assert proxy_for(url, environ) == proxy


@pytest.mark.parametrize("is_reversed", [False, True])
def test_the_lower_case_variable_takes_precedence_in_any_order(is_reversed: bool):
    pairs = [("HTTPS_PROXY", "http://upper:1"), ("https_proxy", "http://lower:1")]

    assert proxy_for(SECURE, dict(reversed(pairs) if is_reversed else pairs)) == "http://lower:1"


@pytest.mark.parametrize(
    ("url", "no_proxy", "goes_around"),
    [
        (SECURE, "", False),
        (SECURE, "*", True),
        (SECURE, "box.example", True),
        (SECURE, "BOX.example", True),
        (SECURE, ".example", True),
        (SECURE, "example", True),
        (SECURE, "ox.example", False),
        (SECURE, "other.example, box.example", True),
        (SECURE, " box.example ,", True),
        (SECURE, "other.example", False),
        (SECURE, "box.example:443", True),
        (SECURE, "box.example:8443", False),
        ("https://box.example:8443/", "box.example:8443", True),
        ("https://box.example:8443/", "box.example", True),
        ("https://127.0.0.1:1/", "127.0.0.1", True),
        ("https://127.0.0.1:1/", "localhost", False),
        ("https://[::1]:1/", "::1", True),
        ("https://box.example.evil/", "box.example", False),
    ],
)
@pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
def test_which_hosts_are_reached_without_the_proxy(url: str, no_proxy: str, goes_around: bool, name: str):
    found = proxy_for(url, {"HTTPS_PROXY": "http://p:1", name: no_proxy})

    assert found == (None if goes_around else "http://p:1")


# --- Retry-After ---


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("007", 7.0),
        ("300", 300.0),
        ("3600", 3600.0),
        (str(10 * 365 * 86400), 315_360_000.0),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 0.0),
        ("", None),
        ("-5", None),
        ("1.5", 1.5),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 0),
        ("Sun Nov  6 08:49:37 1994", 0),
        ("soon", None),
        ("NaN", None),
        ("inf", None),
        ("1e3", None),
        ("7, 8", None),
        ("Fri, 99 Foo 2026 99:99:99 GMT", None),
        ("\x00", None),
        ("9" * 10_000, 1e12),
    ],
    ids=lambda value: str(value)[:40],
)
def test_which_retry_after_values_are_accepted(value: str | None, seconds: float | None):
    assert retry_after(value) == seconds


def test_a_date_in_retry_after_is_a_wait_until_then():
    found = retry_after(formatdate(time() + 60, usegmt=True))

    assert found is not None
    assert 50 < found <= 60


@given(st.text(max_size=60))
def test_a_retry_after_never_gives_a_negative_or_infinite_wait_or_an_error(value: str):
    found = retry_after(value)

    assert found is None or 0 <= found < math.inf


# --- plain words for faults ---

KEY = ConnectionKey("box.example", 443, True, True, None, None, None)
REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('10.0.0.1', 443)")
UNTRUSTED = ssl.SSLCertVerificationError(1, "certificate verify failed")
UNTRUSTED.verify_message = "self-signed certificate"
INFO = aiohttp.RequestInfo(URL("https://box.example/?token=secret"), "POST", {}, URL("https://x/"))  # type: ignore[arg-type]
NO_TLS = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1)")

FAULTS = [
    (aiohttp.ClientConnectorCertificateError(KEY, UNTRUSTED), "unreachable", "certificate is not trusted"),
    (aiohttp.ClientConnectorSSLError(KEY, NO_TLS), "unreachable", "no TLS connection"),
    (ssl.SSLError(1, "handshake failure"), "unreachable", "no TLS connection"),
    (
        aiohttp.ClientConnectorDNSError(KEY, OSError(-2, "Name or service not known")),
        "unreachable",
        "cannot be resolved: box.example",
    ),
    (aiohttp.ClientProxyConnectionError(KEY, REFUSED), "unreachable", "the proxy cannot be reached"),
    (
        aiohttp.ClientHttpProxyError(INFO, (), status=407, message="no"),
        "unreachable",
        "the proxy refused: HTTP 407",
    ),
    (aiohttp.ClientConnectorError(KEY, REFUSED), "unreachable", "connection refused"),
    (UnixClientConnectorError("/x", KEY, REFUSED), "unreachable", "connection refused"),
    (aiohttp.ConnectionTimeoutError("x"), "unreachable", "no connection in time"),
    (aiohttp.SocketTimeoutError("x"), "timeout", "no answer in time"),
    (aiohttp.ServerTimeoutError("x"), "timeout", "no answer in time"),
    (TimeoutError(), "timeout", "no answer in time"),
    (aiohttp.ClientPayloadError("x"), "broken", "ended before the answer was complete"),
    (aiohttp.ServerDisconnectedError(), "broken", "ended before the answer was complete"),
    (aiohttp.ClientOSError(errno.ECONNRESET, "reset"), "broken", "connection reset by peer"),
    (aiohttp.ClientConnectionResetError("Cannot write to closing transport"), "broken", "Cannot write"),
    (ConnectionResetError(errno.ECONNRESET, "reset"), "broken", "connection reset by peer"),
    (BrokenPipeError(errno.EPIPE, "pipe"), "broken", "broken pipe"),
    (aiohttp.ClientConnectionError("closed"), "broken", "closed"),
    (
        aiohttp.ClientResponseError(INFO, (), status=400, message="Bad status line"),
        "malformed",
        "not answer in HTTP",
    ),
    (aiohttp.ContentTypeError(INFO, (), message="x"), "malformed", "not answer in HTTP"),
    (aiohttp.TooManyRedirects(INFO, ()), "malformed", "not answer in HTTP"),
    (aiohttp.InvalidURL("http://user:secret@"), "unreachable", "cannot be used"),
    (ValueError("header with a line break"), "malformed", "ValueError"),
]


@pytest.mark.parametrize(("error", "kind", "words"), FAULTS, ids=[type(row[0]).__name__ for row in FAULTS])
def test_the_failure_for_each_exception(error: Exception, kind: str, words: str):
    trouble = failure_of(error)

    assert trouble.kind == kind
    assert words.lower() in trouble.cause.lower()
    assert "secret" not in trouble.cause
    assert (trouble.hint is not None) == (kind == "unreachable")


@pytest.mark.parametrize("row", FAULTS, ids=lambda row: type(row[0]).__name__)
def test_a_request_that_never_reached_the_server_did_not_run(row: tuple[Exception, str, str]):
    assert failure_of(row[0]).may_have_run is (row[1] != "unreachable")


def test_every_exception_of_the_http_client_has_a_row():
    def below(kind: type) -> set[type]:
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    known = {type(row[0]) for row in FAULTS}
    # Bases that are never raised themselves, and what cannot be met here: aiohttp follows no redirect, checks
    # no fingerprint, makes no handshake of a WebSocket and is not asked how far an upload came.
    others = {
        "ClientError",
        "ServerConnectionError",
        "ClientSSLError",
        "ServerFingerprintMismatch",
        "WSServerHandshakeError",
        "UploadAbortedError",
        "NonHttpUrlClientError",
        "InvalidUrlClientError",
    }
    theirs = {kind for kind in below(aiohttp.ClientError) if kind.__module__.startswith("aiohttp.")}
    found = {kind.__name__ for kind in theirs - known}

    assert {name for name in found - others if "Redirect" not in name} == set()


@pytest.mark.parametrize(
    "error", [aiohttp.ClientOSError("\x1b[2J" * 10_000), ValueError("\x1b]0;x\x07" * 10_000)]
)
def test_the_message_of_a_failure_is_short_and_cleaned(error: Exception):
    cause = failure_of(error).cause

    assert len(cause) < 1000
    assert "\x1b" not in cause


# --- certificates ---


@pytest.mark.parametrize(
    "network",
    [
        Network("http://box.example/", ca_file="/nowhere.pem"),
        Network("ws://box.example/", cert_file="/nowhere.pem"),
        Network("https://box.example/"),
    ],
    ids=lambda network: network.url,
)
def test_without_tls_settings_the_default_rules_apply(network: Network):
    assert tls_of("box", network) is True


@pytest.mark.parametrize(
    "network",
    [
        Network("https://box.example/", ca_file="/nowhere.pem"),
        Network("wss://box.example/", cert_file="/nowhere.pem", key_file="/nowhere.key"),
    ],
    ids=lambda network: network.url,
)
def test_a_file_that_cannot_be_used_names_the_server_and_the_file(network: Network):
    with pytest.raises(ConfigError, match="'box'") as caught:
        tls_of("box", network)

    assert "/nowhere.pem" in (caught.value.hint or "")


# --- bodies ---

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@contextlib.asynccontextmanager
async def answered(handler: Handler) -> AsyncGenerator[aiohttp.ClientResponse]:
    """What a server on loopback answers to one GET."""
    async with site(web.get("/{rest:.*}", handler)) as port:
        network = Network(f"http://127.0.0.1:{port}/mcp?key=secret")
        async with open_client("box", network) as client:
            response = await client.get(network.address, allow_redirects=False)
            try:
                yield response
            finally:
                response.close()


def fixed(body: bytes, **headers: str) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, headers=headers)

    return handle


def in_pieces(*pieces: bytes, **headers: str) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        return response

    return handle


ENCODED = {"Content-Encoding": "gzip"}


@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize(
    "handler",
    [
        pytest.param(fixed(b"x" * 1000), id="a length"),
        pytest.param(in_pieces(b"x" * 400, b"x" * 600), id="in pieces"),
        pytest.param(fixed(gzip.compress(b"x" * 1000), **ENCODED), id="compressed"),
        pytest.param(in_pieces(gzip.compress(b"x" * 1000), **ENCODED), id="compressed, in pieces"),
        pytest.param(
            fixed(zlib.compress(b"x" * 1000), **{"Content-Encoding": "deflate"}), id="compressed otherwise"
        ),
    ],
)
async def test_a_body_of_exactly_the_limit_is_read_and_one_byte_more_is_too_much(handler: Handler):
    async with answered(handler) as response:
        assert await read_body(response, 1000) == b"x" * 1000
    async with answered(handler) as response:
        with pytest.raises(TooLarge):
            await read_body(response, 999)


@pytest.mark.requirement("TRN-9")
async def test_an_empty_body_is_a_body():
    async with answered(fixed(b"")) as response:
        assert await read_body(response, 0) == b""


@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize("has_length", [True, False])
async def test_a_compressed_bomb_ends_at_the_limit(has_length: bool):
    bomb = gzip.compress(b"\x00" * 100_000_000, 1)
    handler = fixed(bomb, **ENCODED) if has_length else in_pieces(bomb, **ENCODED)
    async with answered(handler) as response:
        with pytest.raises(TooLarge):
            await read_body(response, 1_000_000)


@pytest.mark.requirement("TRN-9")
async def test_a_length_over_the_limit_is_enough_and_nothing_is_read():
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(10**12)})
        await response.prepare(request)
        await asyncio.Event().wait()
        return response

    async with asyncio.timeout(5), answered(handle) as response:
        with pytest.raises(TooLarge):
            await read_body(response, 1000)


@pytest.mark.requirement("TRN-9")
async def test_a_stream_without_end_ends_at_the_limit():
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 10_000)

    async with asyncio.timeout(5), answered(handle) as response:
        with pytest.raises(TooLarge):
            await read_body(response, 100_000)


async def test_invalid_compressed_data_is_a_failure():
    async with answered(fixed(b"no gzip at all", **ENCODED)) as response:
        with pytest.raises(aiohttp.ClientError) as caught:
            await read_body(response, 1000)

    assert failure_of(caught.value).kind in ("broken", "malformed")


async def test_only_the_beginning_of_an_error_body_is_read():
    async with answered(fixed(b"x" * 1_000_000)) as response:
        assert len(await read_start(response)) == ERROR_BODY_BYTES
    bomb = gzip.compress(b"\x00" * 50_000_000, 1)
    async with answered(fixed(bomb, **ENCODED)) as response:
        assert len(await read_start(response, 100)) == 100


async def test_the_received_part_of_an_interrupted_error_body_is_kept():
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"beginning")
        assert request.transport is not None
        request.transport.close()
        return response

    async with answered(handle) as response:
        assert await read_start(response) == b"beginning"


# --- statuses ---


def refusing(status: int, body: bytes = b"", content_type: str = "text/plain", **headers: str) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, body=body, content_type=content_type, headers=headers)

    return handle


async def trouble_from(handler: Handler, **more: Any) -> TransportFailure:
    async with answered(handler) as response:
        return await failure_of_status(response, **more)


@pytest.mark.parametrize(
    ("status", "may_have_run"),
    [
        (400, False),
        (401, False),
        (404, False),
        (429, False),
        (503, True),
        (500, True),
        (502, True),
        (504, True),
    ],
)
async def test_a_request_refused_with_these_statuses_did_not_run(status: int, may_have_run: bool):
    trouble = await trouble_from(refusing(status))

    assert (trouble.kind, trouble.status, trouble.may_have_run) == ("status", status, may_have_run)
    assert f"HTTP {status}" in trouble.cause


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (400, None),
        (404, "Is the URL right? MCP servers often use a path such as /mcp."),
        (405, "Is the URL right? MCP servers often use a path such as /mcp."),
        (500, "The server itself failed; its own log may say more."),
        (501, "Is the URL right? MCP servers often use a path such as /mcp."),
        (502, "The server, or a proxy in front of it, is not available now."),
        (503, "The server, or a proxy in front of it, is not available now."),
        (504, "The server, or a proxy in front of it, is not available now."),
    ],
)
async def test_a_status_has_a_hint(status: int, hint: str | None):
    assert (await trouble_from(refusing(status))).hint == hint


async def test_the_details_of_a_status_are_kept():
    handler = refusing(
        401, b'{"e":1}', "application/json", **{"WWW-Authenticate": "Bearer x", "Retry-After": "7"}
    )
    trouble = await trouble_from(handler, in_session=True)

    assert (trouble.challenge, trouble.retry_after_seconds, trouble.body) == ("Bearer x", 7, b'{"e":1}')
    assert trouble.in_session
    assert trouble.hint


@pytest.mark.parametrize(
    ("content_type", "is_said"),
    [
        ("text/plain", True),
        ("application/json", True),
        ("application/problem+json", True),
        ("text/html", False),
        ("application/octet-stream", False),
    ],
)
async def test_a_plain_text_body_is_shown_and_an_html_page_is_not(content_type: str, is_said: bool):
    trouble = await trouble_from(refusing(500, b"out of\x1b[2J\ncheese", content_type))

    assert ("cheese" in trouble.cause) is is_said
    assert "\x1b" not in trouble.cause
    assert "\n" not in trouble.cause


async def test_a_long_text_is_cut():
    assert len((await trouble_from(refusing(500, b"x" * 100_000))).cause) < 500


@pytest.mark.parametrize(
    ("target", "said", "unsaid"),
    [
        ("/elsewhere?code=secret#secret", "/elsewhere", "secret"),
        ("https://other.example/path/secret?code=secret", "https://other.example", "secret"),
        ("https://u:secret@other.example:8443/", "https://other.example:8443", "secret"),
        ("//other.example/secret", "http://other.example", "secret"),
        ("", "nowhere", "secret"),
        ("http://[broken/secret", "cannot be read", "secret"),
        ("\\\\secret?x", "", "?x"),
        ("mailto:x@secret", "mailto:", "secret"),
    ],
    ids=lambda value: value[:40],
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_error_names_only_the_target(status: int, target: str, said: str, unsaid: str):
    trouble = await trouble_from(refusing(status, Location=target))

    assert (trouble.status, trouble.may_have_run) == (status, False)
    assert said in trouble.cause
    assert unsaid not in trouble.cause
    assert "key=" not in trouble.cause
    assert "not followed" in (trouble.hint or "")


async def test_a_redirect_to_a_very_long_url_is_reported_shortened():
    trouble = await trouble_from(refusing(302, Location="https://" + "x" * 5000 + ".example/"))

    assert len(trouble.cause) < 500


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        (TransportFailure("status", "HTTP 401", status=401, challenge="Bearer"), SignInNeeded),
        (TransportFailure("status", "HTTP 403", status=403), SignInNeeded),
        (TransportFailure("status", "HTTP 503", status=503, retry_after_seconds=7.0), Unreachable),
        (TransportFailure("unreachable", "refused", hint="do"), Unreachable),
        (TransportFailure("timeout", "slow"), Unreachable),
    ],
    ids=lambda value: getattr(value, "cause", ""),
)
def test_the_same_failures_during_connect(trouble: TransportFailure, kind: type):
    error = connect_error("box", trouble)

    assert type(error) is kind
    assert (error.cause, error.hint, error.status) == (trouble.cause, trouble.hint, trouble.status)
    if isinstance(error, SignInNeeded):
        assert error.challenge == trouble.challenge
    if isinstance(error, Unreachable):
        assert error.retry_after_seconds == trouble.retry_after_seconds


# --- knocking ---


async def test_an_open_port_is_found_without_sending_anything():
    heard: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            heard.append(await reader.read())
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        assert await accepts_connections(Network(f"http://127.0.0.1:{port}/mcp"))
    assert not await accepts_connections(Network(f"http://127.0.0.1:{port}/mcp"))
    assert b"".join(heard) == b""


async def test_with_a_proxy_the_port_is_not_probed():
    assert not await accepts_connections(Network("http://127.0.0.1:1/", proxy="http://127.0.0.1:1"))


# --- the client ---


async def test_no_cookies_and_no_netrc_are_used():
    seen: list[dict[str, str]] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        seen.append(dict(request.headers))
        response = web.Response()
        response.set_cookie("a", "b")
        return response

    async with (
        site(web.get("/", handle)) as port,
        open_client("box", Network(f"http://127.0.0.1:{port}/")) as client,
    ):
        for _ in range(2):
            async with client.get(f"http://127.0.0.1:{port}/"):
                pass

    assert all("Cookie" not in headers and "Authorization" not in headers for headers in seen)
