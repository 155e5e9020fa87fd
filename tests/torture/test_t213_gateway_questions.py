"""T213: calls through a gateway that end while their clients are being asked a question."""

import asyncio
import gc
from typing import Any

import pytest

from dragoman.wire.server.request import ClientRequest
from dragoman.wire.server.service import RequestError
from tests.gateway import Client, Json, gateway_of
from tests.integration.waiting import until
from tests.servers.office import FORM, Office

pytestmark = pytest.mark.requirement("GWY-3")
ASK: Json = {"name": "office__ask", "arguments": {}}
ABLE: Json = {"elicitation": {}}


class Impatient(Office):
    """A server that sends an elicitation, and ends the call before there is an answer."""

    def __init__(self, error: RequestError | None = None) -> None:
        super().__init__(("2025-11-25",))
        self.released = asyncio.Event()
        self._error = error

    async def _ask(self, request: ClientRequest, arguments: Json) -> Any:
        params = {"mode": "form", "requestedSchema": FORM, "message": "Who asks?"}
        asking = asyncio.create_task(request.ask("elicitation/create", params))
        await self.released.wait()
        asking.cancel()
        self.ledger.append("done")
        if self._error is not None:
            raise self._error
        return "done without an answer"


async def asked(client: Client) -> Json:
    """The request to send again, with the input response."""
    needed = (await client.modern("tools/call", ASK, capabilities=ABLE)).last["result"]
    answers = {key: {"action": "accept", "content": {"name": "x"}} for key in needed["inputRequests"]}
    return {**ASK, "requestState": needed["requestState"], "inputResponses": answers}


async def test_t213_a_call_that_ends_during_a_question_to_its_client_returns_its_result():
    office = Impatient()
    async with gateway_of({"office": office}) as running, Client(running.url) as client:
        again = await asked(client)
        office.released.set()
        await until(lambda: not running.gateway.questions._running)
        reply = await client.modern("tools/call", again, capabilities=ABLE)
        assert reply.last["result"]["content"] == [{"type": "text", "text": '"done without an answer"'}]
        assert office.ledger == ["done"]
        twice = await client.modern("tools/call", again, capabilities=ABLE)
        assert twice.last["error"]["code"] == -32602


async def test_t213_a_call_that_fails_during_a_question_to_its_client_returns_its_error():
    office = Impatient(RequestError(-32050, "given up"))
    async with gateway_of({"office": office}) as running, Client(running.url) as client:
        again = await asked(client)
        office.released.set()
        await until(lambda: not running.gateway.questions._running)
        reply = await client.modern("tools/call", again, capabilities=ABLE)
        assert reply.last["error"] == {"code": -32050, "message": "given up"}


async def test_t213_an_error_that_no_client_fetches_is_not_logged():
    reports: list[Json] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context))
    office = Impatient(RequestError(-32050, "given up"))
    async with gateway_of({"office": office}) as running, Client(running.url) as client:
        await asked(client)
        office.released.set()
        await until(lambda: not running.gateway.questions._running)
        running.gateway.questions.close()
    gc.collect()
    assert reports == []
