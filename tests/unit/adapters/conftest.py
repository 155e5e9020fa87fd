"""A host with the demo server and one of bad habits, and a small model API to talk to."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from dragoman import Host
from dragoman.demo.server import demo_server
from dragoman.testing import InMemoryServer
from tests.unit.adapters.model_api import ModelApi


def odd_server() -> InMemoryServer:
    server = InMemoryServer("odd")
    server.add_tool(
        "choose",
        lambda arguments, context: f"chose {arguments}",
        description="Long. " * 400,
        inputSchema={
            "$schema": "http://json-schema.org/draft-07/schema#",
            "oneOf": [
                {
                    "properties": {"kind": {"const": "a"}, "x": {"$ref": "#/definitions/x"}},
                    "required": ["kind"],
                },
                {"properties": {"kind": {"const": "b"}, "pair": {"type": "array"}}, "required": ["kind"]},
            ],
            "definitions": {"x": {"type": "string"}},
        },
    )
    server.add_tool(
        "reserved",
        lambda arguments, context: str(sorted(arguments)),
        properties={name: {"type": "string"} for name in ("config", "run_manager", "callbacks", "self")},
    )
    server.add_tool("dirty", lambda arguments, context: "seen\u200b\u202e\x1b[31m")
    server.add_tool("silent", lambda arguments, context: [])
    server.add_tool("data", lambda arguments, context: {"content": [], "structuredContent": {"a": 1}})
    server.add_tool(
        "broken_image",
        lambda arguments, context: [{"type": "image", "data": "bm90IGFuIGltYWdl", "mimeType": "image/png"}],
    )
    return server


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with Host(
        {"demo": demo_server(), "odd": odd_server()}, permission_mode="bypassPermissions"
    ) as host:
        await host.ready(5)
        yield host


@pytest.fixture
async def api() -> AsyncIterator[ModelApi]:
    api = ModelApi()
    app = web.Application()
    app.router.add_post("/{path:.*}", api.answer)
    async with TestServer(app) as server:
        api.url = str(server.make_url("/"))
        yield api
