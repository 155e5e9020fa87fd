"""T29: Invalid OAuth metadata is refused with its reason, before a browser opens and before a secret is
sent. The first two tables have the fifteen inputs that the official Python client was measured with;
it handled nine of them wrongly. Thirteen are in documents, and refused before a browser opens. The
other two, `iss` and `state`, are in the authorization response of the browser; they are refused
before the code is sent."""

from collections.abc import Callable
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import SignInFailed
from tests.servers.web import answers
from tests.servers.web.auth_world import (
    AUTHORIZATION_SERVER,
    PROTECTED_RESOURCE,
    SECRET,
    AuthWorld,
    Browser,
    answering,
)

pytestmark = pytest.mark.requirement("AUT-1")

MetadataChange = Callable[[AuthWorld], object]
ISSUER_HINT = (
    "Nothing was sent to it. If the change is meant: sign out, correct oauth.issuer and the client id, and "
    "sign in again."
)
RESOURCE_HINT = (
    "Tokens for that resource would be sent to this server. If that is meant, name the resource in the "
    "entry: oauth.resource."
)
PKCE_HINT = (
    "A stolen code could be used by others. If the server is known to support it nevertheless: "
    "oauth.assumePkce in the entry."
)


async def refused(world: AuthWorld, browser: Browser, seconds: float = 20, **oauth: Any) -> SignInFailed:
    """The error of a failed sign-in."""
    settings = {"DRAGOMAN_RECONNECT_ATTEMPTS": 0}
    async with Host({"x": world.entry(**oauth)}, settings=settings) as host:
        await host.ready(timeout=20)
        with pytest.raises(SignInFailed) as caught:
            await host.sign_in("x", browser, timeout=seconds)
        assert host.servers["x"].status == "needs-auth"
    return caught.value


def spelled(text: str | None, world: AuthWorld) -> str | None:
    if text is None:
        return None
    for name in ("mcp", "auth", "other"):
        text = text.replace(f"{{{name}}}", getattr(world, name).origin)
    return text


def server(**changes: Any) -> MetadataChange:
    """The authorization server's document, changed; None removes a field."""

    def lie(world: AuthWorld) -> None:
        for name, value in changes.items():
            if value is None:
                del world.server_document[name]
            else:
                world.server_document[name] = spelled(value, world) if isinstance(value, str) else value

    return lie


def resource(**changes: Any) -> MetadataChange:
    def lie(world: AuthWorld) -> None:
        for name, value in changes.items():
            world.resource_document[name] = (
                [spelled(each, world) for each in value] if isinstance(value, list) else spelled(value, world)
            )

    return lie


def challenged(value: str) -> MetadataChange:
    return lambda world: setattr(world, "challenge", spelled(value, world))


def nothing_published(world: AuthWorld) -> None:
    world.challenge = "Bearer"
    world.resource_document = None


WITH_SECRET = {"clientId": "me", "clientSecret": SECRET}

BEFORE_THE_BROWSER: dict[str, tuple[MetadataChange, dict[str, Any], str, str | None]] = {
    "1 another issuer": (
        server(issuer="{other}"),
        {},
        "the metadata of its authorization server is that of another issuer: {other} instead of {auth}",
        None,
    ),
    "2 a resource of another origin": (
        resource(resource="{other}/mcp"),
        {},
        "its protected-resource metadata is about another resource, {other}/mcp",
        RESOURCE_HINT,
    ),
    "3 a resource above the server": (
        resource(resource="{mcp}"),
        {},
        "its protected-resource metadata is about another resource, {mcp}",
        RESOURCE_HINT,
    ),
    "6 a script as a page": (
        server(authorization_endpoint="javascript:alert(1)"),
        {},
        "authorization_endpoint: the URL does not begin with a scheme and ://",
        None,
    ),
    "7 a shell in the user": (
        server(authorization_endpoint="https://a$(calc)b:p@as.example/authorize"),
        {},
        "authorization_endpoint: the URL holds a user name or password",
        None,
    ),
    "8 no TLS": (
        server(
            authorization_endpoint="http://as.example/authorize", token_endpoint="http://as.example/token"
        ),
        {},
        "token_endpoint is not a plain https URL: http://as.example/token",
        None,
    ),
    "9 a token endpoint elsewhere": (
        server(token_endpoint="{other}/token"),
        {},
        "token_endpoint of its authorization server is at another origin, {other}",
        "If it is known to belong to the issuer: oauth.endpointOrigins: ['{other}'] in the entry.",
    ),
    "10 metadata at a metadata service": (
        challenged('Bearer resource_metadata="http://169.254.169.254/latest/meta-data"'),
        {},
        "http://169.254.169.254 is not contacted: it is not a plain https URL",
        None,
    ),
    "11 an authorization server without TLS in a private network": (
        resource(authorization_servers=["http://10.0.0.5"]),
        {},
        "authorization_servers is not a plain https URL: http://10.0.0.5",
        None,
    ),
    "12 PKCE not stated": (
        server(code_challenge_methods_supported=None),
        {},
        "its authorization server does not state that it supports PKCE with S256",
        PKCE_HINT,
    ),
    "13 a secret whose issuer is not known, and an authorization server of the server's choice": (
        lambda world: None,
        WITH_SECRET,
        "the client secret was not sent to {auth}",
        "Name the issuer it belongs to: oauth.issuer.",
    ),
    "14 a secret whose issuer is not known, and no metadata at all": (
        nothing_published,
        WITH_SECRET,
        "it does not say which authorization server it uses, so the client secret is not sent",
        "Name the issuer in the entry: oauth.issuer.",
    ),
    "15 a secret with an issuer, and another authorization server": (
        resource(authorization_servers=["{other}"]),
        {**WITH_SECRET, "issuer": "{auth}"},
        "it names another authorization server than before: {other} instead of {auth}",
        ISSUER_HINT,
    ),
}


