"""Network access for all remote transports: proxy, certificates, limits, and error messages.

Makes aiohttp clients, reads bodies up to a limit on decoded bytes, and maps aiohttp's exceptions to
`TransportFailure` in one table. Redirects are not followed here, cookies are not kept, `.netrc` is not read,
and nothing is retried without TLS.
"""

from __future__ import annotations

import asyncio
import functools
import io
import math
import os
import re
import socket
import ssl
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

import aiohttp
from msgspec import Struct
from yarl import URL

from dragoman.cleaning import cover, cut, one_line
from dragoman.errors import ConfigError
from dragoman.own_threads import resolve
from dragoman.transports.base import About, TransportFailure
from dragoman.transports.watched_connection import WatchedConnector

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
FAULTS: Final = (aiohttp.ClientError, OSError, TimeoutError, ValueError)
"""The exceptions of aiohttp; ValueError for addresses and headers that it refuses to send."""
ERROR_BODY_BYTES: Final = 64 * 1024
CHUNK_BYTES: Final = 256 * 1024
CONNECT_SECONDS: Final = 20.0
KEEP_IDLE_SECONDS: Final = 4.0
"""How long idle connections are kept: shorter than common servers do, so that no call uses one that is being
closed."""
SECRET_LENGTH: Final = 8
SESSION_HEADER: Final = "X-Mcp-Client-Session-Id"
"""The header with the id of the host's session, the same on every request of one host."""
PROBE_INTERVAL_SECONDS: Final = 2.0
LONGEST_STATED_SECONDS: Final = 1e12
"""A longer wait in `Retry-After` counts as this one: no call waits for so long, and errors state a number."""
PIECE_BYTES: Final = 512 * 1024
_KEEPALIVE: Final = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""TCP keep-alive: an unreachable machine is detected two minutes after its last packet."""


class RequestFailed(aiohttp.ClientError):
    """A request that failed for a known reason."""

    def __init__(self, failure: TransportFailure) -> None:
        super().__init__(failure.cause)
        self.failure = failure


class Network(Struct, frozen=True):
    """How one server is reached. Never printed: headers and proxy may hold secrets."""

    url: str
    headers: Mapping[str, str] = {}
    proxy: str | None = None
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None

    def __repr__(self) -> str:
        return "<Network>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []

    @property
    def address(self) -> URL:
        # Already in canonical form: yarl must not read it differently from policy.
        return URL(self.url, encoded=True)


def with_session(headers: Mapping[str, str], client_session_id: str | None) -> dict[str, str]:
    """An entry's headers and the header with the host's session id; the entry's own value takes
    precedence."""
    if client_session_id is None or any(name.lower() == SESSION_HEADER.lower() for name in headers):
        return dict(headers)
    return {**headers, SESSION_HEADER: client_session_id}


_bypasses: Callable[[str, Mapping[str, str]], bool] = urllib.request.proxy_bypass_environment  # pyright: ignore


def proxy_for(url: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The proxy for a URL from the environment, by the rules of curl and most programs."""
    parts = URL(url, encoded=True)
    scheme = {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme)
    named = {name: value for name, value in environ.items() if name.lower().endswith("_proxy")}
    # The lower-case name takes precedence, in any order of the environment.
    lowered = {name.lower(): named[name] for name in sorted(named, key=str.islower)}
    if "REQUEST_METHOD" in environ:  # under CGI, `Proxy:` headers of any client arrive as HTTP_PROXY
        lowered.pop("http_proxy", None)
    host = f"{parts.host or ''}:{parts.port}" if parts.port else parts.host or ""
    if _bypasses(host, {"no": lowered.get("no_proxy", "")}):
        return None
    found = lowered.get(f"{scheme}_proxy") or lowered.get("all_proxy")
    return checked_proxy(found) if found else None


def checked_proxy(proxy: str) -> str:
    """The complete URL of a proxy. It is never shown: it may contain a password."""
    full = proxy if "://" in proxy else f"http://{proxy}"
    if not full.startswith(("http://", "https://")):
        raise ConfigError("only http and https proxies can be used", hint="Check `proxy` and HTTPS_PROXY.")
    return full


