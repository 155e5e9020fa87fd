"""T750: a server asks for a wait that is longer than the call's time limit: the call fails at once, and its
error states the wait. (`Retry-After` of more than 12 digits was ignored.)."""

import pytest

from dragoman.errors import HttpError
from tests.servers.web import answers
from tests.torture.bystander_host import at_once
from tests.torture.network import COMES_BACK, Way, end_of, serves

pytestmark = pytest.mark.requirement("TRN-2")
SECONDS = 20.0


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "9" * 13},
        {"Retry-After": "9" * 400},
        {"Retry-After": "9" * 20 + ".5"},
        {"Retry-After-Ms": "9" * 400},
    ],
    ids=["13 digits", "400 digits", "a fraction", "milliseconds"],
)
async def test_t750_a_retry_after_of_many_digits_is_not_ignored(
    bystander_host, era: str, headers: dict[str, str]
):
    way = Way("http", era, "json")
    async with way.server() as server, bystander_host(way.entry(server), settings=COMES_BACK) as a:
        server.on["tools/call"] = answers.status(429, "busy", headers=headers)
        async with at_once():
            ended = await end_of(a, "echo", seconds=SECONDS, text="x")
        assert isinstance(ended, HttpError)
        assert str(ended) == (
            "hostile refused: HTTP 429 Too Many Requests: busy; the request was refused and has not run. "
            "It asks to wait 1000000000000 s"
        )
        assert len(server.asked("tools/call")) == 1
        server.on.clear()
        await serves(a)
