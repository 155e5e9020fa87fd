"""T220: the URL of a caller's sign-in is opened by another person, in another browser, too late, or without
its page."""

import contextlib
import re
from collections.abc import AsyncIterator, Iterator

import pytest

from dragoman.gateway import app
from dragoman.gateway.settings import CallerEntry
from dragoman.interaction import Caller
from tests.callers_site import Browser, CallersSite, begin, call, names
from tests.gateway import ADA, BOB, Client, Running, gateway_of

pytestmark = pytest.mark.requirement("GWY-3")
NOT_FOUND_TITLE = "Nothing to do here"


@pytest.fixture
def site() -> Iterator[CallersSite]:
    with CallersSite() as running:
        yield running


@contextlib.asynccontextmanager
async def begun(site: CallersSite) -> AsyncIterator[tuple[Running, Client, str]]:
    """A gateway with a started sign-in of ada, and its URL."""
    async with gateway_of({"tracker": site.entry}, own=["tracker"]) as running, Client(running.url) as ada:
        yield running, ada, await begin(ada)


async def test_t220_the_page_names_the_caller_and_the_server_and_does_not_redirect_by_itself(
    site: CallersSite,
):
    async with begun(site) as (running, _, link), Browser(site, "anna") as browser:
        page = await browser.open(link)
        assert (page.status, page.title) == (200, "Sign in to tracker")
        assert "<strong>ada</strong>" in page.text
        assert f"http://127.0.0.1:{running.port}" in page.text
        assert site.origin not in page.text
        assert "state=" not in page.text
        assert page.headers["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
        assert re.fullmatch(
            r"dragoman-sign-in-[0-9a-f]{12}=\.[\w-]{32}; Path=/; Max-Age=600; HttpOnly; SameSite=Lax",
            page.headers["Set-Cookie"],
        )


async def test_t220_names_of_callers_and_servers_are_escaped_in_the_page(site: CallersSite):
    name = "<img src=x onerror=alert(1)>"
    callers = {name: CallerEntry(token=ADA)}
    servers = {"t": site.entry}
    async with gateway_of(servers, own=["t"], callers=callers) as running, Client(running.url) as client:
        async with Browser(site, "anna") as browser:
            page = await browser.open(await begin(client, "t__authenticate"))
        assert "<img" not in page.text
        assert "&lt;img src=x onerror=alert(1)&gt;" in page.text


async def test_t220_a_form_post_without_the_page_is_refused(site: CallersSite):
    """A page of another site can make a browser post the form, but knows neither cookie nor token."""
    async with begun(site) as (_, _, link), Browser(site, "anna") as victim, Browser(site, "m") as attacker:
        stolen = (await attacker.open(link)).token
        for token in (stolen, "", "0" * 64):
            refused = await victim.press(link, token)
            assert (refused.status, refused.title) == (400, NOT_FOUND_TITLE)
            assert "Location" not in refused.headers
        await victim.open(link)  # receives its own cookie
        assert (await victim.press(link, stolen)).status == 400
        for origin in ("https://evil.example", "null"):
            token = (await victim.open(link)).token
            assert (await victim.press(link, token, Origin=origin)).title == NOT_FOUND_TITLE
        assert (await victim.press(link, (await victim.open(link)).token)).status == 303


async def test_t220_a_sign_in_url_is_bound_to_the_browser_in_which_the_button_was_pressed(site: CallersSite):
    async with begun(site) as (_, ada, link), Browser(site, "anna") as first, Browser(site, "m") as second:
        early = (await second.open(link)).token
        back = await first.to_return(link)
        assert (await second.open(link)).title == NOT_FOUND_TITLE
        assert (await second.press(link, early)).title == NOT_FOUND_TITLE
        assert (await second.open(back)).title == NOT_FOUND_TITLE, (
            "the answer of another browser is not taken"
        )
        again = await first.to_return(link)
        assert again != back
        assert (await first.open(again)).title == "You are signed in"
        assert (await first.open(link)).title == NOT_FOUND_TITLE, "it was used"
        assert (await first.open(again)).title == NOT_FOUND_TITLE
        assert await call(ada) == "anna"


async def test_t220_a_sign_in_url_expires_with_its_sign_in(site: CallersSite):
    async with begun(site) as (running, ada, link), Browser(site, "anna") as browser:
        page = await browser.open(link)
        back = await browser.to_return(link)
        hosts = running.gateway.callers
        assert hosts is not None
        own = hosts.find(Caller("ada"))
        assert own is not None
        for tool in own.host.sign_in_tools().values():
            await tool.close()
        for ended in (
            await browser.open(link),
            await browser.press(link, page.token),
            await browser.open(back),
        ):
            assert (ended.status, ended.title) == (400, NOT_FOUND_TITLE)
        assert await names(ada) == ["tracker__authenticate"]


@pytest.mark.parametrize(
    "path", ["some-link", ".x-y-z", "all.some-link", "0123456789ab.some", "%2e%2e", "a/b", "é", "x" * 5000]
)
async def test_t220_unknown_sign_in_urls_are_not_found(site: CallersSite, path: str):
    async with begun(site) as (running, _, _), Browser(site, "anna") as browser:
        url = f"http://127.0.0.1:{running.port}/sign-in/{path}"
        for page in (await browser.open(url), await browser.press(url, "x")):
            assert page.status in (400, 404)
            assert path not in page.text


async def test_t220_the_pages_are_served_for_the_gateways_own_host_names_only(site: CallersSite):
    async with begun(site) as (_, _, link), Browser(site, "anna") as browser:
        assert (await browser.open(link, Host="evil.example")).title == NOT_FOUND_TITLE
        assert (await browser.open(link)).title == "Sign in to tracker"


async def test_t220_a_large_form_is_not_read(site: CallersSite):
    async with begun(site) as (_, _, link), Browser(site, "anna") as browser:
        await browser.open(link)
        assert (await browser.press(link, "x" * 10_000)).title == NOT_FOUND_TITLE


async def test_t220_a_gateway_without_caller_sign_ins_does_not_serve_the_pages(site: CallersSite):
    async with gateway_of({"tracker": site.entry}) as running, Browser(site, "anna") as browser:
        for path in ("sign-in/x", "oauth/callback"):
            assert (await browser.open(f"http://127.0.0.1:{running.port}/{path}")).status == 404
        async with Client(running.url, BOB) as bob:
            assert await names(bob) == []


async def test_t220_too_many_browsers_at_once_are_asked_to_retry_later(
    site: CallersSite, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(app, "PAGES_LIMIT", 0)
    async with begun(site) as (running, ada, link), Browser(site, "anna") as browser:
        page = await browser.open(link)
        assert (page.status, page.title) == (429, "Too many sign-ins at this moment")
        assert page.headers["Retry-After"] == "1"
        assert running.gateway.metrics.refused == {429: 1}
        assert "tracker__authenticate" in await names(ada), "calls have a limit of their own"
