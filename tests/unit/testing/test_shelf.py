"""What an in-memory server offers besides tools, through a host."""

from collections.abc import AsyncIterator

import pytest

from dragoman import Host, RemoteError
from dragoman.demo.server import demo_server
from dragoman.testing import InMemoryServer


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
async def host(request: pytest.FixtureRequest) -> AsyncIterator[Host]:
    server = demo_server()
    server._revisions = (request.param,)
    async with Host({"demo": server}, permission_mode="bypassPermissions") as host:
        await host.ready()
        yield host


async def test_resources_are_listed_and_read(host: Host):
    assert [each.uri for each in await host.resources.list()] == ["demo://rivers"]
    assert (await host.resources.read("demo", "demo://rivers")).text.startswith("Danube\n")
    with pytest.raises(RemoteError):
        await host.resources.read("demo", "demo://mountains")


async def test_a_template_is_filled_in_and_completed(host: Host):
    (template,) = await host.resources.templates()

    assert "Along the Nile" in (await host.resources.read("demo", template.expand({"river": "Nile"}))).text
    found = await host.resources.complete("demo", template.uri_template, "river", "s")
    assert found.values == ("Sava",)


async def test_a_prompt_is_filled_in_and_completed(host: Host):
    result = await host.prompts.run("/mcp__demo__letter silk river=Nile")

    assert "silk to a merchant along the Nile" in result.messages[0].content.as_text()
    assert (await host.prompts.complete("mcp__demo__letter", "goods", "s")).values == ("salt", "silk")


async def test_an_empty_shelf_is_not_mentioned():
    async with Host({"bare": InMemoryServer("bare")}) as host:
        (view,) = (await host.ready()).values()

        assert view.capabilities == {"tools": {}}
        assert not (await host.resources.list()).items
