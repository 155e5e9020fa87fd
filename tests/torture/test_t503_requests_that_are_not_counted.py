"""T503: `callsPerMinute` limits every request of a caller that reaches a server, not only calls of tools."""

from typing import Any

import pytest

from dragoman.gateway.settings import CallerEntry
from dragoman.testing import InMemoryServer
from tests.gateway import ADA, Client, gateway_of

pytestmark = pytest.mark.requirement("GWY-3")

TOO_MANY = -32029
PLACE = {"ref": {"type": "ref/prompt", "name": "s__greet"}, "argument": {"name": "who", "value": "A"}}
REQUESTS = {
    "tools/call": {"name": "s__echo", "arguments": {}},
    "resources/read": {"uri": "note://0"},
    "resources/subscribe": {"uri": "note://{number}"},
    "prompts/get": {"name": "s__greet", "arguments": {"who": "Ada"}},
    "completion/complete": PLACE,
}


def server() -> InMemoryServer:
    made = InMemoryServer("s")
    made.add_tool("echo", lambda arguments, context: "x")
    for number in range(4):
        made.contents.add_resource(f"note://{number}", "x")
    made.contents.add_prompt("greet", lambda arguments: "hello", [{"name": "who"}], {"who": ["Ada"]})
    return made


def params_of(method: str, number: int) -> dict[str, Any]:
    params = REQUESTS[method]
    return {**params, "uri": params["uri"].format(number=number)} if "uri" in params else params


@pytest.mark.parametrize("method", REQUESTS)
async def test_t503_the_third_request_within_a_limit_of_two_is_refused(method: str):
    callers = {"ada": CallerEntry(token=ADA, calls_per_minute=2)}
    async with gateway_of({"s": server()}, callers=callers) as running, Client(running.url) as client:
        await client.initialize()
        replies = [(await client.legacy(method, params_of(method, number))).last for number in range(3)]
    codes = [reply.get("error", {}).get("code") for reply in replies]
    assert [code == TOO_MANY for code in codes] == [False, False, True], replies