def open_client(server: str, network: Network) -> aiohttp.ClientSession:
    """A client for one server: a small pool that is not shared with other servers."""
    connector = WatchedConnector(
        limit=0,  # the transport limits the number of concurrent requests
        socket_factory=_watched_socket,
        ssl=tls_of(server, network),
        keepalive_timeout=KEEP_IDLE_SECONDS,
        ttl_dns_cache=30,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        trust_env=False,
        proxy=network.proxy,
        read_bufsize=CHUNK_BYTES,
    )


def _watched_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket with TCP keep-alive: the system probes the peer while no data comes, as in a call of an
    hour."""
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):  # not on every system
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def tls_of(server: str, network: Network) -> ssl.SSLContext | bool:
    """The TLS settings: the certificates against which the server's is checked, and the client
    certificate."""
    if not (network.ca_file or network.cert_file) or not network.url.startswith(("https:", "wss:")):
        return True
    try:
        files = (network.ca_file, network.cert_file, network.key_file)
        return _context(*files, tuple(os.stat(file).st_mtime_ns for file in files if file is not None))
    except (OSError, ssl.SSLError) as error:
        what = network.ca_file if network.cert_file is None else network.cert_file
        raise ConfigError(
            f"server {server!r}: the certificates cannot be used: {one_line(str(error), 200)}",
            hint=f"Look at {what} and the other files of `tls`.",
        ) from None


@functools.lru_cache(maxsize=32)
def _context(
    ca_file: str | None, cert_file: str | None, key_file: str | None, written: tuple[int, ...]
) -> ssl.SSLContext:
    """The TLS context of these files. `written`: their modification times, because certificates are renewed
    in place."""
    context = ssl.create_default_context()
    if ca_file is not None:
        context.load_verify_locations(cafile=ca_file)
    if cert_file is not None:
        context.load_cert_chain(cert_file, key_file, password=_refuse_to_ask)
    return context


def _refuse_to_ask() -> bytes:
    raise OSError("the key is encrypted, and there is no way to give its password")


class TooLarge(Exception):
    """A body is over the limit; nothing of it was kept."""


async def read_body(response: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
    """The decoded body; raises `TooLarge` as soon as it exceeds the limit."""
    plain = "Content-Encoding" not in response.headers
    if plain and response.content_length is not None:
        if response.content_length > limit_bytes:
            raise TooLarge
        return await response.read()
    parts: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        parts.append(chunk)
        size += len(chunk)
        if size > limit_bytes:
            raise TooLarge
    return b"".join(parts)


async def read_start(response: aiohttp.ClientResponse, limit_bytes: int = ERROR_BODY_BYTES) -> bytes:
    """The beginning of a body, for reading an error message."""
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(5):
            async for chunk in response.content.iter_any():
                parts.append(chunk)
                size += len(chunk)
                if size >= limit_bytes:
                    break
    except (aiohttp.ClientError, OSError, TimeoutError):
        pass  # what came is all there is
    return b"".join(parts)[:limit_bytes]


async def failure_of_status(
    response: aiohttp.ClientResponse, *, in_session: bool = False, hide: Iterable[str] = ()
) -> TransportFailure:
    """The failure of a message whose HTTP answer is not a success.

    `hide`: values that were sent and may be secret; some servers repeat them.
    """
    status = response.status
    body = await read_start(response)
    if 300 <= status < 400:
        return _redirected(response)
    cause = f"HTTP {status} {one_line(response.reason or '', 80)}".rstrip()
    explanation = "" if status in (401, 407) else _in_words(body, content_type_of(response), hide)
    if explanation and explanation != response.reason:
        cause += f": {explanation}"
    return TransportFailure(
        "status",
        cause,
        # Refused before anything ran, unless the server failed while processing it: some proxies answer 503
        # when a server disconnects in the middle.
        may_have_run=status >= 500,
        hint=_HINTS.get(status),
        status=status,
        retry_after_seconds=asked_wait(response.headers),
        challenge=response.headers.get("WWW-Authenticate"),
        body=body,
        in_session=in_session,
    )


WRONG_PATH: Final = "Is the URL right? MCP servers often use a path such as /mcp."
GATEWAY: Final = "The server, or a proxy in front of it, is not available now."
_HINTS: Final = {
    401: "Authentication is required; check the entry's `headers` or `headersHelper`.",
    403: "The credentials lack permission; sign in again (`dragoman mcp login`), which asks for what is "
    "missing, or check the token in the entry's `headers`.",
    404: WRONG_PATH,
    405: WRONG_PATH,
    407: "The proxy requires a user name and password.",
    429: "The server limits the rate of requests.",
    500: "The server itself failed; its own log may say more.",
    501: WRONG_PATH,
    502: GATEWAY,
    503: GATEWAY,
    504: GATEWAY,
}


def _redirected(response: aiohttp.ClientResponse) -> TransportFailure:
    target = response.headers.get("Location", "")
    where = "nowhere"
    if target:
        try:
            joined = response.url.join(URL(target))
            same = (joined.scheme, joined.host, joined.port) == (
                response.url.scheme,
                response.url.host,
                response.url.port,
            )
            # Without the query, which may contain secrets.
            where = (
                str(joined.with_query(None).with_fragment(None).with_user(None)) if same else _origin(joined)
            )
        except ValueError:
            where = "a URL that cannot be read"
    return TransportFailure(
        "status",
        f"HTTP {response.status}: it redirects to {one_line(where, 300)}",
        may_have_run=False,
        hint="Redirects are not followed. If you trust that URL, use it as the entry's url.",
        status=response.status,
    )


def _origin(url: URL) -> str:
    port = f":{url.explicit_port}" if url.explicit_port else ""
    return f"{url.scheme}://{url.host}{port}" if url.host else f"{url.scheme}:"


def content_type_of(response: aiohttp.ClientResponse) -> str:
    """The media type of an answer, without parameters. aiohttp's own `content_type` parses all parameters in
    quadratic time: a header of 8 KB would keep the event loop for more than a second."""
    media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    return media_type if _MEDIA_TYPE.fullmatch(media_type) else "application/octet-stream"


_MEDIA_TYPE: Final = re.compile(r"[\w!#$&^.+-]{1,127}/[\w!#$&^.+-]{1,127}", re.ASCII)


def _in_words(body: bytes, content_type: str, hide: Iterable[str]) -> str:
    """The text of an error's body, if it is for people."""
    if content_type not in ("text/plain", "application/json", "application/problem+json"):
        return ""
    text = cut(body.decode("utf-8", "replace"), 4000)
    parts = (part for secret in hide for part in (secret, secret.rpartition(" ")[2]))
    text = cover(text, (part for part in parts if len(part) >= SECRET_LENGTH))
    return one_line(text[:400], 200).strip()


