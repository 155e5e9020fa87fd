"""An organisation's connector: the bearer of the person, and the host's own session in a header."""

import json
from collections.abc import Mapping

import pytest
from aiohttp import web

from dragoman.credentials import Challenge
from dragoman.transports.base import About
from dragoman.transports.http import HttpTransport
from dragoman.transports.web import SESSION_HEADER, Network
from tests.unit.transports.sinks import RecordingSink, site

pytestmark = pytest.mark.requirement("TRN-8")


class Bearer:
    def __init__(self) -> None:
        self.renewals = 0

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.renewals}"}

    async def renew(self, challenge: Challenge) -> bool:
        self.renewals += 1
        return True


class Sink(RecordingSink):
    def awaits(self, request_id: str) -> bool:
        return False


async def exchanged(accepted: str, *, times: int = 1) -> tuple[list[Mapping[str, str]], RecordingSink]:
    """The headers that a proxy sees which takes one bearer only."""
    seen: list[Mapping[str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(dict(request.headers))
        message = json.loads(await request.read())
        if request.headers.get("Authorization") != accepted:
            return web.Response(status=401)
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": {}})

    async with site(web.post("/", answer)) as port:
        network = Network(f"http://127.0.0.1:{port}/", {"X-Own": "1"})
        transport = HttpTransport(
            "box",
            network,
            limit_bytes=1000,
            request_seconds=10,
            credentials=Bearer(),
            client_session_id="the session",
        )
        sink = Sink()
        await transport.open(sink)
        for number in range(times):
            transport.send(f'{{"id":"{number}"}}'.encode(), About(str(number), "x"))
            await sink.until(lambda number=number: len(sink.messages) + len(sink.failures) > number)
        await transport.close()
    return seen, sink


async def test_every_request_sends_the_persons_token_and_the_hosts_session_id():
    seen, sink = await exchanged("Bearer 0", times=3)

    assert len(sink.messages) == 3
    assert {headers["Authorization"] for headers in seen} == {"Bearer 0"}
    assert {headers[SESSION_HEADER] for headers in seen} == {"the session"}
    assert {headers["X-Own"] for headers in seen} == {"1"}


async def test_a_bearer_that_is_refused_is_renewed_once():
    seen, sink = await exchanged("Bearer 1")

    assert [headers["Authorization"] for headers in seen] == ["Bearer 0", "Bearer 1"]
    assert len(sink.messages) == 1


async def test_a_bearer_that_is_refused_twice_is_reported():
    seen, sink = await exchanged("never")

    assert len(seen) == 2
    ((request_id, trouble),) = sink.failures
    assert (request_id, trouble.status) == ("0", 401)
