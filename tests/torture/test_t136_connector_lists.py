"""T136: a connector list is requested with its own bearer token only, and contributes public addresses
only."""

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from dragoman import Host
from dragoman.config.connectors import entries_of
from dragoman.config.scopes import Sources
from tests.torture import projects

pytestmark = pytest.mark.requirement("CFG-1")

ADDRESSES = (
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[::a9fe:a9fe]",
    "[::ffff:0:127.0.0.1]",
    "[::ffff:0:a9fe:a9fe]",
    "[64:ff9b:1::7f00:1]",
    "[fec0::1]",
    "[5f00::1]",
    "127.0.0.1.",
    "①②⑦.0.0.1",
    "127。0。0。1",
    "[fe80::1%25eth0]",
    "[::1%25lo]",
    "localhost.localdomain",
    "LOCALHOST6",
    "ip6-localhost",
    "ip6-loopback.",
    "loc%61lhost",
)


@pytest.mark.parametrize("host", ADDRESSES)
def test_t136_other_spellings_of_non_public_addresses_are_left_out(host: str):
    servers, problems = entries_of({"mcpServers": {"box": {"url": f"https://{host}/mcp"}}})
    assert servers == {}
    assert len(problems) == 1


@pytest.mark.parametrize("host", ["[2606:4700::1111]", "[2002:101:101::]", "[64:ff9b::101:101]", "1.1.1.1"])
def test_t136_public_addresses_are_admitted(host: str):
    entry = {"url": f"https://{host}/mcp"}
    assert entries_of({"mcpServers": {"box": entry}}) == ({"box": entry}, [])


class Endpoint:
    def __init__(self) -> None:
        self.authorizations: list[str | None] = []
        self.proxied: list[str] = []
        self.port = 0

    async def answer(self, request: web.Request) -> web.Response:
        self.authorizations.append(request.headers.get("Authorization"))
        if request.raw_path.startswith("http://"):
            self.proxied.append(request.raw_path)
        return web.json_response({"mcpServers": {"figma": {"url": "https://figma.example.com/mcp"}}})


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    found = Endpoint()
    app = web.Application()
    app.router.add_get("/{path:.*}", found.answer)
    async with TestServer(app) as server:
        found.port = server.port or 0
        yield found


async def fetched(home: Path, connectors: dict[str, Any]) -> dict[str, str]:
    """The servers of the list, and their scopes."""
    projects.user(home, {"connectors": connectors})
    async with Host.configured(permission_mode="dontAsk", only=["none"]) as host:
        await host.ready(timeout=30)
        cache = Sources.here().connectors_cache
        assert "figma.example.com" in cache.read_text()
        return {name: server.scope for name, server in host.configuration.servers.items()}


@pytest.mark.parametrize("line", ["machine 127.0.0.1", "default"])
@pytest.mark.parametrize("bearer", [None, "t0ken"])
async def test_t136_no_password_of_the_person_is_sent_to_the_endpoint(
    home: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, bearer: str | None, line: str
):
    (home / ".netrc").write_text(f"{line}\nlogin me\npassword hunter2\n")
    (home / ".netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(home / ".netrc"))
    await fetched(home, {"url": f"http://127.0.0.1:{endpoint.port}/list", "bearer": bearer})
    assert endpoint.authorizations == [None if bearer is None else f"Bearer {bearer}"]


async def test_t136_the_list_is_requested_through_the_proxy_of_the_environment(
    home: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{endpoint.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"http://127.0.0.1:{other.getsockname()[1]}/list"
        await fetched(home, {"url": url})
    assert endpoint.proxied == [url]
