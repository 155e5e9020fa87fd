"""T23: Failures of TLS and name resolution are reported in plain words, and never lead to a connection
without TLS."""

import datetime
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dragoman.errors import Unreachable
from tests.certificates import Authority, secured
from tests.servers.web import Site, http_sse, streamable, websocket
from tests.torture.bystander_host import at_once

SITES = {"http": streamable, "sse": http_sse, "ws": websocket}
KINDS = tuple(SITES)
SECRET = "s3cret-t0ken"
DAY = datetime.timedelta(days=1)
INTERNAL_WORDS = ("aiohttp", "Errno", "errno", "_ssl.c", "Traceback", "Exception", "None", "ssl:", SECRET)
"""Words that an error message for a person must not contain."""


def entry(kind: str, url: str, **more: object) -> dict[str, object]:
    return {"type": kind, "url": url, "headers": {"Authorization": f"Bearer {SECRET}"}, **more}


async def refusal(bystander_host, entry: dict[str, object]) -> Unreachable:
    """The reason for which a server could not be reached, reported at once and readable for a person."""
    async with bystander_host(entry, wait=False) as a:
        async with at_once():
            await a.host.ready(timeout=20)
        error = a.view.error
        assert a.view.status == "failed"
        assert type(error) is Unreachable, repr(error)
        assert error.hint
        told = f"{error} {error.hint} {a.view.reason}"
        assert not [word for word in INTERNAL_WORDS if word in told], told
    return error


CERTIFICATES = {
    "expired": ({"begins": -2 * DAY, "ends": -DAY}, "expired"),
    "of tomorrow": ({"begins": DAY, "ends": 2 * DAY}, "not yet valid"),
    "of another name": ({"place": "example.com"}, "mismatch"),
    "of another address": ({"place": "127.0.0.2"}, "mismatch"),
}


@pytest.mark.requirement("LIF-3")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("fault", "words"), CERTIFICATES.values(), ids=CERTIFICATES.keys())
async def test_t23_an_invalid_certificate_prevents_the_connection(
    bystander_host, tmp_path, kind, fault, words
):
    authority = Authority(tmp_path)
    server = secured(SITES[kind](), authority.serving(authority.issue("faulty", **fault)))
    async with server:
        error = await refusal(bystander_host, entry(kind, server.url, tls={"ca": authority.file}))
    assert "its certificate is not trusted" in str(error)
    assert words in str(error)
    assert server.asks == [], "nothing was said to it"


@pytest.mark.requirement("LIF-3")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trusted", ["the usual ones", "another"])
async def test_t23_an_unknown_certificate_authority_prevents_the_connection(
    bystander_host, tmp_path, kind, trusted
):
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    server = secured(SITES[kind](), authority.serving())
    tls = {} if trusted == "the usual ones" else {"tls": {"ca": other.file}}
    async with server:
        error = await refusal(bystander_host, entry(kind, server.url, **tls))
    assert "its certificate is not trusted" in str(error)
    assert "tls.ca" in (error.hint or "")
    assert server.asks == []


@pytest.mark.parametrize("kind", KINDS)
async def test_t23_the_same_server_is_reached_when_its_certificate_authority_is_trusted(
    bystander_host, tmp_path, kind
):
    authority = Authority(tmp_path)
    server = secured(SITES[kind](), authority.serving())
    async with server, bystander_host(entry(kind, server.url, tls={"ca": authority.file})) as a:
        assert a.view.status == "connected", a.view.reason
        assert await a.call("echo", text="in private") == "in private"


@asynccontextmanager
async def listener(kind: str, *, tls: bool, folder) -> AsyncIterator[Site]:
    server = SITES[kind]()
    async with secured(server, Authority(folder).serving()) if tls else server:
        yield server


@pytest.mark.requirement("LIF-3")
@pytest.mark.parametrize("kind", KINDS)
async def test_t23_a_server_without_tls_at_an_https_url_gets_no_plain_http_request(
    bystander_host, tmp_path, kind
):
    async with listener(kind, tls=False, folder=tmp_path) as server:
        scheme, _, rest = server.url.partition("://")
        error = await refusal(bystander_host, entry(kind, f"{scheme}s://{rest}"))
        assert "no TLS connection could be made" in str(error)
        assert "http://" in (error.hint or "")
        assert server.asks == [], "no downgrade"


@pytest.mark.requirement("LIF-3")
@pytest.mark.parametrize("kind", KINDS)
async def test_t23_a_server_with_tls_at_an_http_url_is_reported_as_such(bystander_host, tmp_path, kind):
    async with listener(kind, tls=True, folder=tmp_path) as server:
        error = await refusal(bystander_host, entry(kind, server.url.replace("s://", "://", 1)))
        assert server.asks == []
    assert "https://" in (error.hint or "")


NAMES = {
    "no such name": socket.EAI_NONAME,
    "the name server fails": socket.EAI_AGAIN,
    "the name server refuses": socket.EAI_FAIL,
}


@pytest.mark.requirement("LIF-3")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", NAMES.values(), ids=NAMES.keys())
async def test_t23_the_error_names_a_host_name_that_cannot_be_resolved(
    bystander_host, monkeypatch, kind, number
):
    def fails(host, *_, **__):
        raise socket.gaierror(number, f"no luck with {host}")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    scheme = "wss" if kind == "ws" else "https"
    error = await refusal(bystander_host, entry(kind, f"{scheme}://mcp.nowhere.invalid/mcp"))
    assert "its name cannot be resolved" in str(error)
    assert "mcp.nowhere.invalid" in str(error)
    assert "spelled right" in (error.hint or "")


@pytest.mark.requirement("LIF-3")
@pytest.mark.parametrize("kind", KINDS)
async def test_t23_a_name_server_that_never_answers_is_bounded_by_the_connect_timeout(
    bystander_host, monkeypatch, kind
):
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait())
    settings = {"MCP_TIMEOUT": 500, "DRAGOMAN_PROBE_TIMEOUT_MS": 200}
    url = f"{'ws' if kind == 'ws' else 'http'}://mcp.nowhere.invalid/mcp"
    async with bystander_host(entry(kind, url), settings=settings, wait=False) as a:
        async with at_once(0.5 + 1.5):
            await a.host.ready(timeout=20)
        assert a.view.status == "failed"
        assert a.view.error is not None
        assert a.view.error.code in ("connect-timeout", "unreachable")
    over.set()


@pytest.mark.parametrize("kind", KINDS)
async def test_t23_a_refused_connection_is_reported_in_plain_words(bystander_host, kind):
    with socket.socket() as keeper:  # bound and not listening: no other program gets the port meanwhile
        keeper.bind(("127.0.0.1", 0))
        scheme = "ws" if kind == "ws" else "http"
        error = await refusal(
            bystander_host, entry(kind, f"{scheme}://127.0.0.1:{keeper.getsockname()[1]}/mcp")
        )
    assert "connection refused" in str(error)
    assert "running" in (error.hint or "")
