"""T312: a client of a view does not learn the arguments that the view fixes, from questions or errors."""

from typing import Any

import pytest

from dragoman.gateway.settings import View
from dragoman.testing import InMemoryServer
from tests.gateway import Client, Json, gateway_of

pytestmark = pytest.mark.requirement("GWY-3")
FIXED = "fixed-5f2c91"
VIEWS = {"support": View(arguments={"tickets__search": {"project": FIXED}})}
TEXT: Json = {"text": {"type": "string", "maxLength": 9}, "project": {"type": "string"}}
SCHEMAS: dict[str, Json] = {
    "anyOf": {"anyOf": [{"required": ["text"]}, {"required": ["id"]}]},
    "oneOf": {"oneOf": [{"required": ["text"]}, {"required": ["id"]}]},
    "minProperties": {"minProperties": 3},
    "not": {"not": {"required": ["project"]}},
    "a fixed one that does not fit": {"properties": {"project": {"enum": ["other"]}}},
    "one of a fixed one": {"allOf": [{"properties": {"project": {"maxLength": 2}}}]},
}


def tickets(schema: Json, seen: list[Any]) -> InMemoryServer:
    def search(arguments: Json, context: object) -> str:
        seen.append(arguments)
        return "found"

    server = InMemoryServer("tickets")
    server.add_tool("search", search, inputSchema={"type": "object", "properties": TEXT, **schema})
    return server


def error_of(reply: Any) -> str:
    (block,) = reply.last["result"]["content"]
    return block["text"]


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
@pytest.mark.parametrize("arguments", [{}, {'{"project"': 1}], ids=["none", "named like a part of a message"])
async def test_t312_no_error_about_arguments_contains_fixed_arguments(schema: Json, arguments: Json):
    served = gateway_of({"tickets": tickets(schema, [])}, views=VIEWS)
    async with served as running, Client(f"{running.url}/support") as client:
        reply = await client.modern("tools/call", {"name": "tickets__search", "arguments": arguments})
    assert error_of(reply) == (
        "the arguments do not fit mcp__tickets__search: their combination does not fit"
    )


async def test_t312_errors_in_the_clients_own_arguments_are_reported():
    served = gateway_of({"tickets": tickets({"required": ["id"]}, [])}, views=VIEWS)
    async with served as running, Client(f"{running.url}/support") as client:
        reply = await client.modern("tools/call", {"name": "tickets__search", "arguments": {"text": 5}})
    assert error_of(reply) == (
        "the arguments do not fit mcp__tickets__search: "
        '"id" is a required property; text: 5 is not of type "string"'
    )


async def test_t312_the_permission_question_contains_the_clients_own_arguments_only():
    seen: list[Any] = []
    served = gateway_of({"tickets": tickets({}, seen)}, permission_mode="default", views=VIEWS)
    call: Json = {"name": "tickets__search", "arguments": {"text": "x", "project": "mine"}}
    forms: Json = {"elicitation": {"form": {}}}
    async with served as running, Client(f"{running.url}/support") as client:
        asked = (await client.modern("tools/call", call, capabilities=forms)).last["result"]
        (question,) = asked["inputRequests"].values()
        assert question["params"]["message"].endswith('Its arguments: {"text":"x"}')
        yes = {"action": "accept", "content": {"answer": "allow this call"}}
        again = {**call, "inputResponses": {"1": yes}, "requestState": asked["requestState"]}
        await client.modern("tools/call", again, capabilities=forms)
    assert seen == [{"text": "x", "project": FIXED}]
