"""T841: when tokens are refreshed, something else answers for the authorization server: the page of a proxy,
of maintenance or of a network's sign-in; or it says itself that it cannot answer now. The refresh token stays
valid, so no sign-in is required: the server is connected again once the endpoint answers."""

import pytest

from dragoman.credentials import Challenge
from dragoman.errors import Unreachable
from tests.servers.web import Answer, answers
from tests.servers.web.auth_world import AuthWorld, answering
from tests.torture.signed_in import credentials_of, sign_in_before

pytestmark = pytest.mark.requirement("AUT-3")
ANSWERS: dict[str, Answer] = {
    "temporarily_unavailable": answering({"error": "temporarily_unavailable"}, 400),
    "server_error": answering({"error": "server_error"}, 400),
    "a page": answers.html(200),
    "a redirect": answers.redirect(302, "{other}/login"),
    "the page of a proxy": answers.html(403),
    "the page of a content network": answers.html(522),
}


@pytest.mark.parametrize("case", ANSWERS)
async def test_t841_no_sign_in_is_required(case: str):
    async with AuthWorld() as world:
        sign_in_before(world)
        credentials = credentials_of(world)
        sent = await credentials.headers()
        world.on["/token"] = ANSWERS[case]
        with pytest.raises(Unreachable):
            await credentials.renew(Challenge(401, sent=sent))
        del world.on["/token"]
        assert await credentials.renew(Challenge(401, sent=sent)) is True
        assert (world.refreshes, world.reuses) == (1, 0)


@pytest.mark.parametrize("case", ANSWERS)
async def test_t841_a_token_that_is_still_valid_is_used_meanwhile(case: str):
    async with AuthWorld() as world:
        account = sign_in_before(world, expires_in=60)
        credentials = credentials_of(world)
        world.on["/token"] = ANSWERS[case]
        assert account.tokens is not None
        headers = await credentials.headers()
        assert headers == {"Authorization": f"Bearer {account.tokens.access_token}"}
