"""T355: the issuer of access tokens stalls, fails, or publishes an unreadable key, while clients with valid
tokens use the gateway."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from joserfc.jwk import ECKey

from dragoman.gateway import jwt
from dragoman.gateway.jwt import KEYS_SECONDS, RETRY_SECONDS, JwtVerifier
from tests.servers.web import Ask
from tests.torture.test_t77_fail_closed import Issuer, entry_of

pytestmark = pytest.mark.requirement("GWY-3")


class StallingIssuer(Issuer):
    def __init__(self) -> None:
        super().__init__()
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.stalled = asyncio.Event()

    async def answer(self, ask: Ask) -> web.StreamResponse:
        if not self.goes_on.is_set():
            self.stalled.set()
            await self.goes_on.wait()
        return await super().answer(ask)


async def test_t355_a_token_of_an_unknown_caller_does_not_delay_valid_tokens():
    now = 1000.0
    async with StallingIssuer() as issuer, asyncio.timeout(20):
        verify = JwtVerifier(entry_of(issuer), lambda: now)
        assert await verify(issuer.token()) is not None
        issuer.goes_on.clear()
        now += RETRY_SECONDS + 1
        nobody = asyncio.create_task(verify("a.b.c"))
        await issuer.stalled.wait()
        assert await verify(issuer.token()) is not None
        issuer.goes_on.set()
        assert await nobody is None


@pytest.mark.parametrize("how", ["stalls", "fails"])
async def test_t355_known_keys_are_used_while_the_issuer_does_not_answer(
    how: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jwt, "WAIT_SECONDS", 0.05)
    now = 1000.0
    async with StallingIssuer() as issuer, asyncio.timeout(20):
        verify = JwtVerifier(entry_of(issuer), lambda: now)
        assert await verify(issuer.token()) is not None
        issuer.is_down = how == "fails"
        if how == "stalls":
            issuer.goes_on.clear()
        now += KEYS_SECONDS + 1
        found = await asyncio.gather(*(verify(issuer.token()) for _ in range(20)))
        assert None not in found
        issuer.goes_on.set()


async def test_t355_requests_before_the_first_answer_share_one_key_request():
    async with StallingIssuer() as issuer, asyncio.timeout(20):
        verify = JwtVerifier(entry_of(issuer), lambda: 1000.0)
        issuer.goes_on.clear()
        waiting = [asyncio.create_task(verify(issuer.token())) for _ in range(20)]
        await issuer.stalled.wait()
        waiting.pop().cancel()
        issuer.goes_on.set()
        assert None not in await asyncio.gather(*waiting)
        assert [ask.path for ask in issuer.asks].count("/jwks") == 1


class InvalidKey:
    def __init__(self, **members: Any) -> None:
        self.members = members

    def as_dict(self, **_: Any) -> dict[str, Any]:
        return self.members


INVALID: dict[str, Callable[[], InvalidKey]] = {
    "unknown kind": lambda: InvalidKey(kty="AKP", alg="ML-DSA-44", pub="AA"),
    "unknown curve": lambda: InvalidKey(kty="EC", crv="P-999", x="AA", y="AA"),
    "no numbers": lambda: InvalidKey(kty="RSA", kid="rsa"),
    "not on the curve": lambda: InvalidKey(kty="EC", crv="P-256", x="AA", y="AA"),
    "nothing": InvalidKey,
}


@pytest.mark.parametrize("odd", INVALID.values(), ids=INVALID.keys())
async def test_t355_an_unreadable_key_does_not_affect_the_others(odd: Callable[[], InvalidKey]):
    async with Issuer() as issuer:
        other = ECKey.generate_key("P-256", {"kid": "one"})
        issuer.keys = [odd(), *issuer.keys]
        verify = JwtVerifier(entry_of(issuer), lambda: 1000.0)
        assert await verify(issuer.token()) is not None
        assert await verify(issuer.token(other)) is None
