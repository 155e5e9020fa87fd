"""Token endpoints with unusual replies. Values are clamped or refused; none of them becomes a header."""

import gzip
from typing import Any

import pytest
from aiohttp import web

from dragoman.errors import SignInFailed
from tests.servers.web import Answer, Ask, answers
from tests.servers.web.auth_world import AuthWorld, Browser, answering
from tests.torture.bystander_host import MEGABYTE, resident_bytes
from tests.torture.signed_in import host_of

pytestmark = pytest.mark.requirement("AUT-1")

GOOD = {"access_token": "cAnary-good", "token_type": "Bearer", "expires_in": 3600}
NO_OBJECT = "its authorization server did not answer with a JSON object"
NO_HEADER = "its authorization server gave a value of access_token that cannot be sent in a header"
NO_KIND = "its authorization server gave a token of a type that cannot be used"


def bomb(size: int) -> Answer:
    packed = gzip.compress(b'{"access_token": "' + b"a" * size + b'"}')

    async def answer(_: Ask) -> web.StreamResponse:
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        return web.Response(body=packed, headers=headers)

    return answer


REFUSED: dict[str, tuple[Answer, str]] = {
    "200 with an error": (answering({**GOOD, "error": "invalid_grant"}), "invalid_grant"),
    "an error that is no text": (answering({"error": ["x"]}, 400), "invalid_request"),
    "an error with escapes": (answering({"error": "a\x1b[2Jb"}, 400), "a\\x1b[2Jb"),
    "no token": (answering({}), "its authorization server answered without an access token"),
    "an empty token": (
        answering({"access_token": ""}),
        "its authorization server answered without an access token",
    ),
    "a number": (answering({**GOOD, "access_token": 5}), NO_HEADER),
    "a line feed": (answering({**GOOD, "access_token": "a\r\nX-Evil: 1"}), NO_HEADER),
    "a line feed at the end": (answering({**GOOD, "access_token": "a\n"}), NO_HEADER),
    "a blank": (answering({**GOOD, "access_token": "a b"}), NO_HEADER),
    "NUL": (answering({**GOOD, "access_token": "a\0"}), NO_HEADER),
    "not ASCII": (answering({**GOOD, "access_token": "é"}), NO_HEADER),
    "100 kB": (answering({**GOOD, "access_token": "a" * 100_000}), NO_HEADER),
    "mac": (answering({**GOOD, "token_type": "mac"}), NO_KIND),
    "no kind of token": (answering({**GOOD, "token_type": {}}), NO_KIND),
    "a page": (answers.html(), NO_OBJECT),
    "a list": (answering([GOOD]), NO_OBJECT),
    "nothing": (answers.status(200), NO_OBJECT),
    "half a document": (answers.status(200, '{"access_token": "a'), NO_OBJECT),
    "a deep document": (answers.status(200, '{"a":' * 40_000), NO_OBJECT),
    "5 MB": (answers.status(200, "x" * 5_000_000), "{auth} answered more than 256 kB"),
    "a bomb": (bomb(200 * MEGABYTE), "{auth} answered more than 256 kB"),
    "a redirect": (
        answers.redirect(307, "{other}/token"),
        "HTTP 307: its authorization server refused the request",
    ),
    "403": (answers.html(403), "HTTP 403: its authorization server refused the request"),
    "503": (answers.html(503), "its authorization server answered with HTTP 503"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_t37_a_reply_that_cannot_be_used_is_refused_with_an_error(case: str):
    answer, cause = REFUSED[case]
    async with AuthWorld() as world, host_of(world) as host:
        await host.ready(timeout=20)
        world.on["/token"] = answer
        before = resident_bytes()
        with pytest.raises(SignInFailed) as caught:
            await host.sign_in("x", Browser())
        assert caught.value.cause == cause.replace("{auth}", world.auth.origin)
        assert resident_bytes() - before < 64 * MEGABYTE
        assert world.other.asks == []
        assert (await host.sign_in_state("x")).status == "signed-out"
        assert not any("Authorization" in ask.headers for ask in world.mcp.asks)


HOUR = 3600
TEN_YEARS = 10 * 365 * 86400
EXPIRIES: list[tuple[Any, int | None]] = [
    (HOUR, HOUR),
    (f"{HOUR}", HOUR),
    (float(HOUR), HOUR),
    (None, None),
    ("soon", None),
    ([], None),
    (True, None),
    (0, None),
    (-5, None),
    ("-5", None),
    ("nan", None),
    (1e18, TEN_YEARS),
    ("1e18", TEN_YEARS),
    (10**400, None),
    ("9" * 400, TEN_YEARS),
]


@pytest.mark.parametrize(("stated", "expected"), EXPIRIES, ids=lambda each: str(each)[:12])
async def test_t37_an_invalid_token_lifetime_is_clamped_or_ignored(stated: Any, expected: int | None):
    async with AuthWorld() as world, host_of(world) as host:
        await host.ready(timeout=20)
        world.accepted.add("cAnary-good")
        world.on["/token"] = answering({**GOOD, "expires_in": stated})
        assert (await host.sign_in("x", Browser())).status == "connected"
        state = await host.sign_in_state("x")
        if expected is None:
            assert state.expires_in_seconds is None
        else:
            assert state.expires_in_seconds is not None
            assert expected - 60 <= state.expires_in_seconds <= expected


REGISTRATIONS: dict[str, tuple[Answer, str | None]] = {
    "no id": (answering({}, 201), "its authorization server answered the registration without a client id"),
    "an id that is no text": (
        answering({"client_id": 5}, 201),
        "its authorization server answered the registration without a client id",
    ),
    "a page": (
        answers.html(201),
        "its authorization server answered the registration without a client id",
    ),
    "an error": (
        answering({"error": "invalid_redirect_uri", "error_description": "no"}, 400),
        "invalid_redirect_uri: no",
    ),
    "500": (answers.html(500), "HTTP 500: its authorization server did not register this client"),
    "a secret that is missing": (
        answering({"client_id": "c", "token_endpoint_auth_method": "client_secret_basic"}, 201),
        "its authorization server registered this client without the secret that it demands",
    ),
    "a method that is unknown": (
        answering({"client_id": "client-1", "token_endpoint_auth_method": ["x"]}, 201),
        None,
    ),
    "an endless secret": (
        answering({"client_id": "client-1", "client_secret": "s", "client_secret_expires_at": 10**400}, 201),
        None,
    ),
}


@pytest.mark.parametrize("case", REGISTRATIONS)
async def test_t37_an_unusual_registration_is_accepted_or_refused_before_a_browser_opens(case: str):
    answer, cause = REGISTRATIONS[case]
    browser = Browser()
    async with AuthWorld() as world, host_of(world) as host:
        await host.ready(timeout=20)
        world.on["/register"] = answer
        if cause is None:
            assert (await host.sign_in("x", browser)).status == "connected"
            return
        with pytest.raises(SignInFailed) as caught:
            await host.sign_in("x", browser)
        assert caught.value.cause == cause
        assert browser.pages == []
