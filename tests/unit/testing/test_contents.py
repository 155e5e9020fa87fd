"""What an in-memory server offers besides tools, through a host."""

from collections.abc import AsyncIterator

import pytest

from dragoman import Host
from dragoman.demo.server import demo_server
from dragoman.errors import RemoteError
from dragoman.testing import InMemoryServer


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
async def host(request: pytest.FixtureRequest) -> AsyncIterator[Host]:
    server = demo_server()
    server._revisions = (request.param,)
    async with Host({"demo": server}, permission_mode="bypassPermissions") as host:
        await host.ready()
        yield host


async def test_resources_are_listed_and_read(host: Host):
    assert [each.uri for each in await host.resources.list()] == ["demo://services"]
    assert (await host.resources.read("demo", "demo://services")).text.startswith("api\n")
    with pytest.raises(RemoteError):
        await host.resources.read("demo", "demo://nowhere")


async def test_a_template_is_expanded_and_completed(host: Host):
    (template,) = await host.resources.templates()

    read = await host.resources.read("demo", template.expand({"service": "web"}))
    assert read.text == "The service web runs in eu-north, eu-west, us-east, us-west."
    found = await host.resources.complete("demo", template.uri_template, "service", "w")
    assert found.values == ("web", "worker")


async def test_a_prompt_is_rendered_and_completed(host: Host):
    result = await host.prompts.run("/mcp__demo__release_notes 2.0 service=web")

    text = result.messages[0].content.as_text()
    assert text == "Write short release notes for version 2.0 of the service web."
    assert (await host.prompts.complete("mcp__demo__release_notes", "version", "1")).values == ("1.0", "1.1")


async def test_empty_contents_declare_no_capabilities():
    async with Host({"bare": InMemoryServer("bare")}) as host:
        (view,) = (await host.ready()).values()

        assert view.capabilities == {"tools": {}}
        assert not (await host.resources.list()).items
