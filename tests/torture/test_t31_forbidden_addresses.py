"""T31: Private addresses that a server names (SSRF). None is contacted unless the entry allows it."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.auth.discovery import discover
from dragoman.auth.entry import SignInTarget
from dragoman.auth.errors import AuthProblem, Refused
from dragoman.auth.http import Answer, NetworkAccess, OAuthHttp
from dragoman.auth.metadata import PROTECTED_RESOURCE
from tests.servers.web import answers, site
from tests.torture.projects import Listener

pytestmark = pytest.mark.requirement("AUT-1")

PUBLIC = "https://93.184.216.34/mcp"
"""The address of the configured server. It is never contacted in these tests."""
PRIVATE_REASON = "it has an address in a private network, and the server itself has none"
METADATA_REASON = "it has an address of a local or cloud metadata service"

HOSTS = {
    "127.0.0.1": PRIVATE_REASON,
    "127.1": PRIVATE_REASON,
    "2130706433": PRIVATE_REASON,
    "0x7f000001": PRIVATE_REASON,
    "0177.0.0.1": PRIVATE_REASON,
    "[::1]": PRIVATE_REASON,
    "[::ffff:127.0.0.1]": PRIVATE_REASON,
    "[::ffff:7f00:1]": PRIVATE_REASON,
    "[64:ff9b::7f00:1]": PRIVATE_REASON,
    "[2002:7f00:1::]": PRIVATE_REASON,
    "localhost": PRIVATE_REASON,
    "10.0.0.1": PRIVATE_REASON,
    "172.16.0.1": PRIVATE_REASON,
    "192.168.0.1": PRIVATE_REASON,
    "100.64.0.1": PRIVATE_REASON,
    "[fc00::1]": PRIVATE_REASON,
    "0": METADATA_REASON,
    "0.0.0.0": METADATA_REASON,
    "[::]": METADATA_REASON,
    "169.254.169.254": METADATA_REASON,
    "2852039166": METADATA_REASON,
    "[::ffff:169.254.169.254]": METADATA_REASON,
    "[fe80::1]": METADATA_REASON,
    "[fd00:ec2::254]": METADATA_REASON,
    "100.100.100.200": METADATA_REASON,
    "224.0.0.1": METADATA_REASON,
}


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as listening:
        yield listening


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """By host name: the addresses for each lookup in turn. Other names are not found."""
    known: dict[str, list[list[str]]] = {"localhost": [["127.0.0.1", "::1"]]}

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        found = known[host].pop(0) if len(known[host]) > 1 else known[host][0]
        return [
            (socket.AF_INET6 if ":" in each else socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port))
            for each in found
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return known


class Published(OAuthHttp):
    """A public server with the given documents; everything else is fetched."""

    def __init__(self, documents: dict[str, bytes], *, allow_private: bool = False) -> None:
        super().__init__(PUBLIC, NetworkAccess(), allow_private=allow_private)
        self._documents = documents

    async def get(self, url: str, headers: Any = None) -> Answer:
        if url in self._documents:
            return Answer(200, {}, self._documents[url])
        if url.startswith("https://93.184.216.34/"):
            return Answer(404, {}, b"")
        return await super().get(url, headers)


def resource_naming(issuer: str) -> dict[str, bytes]:
    text = f'{{"resource": "{PUBLIC}", "authorization_servers": ["{issuer}"]}}'
    return {f"https://93.184.216.34{PROTECTED_RESOURCE}/mcp": text.encode()}


async def found(http: OAuthHttp, challenge: dict[str, str] | None = None) -> str:
    with pytest.raises(Refused) as caught:
        await discover(http, SignInTarget(url=PUBLIC), challenge or {})
    return caught.value.cause


@pytest.mark.parametrize("host", HOSTS)
async def test_t31_metadata_at_a_private_address_is_not_fetched(names: Any, listener: Listener, host: str):
    """Named by the 401 challenge, and as the authorization server."""
    for url in (f"https://{host}:{listener.port}/doc", f"https://{host}:{listener.port}"):
        cause = await found(Published({}), {"resource_metadata": url})
        assert cause.endswith(f" is not contacted: {HOSTS[host]}"), cause
        cause = await found(Published(resource_naming(url)))
        assert cause.endswith(f" is not contacted: {HOSTS[host]}"), cause
    assert listener.connections == 0


@pytest.mark.parametrize("host", [host for host, why in HOSTS.items() if why is METADATA_REASON])
async def test_t31_a_cloud_metadata_service_is_not_contacted_even_if_private_addresses_are_allowed(
    names: Any, host: str
):
    http = Published({}, allow_private=True)
    cause = await found(http, {"resource_metadata": f"https://{host}/latest"})
    assert cause.endswith(f" is not contacted: {METADATA_REASON}")


@pytest.mark.parametrize("host", ["①②⑦.①", "127。0。0。1", "１２７.０.０.１"])
async def test_t31_addresses_in_non_ascii_characters_are_refused(names: Any, listener: Listener, host: str):
    cause = await found(Published({}), {"resource_metadata": f"https://{host}:{listener.port}/"})
    assert "is not contacted: it is not a plain https URL" in cause
    assert listener.connections == 0


async def test_t31_a_name_with_one_private_address_among_several_is_refused(names: Any, listener: Listener):
    names["as.example"] = [["93.184.216.34", "127.0.0.1"]]
    cause = await found(Published({}), {"resource_metadata": f"https://as.example:{listener.port}/"})
    assert cause == f"https://as.example:{listener.port} is not contacted: {PRIVATE_REASON}"
    assert listener.connections == 0


async def test_t31_a_name_is_resolved_once_and_that_address_is_used(names: Any, listener: Listener):
    """A name server that answers differently the second time (DNS rebinding) is not asked again."""
    async with site(answers.status(200, "{}")) as here:
        names["as.localhost"] = [["127.0.0.1"], ["169.254.169.254"]]
        http = OAuthHttp("http://127.0.0.1/mcp", NetworkAccess())
        answer = await http.get(f"http://as.localhost:{here.port}/doc")
        assert (answer.status, len(here.asks)) == (200, 1)
        with pytest.raises(Refused, match=METADATA_REASON):
            await http.get(f"http://as.localhost:{here.port}/doc")
        assert len(here.asks) == 1


async def test_t31_a_name_that_later_resolves_to_a_private_address_is_refused(names: Any, listener: Listener):
    names["as.example"] = [["127.0.0.1"]]
    cause = await found(Published({}), {"resource_metadata": f"https://as.example:{listener.port}/"})
    assert cause.endswith(PRIVATE_REASON)
    assert listener.connections == 0


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_t31_a_redirect_is_not_followed(code: int):
    http = OAuthHttp("http://127.0.0.1/mcp", NetworkAccess())
    async with site(answers.status(200)) as elsewhere, site(answers.redirect(code, elsewhere.url)) as here:
        for answer in (
            await http.get(f"{here.origin}/doc"),
            await http.post_form(f"{here.origin}/token", {"code": "c"}),
            await http.post_json(f"{here.origin}/register", {"a": 1}),
        ):
            assert answer.status == code
        assert elsewhere.asks == []


async def test_t31_a_private_authorization_server_can_be_allowed(names: Any):
    async with site(answers.status(404)) as here:
        with pytest.raises(AuthProblem) as caught:
            await discover(
                Published(resource_naming(here.origin), allow_private=True), SignInTarget(url=PUBLIC), {}
            )
        assert caught.value.cause == f"its authorization server {here.origin} publishes no metadata"
        assert len(here.asks) == 2


@pytest.mark.parametrize("server", ["http://127.0.0.1/mcp", "https://10.1.2.3/mcp", "https://intra.example/"])
async def test_t31_a_server_at_a_private_address_may_name_other_private_addresses(names: Any, server: str):
    names["intra.example"] = [["192.168.7.7"]]
    async with site(answers.status(200, "{}")) as here:
        assert (await OAuthHttp(server, NetworkAccess()).get(f"{here.origin}/doc")).status == 200
