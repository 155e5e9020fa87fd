"""T538: clients of a gateway ask for a resource, a prompt or a completion while the server that has it is
being connected again. It is waited for, as for a call; it is not said that there is none."""

import pytest

from tests.gateway import Client, Json, gateway_of
from tests.servers import zoo

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
async def test_t538_it_is_answered_once_the_server_is_back(method: str, params: Json):
    settings = {"DRAGOMAN_RECONNECT_WAIT_MS": 1000}
    async with gateway_of({"library": zoo("library.py")}, settings=settings) as running:  # noqa: SIM117
        async with Client(running.url) as client:
            await client.modern("tools/call", {"name": "library__die", "arguments": {}})
            assert running.host.servers["library"].phase == "reconnecting"
            reply = await client.modern(method, params)
            assert reply.last.get("error") is None
            assert running.host.servers["library"].status == "connected"


async def test_t538_what_no_server_has_is_not_found_all_the_same():
    settings = {"DRAGOMAN_RECONNECT_WAIT_MS": 1000}
    async with gateway_of({"library": zoo("library.py")}, settings=settings) as running:  # noqa: SIM117
        async with Client(running.url) as client:
            await client.modern("tools/call", {"name": "library__die", "arguments": {}})
            reply = await client.modern("resources/read", {"uri": "other://divan"})
            assert reply.last["error"]["message"] == "no resource other://divan"