@pytest.mark.parametrize("case", BEFORE_THE_BROWSER)
async def test_t29_hostile_metadata_is_refused_before_a_browser_opens(case: str):
    lie, oauth, cause, hint = BEFORE_THE_BROWSER[case]
    browser = Browser()
    async with AuthWorld() as world:
        lie(world)
        given = {name: spelled(value, world) for name, value in oauth.items()}
        error = await refused(world, browser, **given)
        assert (error.cause, error.hint) == (spelled(cause, world), spelled(hint, world))
        assert (browser.pages, browser.codes, world.token_requests) == ([], [], [])
        for site in (world.mcp, world.auth, world.other):
            assert world.canaries_in(site) == []
        assert world.other.asks == []
        assert {ask.path for ask in world.mcp.asks} <= {
            "/mcp",
            f"{PROTECTED_RESOURCE}/mcp",
            PROTECTED_RESOURCE,
            AUTHORIZATION_SERVER,
        }, "nothing is tried at the server's own origin"


IN_THE_ANSWER: dict[str, tuple[Callable[[dict[str, str]], dict[str, str]], str]] = {
    "4 another issuer": (
        lambda given: {**given, "iss": "https://evil.example"},
        "the answer comes from another authorization server",
    ),
    "4 no issuer, though it was stated": (
        lambda given: {name: value for name, value in given.items() if name != "iss"},
        "the answer does not say which authorization server it comes from, and it should",
    ),
    "4 the issuer with a slash": (
        lambda given: {**given, "iss": given["iss"] + "/"},
        "the answer comes from another authorization server",
    ),
    "5 another state": (
        lambda given: {**given, "state": "guessed"},
        "the browser did not return within 0.3 seconds; an answer with another state was refused",
    ),
}


@pytest.mark.parametrize("case", IN_THE_ANSWER)
async def test_t29_a_hostile_authorization_response_is_refused_before_a_code_is_sent(case: str):
    returns, cause = IN_THE_ANSWER[case]
    browser = Browser(returns)
    async with AuthWorld() as world:
        error = await refused(world, browser, seconds=0.3 if case.startswith("5") else 20)
        assert error.cause == cause
        state = world.asked_at(world.auth, "/authorize")[0].http.query["state"]
        assert state not in f"{error} {error.hint} {error!r}"
        assert len(browser.pages) == 1
        (code,) = world.codes  # issued, and not redeemed
        for site in (world.mcp, world.auth, world.other):
            assert world.asked_at(site, "/token") == []
            assert world.canaries_in(site) == []
            assert not [ask for ask in site.asks if code in f"{ask.path} {ask.headers} {ask.body!r}"]
        assert world.token_requests == []
        status = (await browser.results())[0][0]
        assert status == (400 if case.startswith("5") else 200)


def test_t29_each_of_the_fifteen_inputs_has_a_test_case():
    rows = {int(case.partition(" ")[0]) for case in (*BEFORE_THE_BROWSER, *IN_THE_ANSWER)}
    assert rows == set(range(1, 16))
    assert len(BEFORE_THE_BROWSER) == 13


# --- more documents ---

