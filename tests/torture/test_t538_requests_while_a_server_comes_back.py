"""T538: gateway clients request a resource, prompt or completion while its server is being reconnected. The
request waits, as a call does, and is not refused as unknown."""

import pytest

from tests.gateway import Client, Json, gateway_of
from tests.servers import stdio_server

pytestmark = pytest.mark.requirement("GWY-1")
ARGUMENT = {"name": "book", "value": "di"}
REQUESTS: dict[str, tuple[str, Json]] = {
    "a resource": ("resources/read", {"uri": "book://divan"}),
    "a resource of a template": ("resources/read", {"uri": "book://divan?page=2"}),
    "a prompt": ("prompts/get", {"name": "library__greet"}),
    "an argument of a prompt": (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "library__review"}, "argument": ARGUMENT},
    ),
    "an argument of a template": (
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "book://{name}{?page}"},
            "argument": {**ARGUMENT, "name": "name"},
        },
    ),
}


@pytest.mark.parametrize(("method", "params"), REQUESTS.values(), ids=REQUESTS.keys())
async def test_t538_the_request_is_answered_after_the_reconnect(method: str, params: Json):
    settings = {"DRAGOMAN_RECONNECT_WAIT_MS": 1000}
    async with gateway_of({"library": stdio_server("library.py")}, settings=settings) as running:  # noqa: SIM117
        async with Client(running.url) as client:
            await client.modern("tools/call", {"name": "library__die", "arguments": {}})
            assert running.host.servers["library"].phase == "reconnecting"
            reply = await client.modern(method, params)
            assert reply.last.get("error") is None
            assert running.host.servers["library"].status == "connected"


async def test_t538_a_request_for_something_no_server_has_is_not_found():
    settings = {"DRAGOMAN_RECONNECT_WAIT_MS": 1000}
    async with gateway_of({"library": stdio_server("library.py")}, settings=settings) as running:  # noqa: SIM117
        async with Client(running.url) as client:
            await client.modern("tools/call", {"name": "library__die", "arguments": {}})
            reply = await client.modern("resources/read", {"uri": "other://divan"})
            assert reply.last["error"]["message"] == "no resource other://divan"