def answer_seconds(about: About, request_seconds: float) -> float | None:
    """How long an answer that is not a stream may take; None: only the time limit of the request applies."""
    if about.request_id is None or about.is_long_lived:
        return request_seconds
    seconds = max(request_seconds, about.timeout_seconds)
    return None if seconds == math.inf else seconds


def body_of(message: bytes) -> bytes | io.BytesIO:
    """The body of a message. A large one is sent in pieces, because sending it at once would block the event
    loop."""
    return message if len(message) <= PIECE_BYTES else io.BytesIO(message)


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """How long an answer asks the client to wait, in any of the known headers."""
    precise = headers.get("Retry-After-Ms", "").strip()
    if re.fullmatch(r"[0-9]+", precise):
        return min(float(precise) / 1000, LONGEST_STATED_SECONDS)
    return retry_after(headers.get("Retry-After"))


def retry_after(value: str | None) -> float | None:
    """`Retry-After` in seconds: a number or a date, never negative. The caller limits it."""
    if value is None:
        return None
    value = value.strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]{1,9})?", value):
        return min(float(value), LONGEST_STATED_SECONDS)
    try:
        import datetime  # wanted for dates only

        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        seconds = (moment - datetime.datetime.now(datetime.UTC)).total_seconds()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return max(0.0, seconds)


