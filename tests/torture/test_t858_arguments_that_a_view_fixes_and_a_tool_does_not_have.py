"""T858: a view fixes `Project`, and the tool's argument is `project`. That is reported: clients
can choose it."""

from typing import Any

import pytest

from dragoman.gateway.settings import View
from dragoman.testing import InMemoryServer
from tests.gateway import gateway_of

pytestmark = pytest.mark.requirement("GWY-3")
PROPERTIES = {"type": "object", "properties": {"project": {"type": "string"}}}


def tickets(schema: dict[str, Any]) -> InMemoryServer:
    server = InMemoryServer("tickets")
    server.add_tool("search", lambda arguments, context: "found", inputSchema=schema)
    return server


async def unused(schema: dict[str, Any], **fixed: str) -> list[str]:
    views = {"support": View(arguments={"tickets__search": fixed})}
    async with gateway_of({"tickets": tickets(schema)}, views=views) as running:
        return running.gateway.unused_arguments()


@pytest.mark.parametrize("written", ["Project", "projects", "prj"])
async def test_t858_it_is_reported(written: str):
    assert await unused(PROPERTIES, **{written: "SUP"}) == [
        f"view 'support' fixes the argument {written!r} of 'tickets__search', which has no such argument"
    ]


@pytest.mark.parametrize(
    "schema",
    [PROPERTIES, {"type": "object"}, {**PROPERTIES, "$ref": "#/$defs/x", "$defs": {"x": {"type": "object"}}}],
    ids=["known", "any argument", "a reference"],
)
async def test_t858_other_arguments_are_not(schema: dict[str, Any]):
    fixed = {"project": "SUP"} if schema is PROPERTIES else {"other": "SUP"}
    assert await unused(schema, **fixed) == []
