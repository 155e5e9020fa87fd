"""The issuer of an authorization response (RFC 9207), in every combination; and mix-up attacks."""

import asyncio
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from dragoman.auth.authorization import Attempt, CallbackAnswer, code_in
from dragoman.auth.errors import AuthProblem, Refused, Rejected
from dragoman.errors import SignInFailed
from tests.servers.web.auth_world import AuthWorld, Browser, Onlooker, ended_at, visit
from tests.torture.signed_in import host_of

pytestmark = pytest.mark.requirement("AUT-1")

ISSUER = "https://as.example/tenant"
MISSING = "the answer does not say which authorization server it comes from, and it should"
OTHER = "the answer comes from another authorization server"
STATED: dict[str, tuple[str | None, str | None]] = {
    "absent": (None, None),
    "equal": (ISSUER, None),
    "another": ("https://evil.example/tenant", OTHER),
    "with a slash": (f"{ISSUER}/", OTHER),
    "in upper case": ("https://AS.example/tenant", OTHER),
    "with its port": ("https://as.example:443/tenant", OTHER),
    "escaped": ("https://as.example/%74enant", OTHER),
    "with a blank": (f"{ISSUER} ", OTHER),
    "empty": ("", OTHER),
}


def attempt(*, sends_issuer: bool) -> Attempt:
    return Attempt("https://as.example/authorize", "s", "v", "http://127.0.0.1:1/", ISSUER, sends_issuer, ())


@pytest.mark.parametrize("said", ["code", "error"])
@pytest.mark.parametrize("sends_issuer", [False, True], ids=["not advertised", "advertised"])
@pytest.mark.parametrize("case", STATED)
def test_t32_the_issuer_of_an_authorization_response_is_checked(case: str, sends_issuer: bool, said: str):
    stated, cause = STATED[case]
    if stated is None and sends_issuer:
        cause = MISSING
    given = {"state": "s", said: "cAnary", "error_description": "cAnary, too"}
    if stated is not None:
        given["iss"] = stated
    answer = CallbackAnswer(given)
    if cause is not None:
        with pytest.raises(Refused) as refused:
            code_in(attempt(sends_issuer=sends_issuer), answer)
        assert refused.value.cause == cause, "and nothing of what it says"
    elif said == "error":
        with pytest.raises(Rejected) as rejected:
            code_in(attempt(sends_issuer=sends_issuer), answer)
        assert rejected.value.cause == "cAnary: cAnary, too"
    else:
        assert code_in(attempt(sends_issuer=sends_issuer), answer) == "cAnary"


@pytest.mark.parametrize("state", [None, "", "S", "s ", "t", "ş"])
def test_t32_the_state_is_checked_before_everything_else(state: str | None):
    given = {"iss": ISSUER, "code": "c", "error": "e"} | ({} if state is None else {"state": state})
    with pytest.raises(AuthProblem) as caught:
        code_in(attempt(sends_issuer=True), CallbackAnswer(given))
    assert caught.value.cause == "the browser returned with an answer to another sign-in"


async def test_t32_an_error_from_another_issuer_is_never_shown():
    def returns(given: dict[str, str]) -> dict[str, str]:
        wrong = {
            "error": "access_denied",
            "error_description": "Call +1 555 cAnary",
            "iss": "https://evil.example",
        }
        return {"state": given["state"], **wrong}

    async with AuthWorld() as world, host_of(world) as host:
        await host.ready(timeout=20)
        with pytest.raises(SignInFailed) as caught:
            await host.sign_in("x", Browser(returns))
        assert caught.value.cause == OTHER
        assert "cAnary" not in f"{caught.value!r} {caught.value.hint}"


async def test_t32_an_error_from_the_expected_issuer_is_shown_sanitized():
    def returns(given: dict[str, str]) -> dict[str, str]:
        return {**given, "error": "access_denied", "error_description": "no\x1b[2J\nway"}

    async with AuthWorld() as world, host_of(world) as host:
        await host.ready(timeout=20)
        with pytest.raises(SignInFailed) as caught:
            await host.sign_in("x", Browser(returns))
        assert caught.value.cause.startswith("access_denied: no")
        assert "\x1b" not in caught.value.cause
        assert "\n" not in caught.value.cause
        assert world.token_requests == []


async def test_t32_swapped_responses_of_two_sign_ins_are_both_refused():
    async with AuthWorld() as first, AuthWorld() as second:
        screens = {"x": Onlooker(), "y": Onlooker()}
        async with host_of(first, more={"y": second.entry()}) as host:
            await host.ready(timeout=20)
            attempts = [asyncio.create_task(host.sign_in(name, screen)) for name, screen in screens.items()]
            for screen in screens.values():
                await screen.shown.wait()
            targets = {name: await ended_at(screen.pages[0]) for name, screen in screens.items()}
            queries = {name: urlsplit(target).query for name, target in targets.items()}
            for name, other in (("x", "y"), ("y", "x")):
                # With the state of the other sign-in, and with its own state and the other's issuer and code.
                place = targets[name].partition("?")[0]
                assert (await visit(f"{place}?{queries[other]}"))[0] == 400
                mixed = {**parse_qs(queries[other]), "state": parse_qs(queries[name])["state"]}
                visiting = asyncio.create_task(visit(f"{place}?{urlencode(mixed, doseq=True)}"))
                with pytest.raises(SignInFailed) as caught:
                    await attempts[0 if name == "x" else 1]
                assert caught.value.cause == OTHER
                assert (await visiting)[0] == 200
        assert first.token_requests == second.token_requests == []
