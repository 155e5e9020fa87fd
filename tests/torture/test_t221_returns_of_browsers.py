"""T221: a browser returns from the authorization server of a caller's sign-in with a wrong answer."""

import asyncio
import contextlib
import urllib.parse
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.callers_site import Browser, CallersSite, begin, call, names
from tests.gateway import BOB, Client, Running, gateway_of

pytestmark = pytest.mark.requirement("GWY-3")
NOT_FOUND_TITLE = "Nothing to do here"
FAILED = "The sign-in did not succeed"


@pytest.fixture
def site() -> Iterator[CallersSite]:
    with CallersSite() as running:
        yield running


@contextlib.asynccontextmanager
async def gateway(site: CallersSite) -> AsyncIterator[tuple[Running, Client]]:
    async with gateway_of({"tracker": site.entry}, own=["tracker"]) as running, Client(running.url) as ada:
        yield running, ada


def changed(url: str, **parameters: str | None) -> str:
    path, _, query = url.partition("?")
    all_given = {**dict(urllib.parse.parse_qsl(query)), **parameters}
    given = {name: value for name, value in all_given.items() if value is not None}
    return f"{path}?{urllib.parse.urlencode(given)}"


async def test_t221_a_wrong_state_ends_nothing_and_the_right_one_is_accepted_once(site: CallersSite):
    async with gateway(site) as (_, ada), Browser(site, "anna") as browser:
        back = await browser.to_return(await begin(ada))
        twice = f"{back}&state=x"
        for url in (changed(back, state="x"), changed(back, state=None), changed(back, state=""), twice):
            assert (await browser.open(url)).title == NOT_FOUND_TITLE
        assert (await browser.open(back)).title == "You are signed in"
        assert (await browser.open(back)).title == NOT_FOUND_TITLE
        assert await call(ada) == "anna"


@pytest.mark.parametrize("issuer", ["https://evil.example", ""])
async def test_t221_an_answer_with_another_issuer_is_not_used(site: CallersSite, issuer: str):
    site.issuer_of_answers = issuer
    async with gateway(site) as (_, ada), Browser(site, "anna") as browser:
        assert (await browser.sign_in(await begin(ada))).title == FAILED
        assert site.token_forms == [], "the code was sent nowhere"
        said = await call(ada, "tracker__authenticate")
        assert said.startswith("The sign-in to tracker failed: ")
        assert "authorization server" in said


async def test_t221_an_error_is_reported_to_the_caller_and_not_shown_in_the_page(site: CallersSite):
    async with gateway(site) as (_, ada), Browser(site, "anna") as browser:
        back = await browser.to_return(await begin(ada))
        hostile = "<script>alert(1)</script>"
        page = await browser.open(changed(back, code=None, error="access_denied", error_description=hostile))
        assert page.title == FAILED
        assert "alert" not in page.text
        assert "access_denied" not in page.text
        assert "access_denied" in await call(ada, "tracker__authenticate")
        assert await names(ada) == ["tracker__authenticate"]


async def test_t221_a_code_of_another_sign_in_is_rejected(site: CallersSite):
    """An attacker has an authorization code for its own account and wants the gateway to use it for another
    caller."""
    async with (
        gateway(site) as (running, ada),
        Client(running.url, BOB) as bob,
        Browser(site, "anna") as hers,
        Browser(site, "bert") as his,
    ):
        back_of_ada = await hers.to_return(await begin(ada))
        back_of_bob = await his.to_return(await begin(bob))
        code = dict(urllib.parse.parse_qsl(back_of_bob.partition("?")[2]))["code"]
        assert (await hers.open(back_of_bob)).title == NOT_FOUND_TITLE, "its state is bob's"
        assert (await hers.open(changed(back_of_ada, code=code))).title == FAILED, "its verifier is bob's"
        assert await names(ada) == ["tracker__authenticate"]
        assert site.owners == {}


async def test_t221_two_sign_ins_in_one_browser_do_not_interfere(site: CallersSite):
    servers = {"one": site.entry, "two": site.entry}
    async with gateway_of(servers, own=["one", "two"]) as running, Client(running.url) as ada:
        async with Browser(site, "anna") as browser:
            first = await browser.to_return(await begin(ada, "one__authenticate"))
            second = await browser.to_return(await begin(ada, "two__authenticate"))
            assert (await browser.open(first)).title == "You are signed in"
            assert (await browser.open(second)).title == "You are signed in"
        assert [await call(ada, "one__whoami"), await call(ada, "two__whoami")] == ["anna", "anna"]


async def test_t221_an_unreadable_redirect_is_not_logged(site: CallersSite, caplog: pytest.LogCaptureFixture):
    caplog.set_level("DEBUG")
    async with gateway(site) as (running, _), Browser(site, "anna") as browser:
        base = f"http://127.0.0.1:{running.port}/oauth/callback?code=canary"
        assert (await browser.open(f"{base}{'x' * 12_000}")).title == NOT_FOUND_TITLE
        assert (await browser.open(f"{base}{'x' * 20_000}")).status == 400
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(b"GET /oauth/callback?code=canary HTTP/9.z\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.0 400")
        writer.close()
        await writer.wait_closed()
        assert (await browser.open(base, Host="evil.example")).title == NOT_FOUND_TITLE
    assert "canary" not in caplog.text
