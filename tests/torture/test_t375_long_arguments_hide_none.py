"""T375: in the permission question of a gateway, a long argument or name hides no other."""

import json

import pytest

from dragoman.testing import InMemoryServer
from tests.gateway import Client, Json, gateway_of

pytestmark = pytest.mark.requirement("GWY-3")
FORMS: Json = {"elicitation": {"form": {}}}
LONG = "x" * 5000
CALLS: dict[str, Json] = {
    "a value": {"note": LONG, "path": "/etc/passwd"},
    "a name": {LONG: 1, "path": "/etc/passwd"},
    "its own name": {"path": "/etc/passwd", "p" * 5000: LONG},
    "what is nested": {"note": [{"deep": LONG}], "path": "/etc/passwd"},
    "characters that are escaped": {"note": "\x1b\u202e" * 900, "path": "/etc/passwd"},
    "nineteen others": {**{f"n{number}": LONG for number in range(19)}, "path": "/etc/passwd"},
}


async def message_about(arguments: Json) -> str:
    server = InMemoryServer("files")
    server.add_tool("read", lambda arguments, context: "read", inputSchema={"type": "object"})
    call: Json = {"name": "files__read", "arguments": arguments}
    served = gateway_of({"files": server}, permission_mode="default")
    async with served as running, Client(running.url) as client:
        asked = (await client.modern("tools/call", call, capabilities=FORMS)).last["result"]
    (question,) = asked["inputRequests"].values()
    return question["params"]["message"]


@pytest.mark.parametrize("arguments", CALLS.values(), ids=CALLS)
async def test_t375_every_argument_is_in_the_question(arguments: Json):
    message = await message_about(arguments)
    assert '"path":"/etc/passwd"' in message
    assert "more characters]" in message
    assert len(message) < 4000


async def test_t375_the_number_of_arguments_that_are_left_out_is_shown():
    message = await message_about({f"n{number}": number for number in range(100)})
    assert message.endswith(", … [80 more arguments]}")


async def test_t375_short_arguments_are_shown_unchanged():
    arguments = {"a": [1, {"b": None}], "c d": 'say "x"'}
    message = await message_about(arguments)
    assert json.loads(message.partition("Its arguments: ")[2]) == arguments
