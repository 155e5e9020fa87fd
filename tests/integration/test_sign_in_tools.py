"""The pseudo-tool `authenticate`: a model starts a sign-in, and the server's tools take its place."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman import Host
from dragoman.auth.entry import OAuthSettings
from dragoman.auth.http import NetworkAccess
from dragoman.auth.oauth import OAuthCredentials
from dragoman.auth.sign_in import sign_in
from dragoman.auth.stores.base import Vault
from dragoman.errors import UnknownTool
from dragoman.toolbox import Toolbox
from tests.integration.waiting import until
from tests.servers import stdio_server
from tests.servers.web import streamable
from tests.servers.web.auth_world import AuthWorld, Browser, ended_at, visit

pytestmark = pytest.mark.requirement("AUT-7")

NAME = "mcp__x__authenticate"


@asynccontextmanager
async def waiting(world: AuthWorld, **options: Any) -> AsyncIterator[Host]:
    """A host with one server that waits for a sign-in, and one that does not. Nobody is there to ask."""
    servers = {"x": world.entry(), "calm": stdio_server("well_behaved.py")}
    async with Host(servers, settings={"DRAGOMAN_RECONNECT_ATTEMPTS": 0}, **options) as host:
        await host.ready(timeout=20)
        assert host.servers["x"].status == "needs-auth"
        yield host


def names(tools: Any) -> set[str]:
    return {tool.name for tool in tools}


def page_in(text: str) -> str:
    (page,) = [line for line in text.splitlines() if line.startswith("http")]
    return page


async def test_authenticate_is_offered_only_while_a_server_needs_authentication():
    async with AuthWorld() as world, waiting(world) as host:
        assert set(host.sign_in_tools()) == {NAME}
        toolbox = host.toolbox()
        assert NAME in names(toolbox.tools())
        assert "mcp__calm__authenticate" not in names(toolbox.tools())

        said = (await toolbox.call(NAME)).text
        assert said.splitlines()[0] == "Ask the user to open this page and sign in to x:"
        assert (await toolbox.call(NAME)).text == said, "the same sign-in"
        assert (await visit(await ended_at(page_in(said))))[0] == 200
        await until(lambda: host.servers["x"].status == "connected")

        assert host.sign_in_tools() == {}
        found = names([*toolbox.tools(), *toolbox.deferred()])
        assert NAME not in found
        assert "mcp__x__echo" in found, "the real tools take its place"


async def test_authenticate_is_always_allowed_and_starts_one_sign_in():
    async with AuthWorld() as world, waiting(world, permission_mode="default") as host:
        first, second = await asyncio.gather(host.call(NAME, {}), host.call(NAME, {}))
        assert page_in(first.text) == page_in(second.text)
        assert not first.is_error
        assert len(world.registrations) == 1


async def test_a_completed_sign_in_is_reported():
    async with AuthWorld() as world, waiting(world) as host:
        tool = host.sign_in_tools()[NAME]
        page = page_in((await host.call(NAME, {})).text)
        await visit(await ended_at(page))
        await until(lambda: host.servers["x"].status == "connected")
        assert await tool._run({}) is not None
        outcome = await host.call(NAME, {})
        assert isinstance(outcome.error, UnknownTool), "it is gone"


async def test_a_failed_sign_in_is_reported_and_the_next_call_tries_again():
    async with AuthWorld() as world, waiting(world) as host:
        methods = world.server_document.pop("code_challenge_methods_supported")
        said = (await host.call(NAME, {})).text
        assert said.startswith(
            "The sign-in to x failed: x: sign-in failed: its authorization server does not"
        )
        world.server_document["code_challenge_methods_supported"] = methods
        assert "Ask the user to open this page" in (await host.call(NAME, {})).text


async def test_a_client_secret_is_not_confirmed_by_a_model():
    async with AuthWorld() as world:
        entry = world.entry(clientId="me", clientSecret="cAnary-client-secret")
        async with Host({"x": entry}, settings={"DRAGOMAN_RECONNECT_ATTEMPTS": 0}) as host:
            await host.ready(timeout=20)
            said = (await host.call(NAME, {})).text
            assert f"the client secret was not sent to {world.auth.origin}" in said
        assert world.canaries_in(world.auth) == []


async def test_a_servers_tool_of_the_same_name_does_not_start_a_sign_in():
    async with streamable() as server:
        server.in_memory.add_tool("authenticate", lambda given, _: "the server's own")
        entry = {"type": "http", "url": server.url}
        async with Host({"x": entry}, permission_mode="default") as host:
            await host.ready(timeout=20)
            assert host.sign_in_tools() == {}
            outcome = await host.call(NAME, {})
            assert outcome.is_error, "it needs a permission like every tool, and there is no interaction"
            assert server.asked("tools/call") == []
        async with Host({"x": entry}, permission_mode="bypassPermissions") as host:
            await host.ready(timeout=20)
            assert (await host.call(NAME, {})).text == "the server's own"


async def test_a_servers_tool_of_the_same_name_is_listed_after_the_sign_in_and_needs_permission():
    async with AuthWorld() as world:
        world.mcp.in_memory.add_tool("authenticate", lambda given, _: "the server's own")
        async with waiting(world, permission_mode="default") as host:
            toolbox = host.toolbox()
            page = page_in((await toolbox.call(NAME)).text)
            await visit(await ended_at(page))
            await until(lambda: host.servers["x"].status == "connected")
            (tool,) = [each for each in host.tools() if each.name == NAME]
            assert tool.server == "x"
            for call in (toolbox.call(NAME), host.call(NAME, {})):
                assert (await call).is_error
            assert world.mcp.asked("tools/call") == []


async def test_an_agent_has_authenticate_for_its_own_servers_only():
    async with (
        AuthWorld() as world,
        waiting(world) as host,
        host.for_agent(["x"]) as with_it,
        host.for_agent(["calm"]) as without,
    ):
        assert set(with_it.sign_in_tools()) == {NAME}
        assert dict(without.sign_in_tools()) == {}
        assert NAME in names(Toolbox(with_it).tools())
        assert NAME not in names(Toolbox(without).tools())
        assert isinstance((await Toolbox(without).call(NAME)).error, UnknownTool)
        assert "Ask the user to open this page" in (await Toolbox(with_it).call(NAME)).text


async def test_closing_the_host_ends_a_running_sign_in():
    async with AuthWorld() as world:
        async with waiting(world) as host:
            target = await ended_at(page_in((await host.call(NAME, {})).text))
        with pytest.raises(OSError):
            await visit(target)
        assert world.token_requests == []


@pytest.mark.requirement("AUT-2")
async def test_a_sign_in_of_another_process_connects_the_server_of_a_running_host():
    async with AuthWorld() as world, waiting(world) as host:
        await _sign_in_as_another_process(world)
        await until(lambda: host.servers["x"].status == "connected")
        assert host.sign_in_tools() == {}


async def _sign_in_as_another_process(world: AuthWorld) -> None:
    """With objects of its own; only the files are shared."""
    entry = OAuthSettings(server="x", url=world.mcp.url)
    await sign_in(OAuthCredentials(entry, Vault(), NetworkAccess), Browser())


@pytest.mark.requirement("AUT-2")
async def test_a_sign_in_of_another_process_replaces_one_that_was_refused():
    async with AuthWorld() as world:
        await _sign_in_as_another_process(world)
        async with Host({"x": world.entry()}) as host:
            await host.ready(timeout=20)
            assert host.servers["x"].status == "connected"
            world.expire_tokens()
            world.refresh_tokens.clear()  # `invalid_grant`
            await host.reconnect("x")
            assert host.servers["x"].status == "needs-auth"
            await _sign_in_as_another_process(world)
            await until(lambda: host.servers["x"].status == "connected")
