"""The token of one server is sent to that server's URL only, and never in a URL."""

import pytest

from dragoman import Host
from dragoman.auth.entry import OAuthSettings
from dragoman.auth.registration import ConfiguredClient
from tests.servers.web import answers, site
from tests.servers.web.auth_world import AuthWorld, Browser
from tests.torture.signed_in import QUIET, host_of, sign_in_before

pytestmark = pytest.mark.requirement("AUT-1")


async def test_t40_the_token_of_one_server_is_not_sent_to_similar_servers():
    """The same name at another port, another path, another name at the same URL."""
    async with AuthWorld() as world, site(answers.status(404)) as neighbour:
        sign_in_before(world)
        account_token = next(iter(world.accepted))
        for name, url in {
            "x": neighbour.url,
            "y": world.mcp.url,
            "z": f"{world.mcp.origin}/other",
            "w": f"{world.mcp.url}?tenant=2",
            "v": f"{world.mcp.url}/",
        }.items():
            async with Host({name: {"type": "http", "url": url}}, settings=QUIET) as host:
                await host.ready(timeout=20)
                assert host.servers[name].status != "connected"
        for here in (world.mcp, neighbour):
            assert world.canaries_in(here) == []
        async with host_of(world) as host:
            await host.ready(timeout=20)
            assert host.servers["x"].status == "connected"
        assert world.canaries_in(world.mcp) == [account_token]


async def test_t40_no_request_has_a_token_in_its_url():
    async with AuthWorld() as world:
        async with host_of(world) as host:
            await host.ready(timeout=20)
            browser = Browser()
            await host.sign_in("x", browser)
            world.expire_tokens()
            await host.call("mcp__x__echo", {"text": "x"})
            await host.sign_out("x")
        for here in (world.mcp, world.auth, world.other):
            assert [ask.path for ask in here.asks if "cAnary" in ask.path] == []
        assert "cAnary" not in browser.pages[0]
        assert world.canaries_in(world.other) == []


async def test_t40_the_mcp_server_receives_access_tokens_only():
    async with AuthWorld() as world:
        async with host_of(world) as host:
            await host.ready(timeout=20)
            await host.sign_in("x", Browser())
            world.expire_tokens()
            await host.call("mcp__x__echo", {"text": "x"})
        seen = world.canaries_in(world.mcp)
        assert seen
        assert all(each.startswith("cAnary-access-") for each in seen)


DIFFERENT = {
    "name": OAuthSettings(server="y", url="https://a.example/mcp"),
    "path": OAuthSettings(server="x", url="https://a.example/other"),
    "port": OAuthSettings(server="x", url="https://a.example:444/mcp"),
    "headers": OAuthSettings(server="x", url="https://a.example/mcp", headers={"X-Tenant": "2"}),
    "client": OAuthSettings(server="x", url="https://a.example/mcp", client=ConfiguredClient("other")),
    "identity": OAuthSettings(server="x", url="https://a.example/mcp", identity="work"),
    "grant": OAuthSettings(server="x", url="https://a.example/mcp", grant="client_credentials"),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_t40_entries_with_different_settings_have_separate_tokens(what: str):
    assert DIFFERENT[what].key != OAuthSettings(server="x", url="https://a.example/mcp").key


def test_t40_different_spellings_of_one_url_share_a_token():
    assert (
        OAuthSettings(server="x", url="HTTPS://A.example:443/mcp").key
        == OAuthSettings(server="x", url="https://a.example/mcp").key
    )