def failure_of(error: BaseException) -> TransportFailure:
    """The failure of a message after an exception of aiohttp or of the network."""
    match error:
        case RequestFailed():
            return error.failure
        case aiohttp.ClientConnectorCertificateError():
            return _unreachable(
                f"its certificate is not trusted: {_tls_reason(error.certificate_error)}",
                "If a company's own authority signed it, name that authority: `tls.ca` or SSL_CERT_FILE.",
            )
        case aiohttp.ClientConnectorSSLError() | ssl.SSLError():
            reason = _tls_reason(_inner(error))
            hint = "Does it speak TLS on that port? A plain server's url begins with http://."
            return _unreachable(f"no TLS connection could be made: {reason}", hint)
        case aiohttp.ClientConnectorDNSError():
            return _unreachable(
                f"its name cannot be resolved: {error.host}", "Is the host in the url spelled right?"
            )
        case aiohttp.ClientProxyConnectionError():
            return _unreachable(
                f"the proxy cannot be reached: {_os_reason(error)}", "Check HTTPS_PROXY or `proxy`."
            )
        case aiohttp.ClientHttpProxyError():
            return _unreachable(f"the proxy refused: HTTP {error.status}", "Check HTTPS_PROXY or `proxy`.")
        case aiohttp.ClientConnectorError():
            return _unreachable(_os_reason(error), "Is the server running, and is the URL right?")
        case aiohttp.ServerTimeoutError() | TimeoutError():
            if isinstance(error, aiohttp.ConnectionTimeoutError):
                return _unreachable(
                    "no connection in time", "Is the URL right, and is the network available?"
                )
            return TransportFailure("timeout", "no answer in time")
        case aiohttp.ClientPayloadError() | aiohttp.ServerDisconnectedError():
            return TransportFailure("broken", "the connection ended before the answer was complete")
        case aiohttp.ClientResponseError():
            return TransportFailure(
                "malformed", f"it does not answer in HTTP: {one_line(error.message, 200)}"
            )
        case aiohttp.InvalidURL():
            return _unreachable("its URL, or the proxy's, cannot be used", "Check `url` and `proxy`.")
        case OSError() | aiohttp.ClientConnectionError():
            return TransportFailure("broken", _os_reason(error))
        case _:
            return TransportFailure("malformed", one_line(f"{type(error).__name__}: {error}", 200))


def _unreachable(cause: str, hint: str) -> TransportFailure:
    return TransportFailure("unreachable", cause, may_have_run=False, hint=hint)


def _tls_reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return one_line(error.verify_message or str(error), 200)
    reason = getattr(error, "reason", None)
    return one_line(str(reason or error), 200).replace("_", " ").lower()


def _inner(error: BaseException) -> BaseException:
    inner: object = getattr(error, "os_error", error)
    return inner if isinstance(inner, BaseException) else error


def _os_reason(error: BaseException) -> str:
    inner = _inner(error)
    # aiohttp raises its own error with the arguments of the one that ended the connection.
    if isinstance(error.__cause__, ssl.SSLError):
        return f"the TLS connection failed: {_tls_reason(error.__cause__)}"
    number = getattr(inner, "errno", None)
    if isinstance(number, int) and number > 0:
        return os.strerror(number).lower()
    if isinstance(inner, ConnectionError) and not str(inner):
        return "the connection was closed"  # asyncio gives no reason if it ends during the TLS handshake
    return one_line(str(inner) or type(inner).__name__, 200)


async def accepts_connections(network: Network) -> bool:
    """Whether a server's address accepts connections: opens one connection and sends nothing."""
    address = network.address
    if network.proxy is not None or address.host is None or address.port is None:
        return False
    try:
        async with asyncio.timeout(PROBE_INTERVAL_SECONDS):
            _, writer = await open_stream(address.host, address.port)
    except (OSError, TimeoutError):
        return False
    writer.transport.abort()
    return True


async def open_stream(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A TCP connection to the first of the name's addresses that accepts one. Raises `OSError`."""
    failure = OSError(f"{host} has no address")
    for info in await resolve(host, port):
        try:
            return await asyncio.open_connection(*info[4][:2])
        except OSError as error:
            failure = error
    raise failure
