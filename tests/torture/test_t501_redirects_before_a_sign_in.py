"""T501: a redirect that was followed while there was no token is not used with a later token."""

from typing import Any

import pytest
from aiohttp import web

from dragoman.errors import HttpError
from tests.servers.web import Ask
from tests.servers.web.auth_world import AuthWorld
from tests.torture.signed_in import host_of, sign_in_before

pytestmark = pytest.mark.requirement("TRN-2", "AUT-1")


class Moved:
    """A server that needs no token until `is_closed`, at another path than that of its entry."""

    def __init__(self, world: AuthWorld) -> None:
        self._world = world
        self.is_closed = False
        self.tokens: list[str] = []
        """What was sent to the other path."""
        world.mcp.on["*"] = self._answer

    async def _answer(self, ask: Ask) -> Any:
        if ask.path.startswith("/.well-known/"):
            return await self._world._protect(ask)
        if ask.path == self._world.mcp.path:
            return web.Response(status=307, headers={"Location": "/elsewhere/mcp"})
        self.tokens += ask.headers.getall("Authorization", [])
        return web.Response(status=401) if self.is_closed else None


async def test_t501_the_token_of_a_later_sign_in_is_not_sent_to_the_redirect_target():
    async with AuthWorld() as world:
        moved = Moved(world)
        async with host_of(world) as host:
            await host.ready(timeout=20)
            assert (await host.call("mcp__x__echo", {"text": "x"})).text == "x"
            sign_in_before(world)  # by another process
            moved.is_closed = True
            with pytest.raises(HttpError, match="HTTP 307: it redirects to"):
                await host.call("mcp__x__echo", {"text": "x"})
        assert moved.tokens == []


async def test_t501_a_token_obtained_without_a_person_is_not_sent_to_the_redirect_target():
    async with AuthWorld() as world:
        moved = Moved(world)
        oauth = {"clientId": "me", "clientSecret": "cAnary-client-secret", "grant": "client_credentials"}
        async with host_of(world, **oauth, issuer=world.auth.origin) as host:
            await host.ready(timeout=20)
            moved.is_closed = True
            with pytest.raises(HttpError, match="HTTP 307: it redirects to"):
                await host.call("mcp__x__echo", {"text": "x"})
        assert len(world.token_requests) == 1
        assert moved.tokens == []