RESOURCES: dict[str, Any] = {
    "another path of the same host": "{mcp}/other",
    "a path below": "{mcp}/mcp/more",
    "a longer name": "{mcp}x/mcp",
    "a name that begins like it": "https://mcp.example.evil/",
    "no URL": "mcp",
    "a query": "{mcp}/mcp?tenant=2",
    "upper case in the path": "{mcp}/MCP",
}


@pytest.mark.parametrize("case", RESOURCES)
async def test_t29_resource_metadata_about_another_resource_is_refused(case: str):
    browser = Browser()
    async with AuthWorld() as world:
        stated = spelled(RESOURCES[case], world)
        world.resource_document["resource"] = stated
        error = await refused(world, browser)
        assert error.cause == f"its protected-resource metadata is about another resource, {stated}"
        assert (browser.pages, world.auth.asks) == ([], [])


@pytest.mark.parametrize("value", [None, "", 5, ["{mcp}/mcp"]], ids=str)
async def test_t29_resource_metadata_without_a_resource_is_refused(value: Any):
    browser = Browser()
    async with AuthWorld() as world:
        world.resource_document["resource"] = value
        assert (await refused(world, browser)).cause == "its protected-resource metadata has no `resource`"
        assert (browser.pages, world.auth.asks) == ([], [])


ENDPOINTS = (
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "revocation_endpoint",
    "device_authorization_endpoint",
    "jwks_uri",
)


@pytest.mark.parametrize("name", ENDPOINTS)
async def test_t29_every_endpoint_must_have_the_origin_of_the_issuer(name: str):
    browser = Browser()
    async with AuthWorld() as world:
        world.server_document[name] = f"{world.other.origin}/x"
        error = await refused(world, browser)
        assert error.cause == f"{name} of its authorization server is at another origin, {world.other.origin}"
        assert (browser.pages, world.other.asks) == ([], [])


@pytest.mark.parametrize("value", [5, [], {}, True], ids=str)
async def test_t29_an_endpoint_that_is_not_a_string_is_refused(value: Any):
    browser = Browser()
    async with AuthWorld() as world:
        world.server_document["token_endpoint"] = value
        error = await refused(world, browser)
        assert error.cause == "token_endpoint of its authorization server is not a text"
        assert browser.pages == []


BROKEN: dict[str, tuple[Any, str]] = {
    "not found": (answers.status(404), "its authorization server {auth} publishes no metadata"),
    "a page": (answers.html(), "its authorization server {auth} publishes no metadata"),
    "a list": (answering([]), "its authorization server {auth} publishes no metadata"),
    "no issuer": (answering({}), "the metadata of its authorization server names no issuer"),
    "redirect": (answers.redirect(302, "{other}/x"), "its authorization server {auth} publishes no metadata"),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_t29_no_fallback_is_used_where_an_authorization_server_was_named(case: str):
    answer, cause = BROKEN[case]
    browser = Browser()
    async with AuthWorld() as world:
        world.on[AUTHORIZATION_SERVER] = answer
        world.on["/.well-known/openid-configuration"] = answer
        assert (await refused(world, browser)).cause == spelled(cause, world)
        assert browser.pages == []
        assert not {"/authorize", "/token", "/register"} & {ask.path for ask in world.mcp.asks}


async def test_t29_a_stored_sign_in_is_not_replaced_by_a_guessed_authorization_server():
    """The server published metadata at first, and publishes none now."""
    settings = {"DRAGOMAN_RECONNECT_ATTEMPTS": 0}
    async with AuthWorld() as world:
        async with Host({"x": world.entry()}, settings=settings) as host:
            await host.ready(timeout=20)
            assert (await host.sign_in("x", Browser())).status == "connected"
        nothing_published(world)
        world.on["/mcp"] = answers.challenge(401, "Bearer")
        world.mcp.asks.clear()
        browser = Browser()
        error = await refused(world, browser)
        assert (error.cause, error.hint) == (
            f"it names no authorization server any more; before it was {world.auth.origin}",
            ISSUER_HINT,
        )
        assert browser.pages == []
        assert not {"/authorize", "/token", "/register"} & {ask.path for ask in world.mcp.asks}
        assert not any("refresh" in each for each in world.canaries_in(world.mcp))


async def test_t29_a_server_of_2025_03_26_without_metadata_is_its_own_authorization_server():
    async with AuthWorld() as world:
        nothing_published(world)
        error = await refused(world, Browser())
        assert error.cause == "HTTP 404: its authorization server did not register this client"
        assert [ask.path for ask in world.mcp.asks if ask.method == "POST"][-1] == "/register"
