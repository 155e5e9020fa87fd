"""T78: Web pages in a browser, and DNS rebinding, reach no server."""

import pytest

from dragoman.gateway.access import Addresses, RequestRefused
from tests.gateway import ADA, MODERN, Client, gateway_of
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-3")
HOSTS = [
    "evil.example",
    "localhost.evil.example:{port}",
    "localhost:1",
    "127.0.0.1",
    "127.0.0.1:{port}.",
    "[::1]",
]
ORIGINS = ["http://evil.example", "null", "http://localhost.evil.example", "http://127.0.0.1:1", "file://"]
PATHS = {
    "/mcp": ("POST", "GET", "DELETE", "OPTIONS", "PUT"),
    "/sse": ("GET",),
    "/messages": ("POST",),
    "/ws": ("GET",),
}
FORMS = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/json", ""]
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
EVERY = [(path, method) for path, methods in PATHS.items() for method in methods]


@pytest.mark.parametrize(("path", "method"), EVERY)
async def test_t78_other_hosts_and_origins_are_refused_with_every_method(path: str, method: str):
    office = Office()
    async with gateway_of({"office": office}) as running, Client(running.url) as client:
        url = f"http://127.0.0.1:{running.port}{path}"
        for host in HOSTS:
            headers = {**client.headers, "Host": host.format(port=running.port)}
            async with client.http.request(method, url, headers=headers) as response:
                assert (host, response.status) == (host, 421)
        for origin in ORIGINS:
            headers = {**client.headers, "Origin": origin}
            async with client.http.request(method, url, headers=headers) as response:
                assert (origin, response.status) == (origin, 403)
                assert "Access-Control-Allow-Origin" not in response.headers
    assert office.ledger == []


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/json", ""],
)
@pytest.mark.parametrize("path", ["/mcp", "/messages?session=x"])
async def test_t78_a_form_submission_of_a_web_page_is_refused(path: str, content_type: str):
    async with gateway_of({"office": Office()}) as running, Client(running.url) as client:
        client.url = f"http://127.0.0.1:{running.port}{path}"
        reply = await client.post(
            b'{"jsonrpc":"2.0","id":1,"method":"ping"}', **{"Content-Type": content_type}
        )
        assert (reply.status, reply.last) == (415, {"error": "the body must be application/json"})


async def test_t78_unsupported_methods_are_refused():
    async with gateway_of({"office": Office()}) as running, Client(running.url) as client:
        for method in ("OPTIONS", "PUT", "PATCH", "TRACE"):
            async with client.http.request(method, client.url, headers=client.headers) as response:
                assert (response.status, response.headers["Allow"]) == (405, "POST, GET, DELETE")


async def test_t78_pages_of_an_allowed_origin_may_use_the_gateway():
    async with gateway_of({"office": Office()}) as running, Client(running.url) as client:
        reply = await client.post(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
            Origin=f"http://localhost:{running.port}",
            **{"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"},
        )
        assert reply.last["error"]["code"] == -32602  # it was read: only its metadata is missing


@pytest.mark.parametrize(
    ("hosts", "origins", "status"),
    [
        (["tools.example.com"], [], None),
        (["TOOLS.example.com"], ["https://tools.example.com"], None),
        (["127.0.0.1:80"], [], None),
        (["localhost"], [], None),
        ([], [], 421),
        (["tools.example.com", "evil.example"], [], 421),
        (["tools.example.com:443"], [], 421),
        (["tools.example.com"], ["https://tools.example.com", "https://evil.example"], 403),
        (["tools.example.com"], ["https://tools.example.com.evil.example"], 403),
    ],
)
def test_t78_host_and_origin_are_compared_with_the_allowed_names(
    hosts: list[str], origins: list[str], status: int | None
):
    addresses = Addresses.of("127.0.0.1", 80, ["tools.example.com"])
    try:
        addresses.check(hosts, origins)
        found = None
    except RequestRefused as refused:
        found = refused.status
    assert found == status


async def test_t78_a_websocket_from_another_origin_is_refused_before_the_upgrade():
    async with gateway_of({"office": Office()}) as running, Client(running.url) as client:
        headers = {
            "Authorization": f"Bearer {ADA}",
            "Origin": "http://evil.example",
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        }
        url = f"http://127.0.0.1:{running.port}/ws"
        async with client.http.get(url, headers=headers) as response:
            assert response.status == 403
