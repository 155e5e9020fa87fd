"""T390: two tokens of one caller, with different rights, use the same session while it is looked up."""

import asyncio
from pathlib import Path

import pytest

from dragoman.gateway.access import KnownCaller, RequestRefused
from dragoman.gateway.sessions import Sessions
from dragoman.gateway.settings import Rights
from dragoman.gateway.store.sqlite import SqliteStore
from dragoman.interaction import Caller
from tests.gateway import Client, gateway_of
from tests.servers.office import Office

ADA = Caller("ada")
EVERYTHING = KnownCaller(ADA, (Rights(),))
LESS = KnownCaller(ADA, (Rights(servers=("other",)),))


@pytest.mark.requirement("GWY-3")
async def test_t390_the_session_is_served_with_the_rights_of_each_token_or_not_at_all(tmp_path: Path):
    path = tmp_path / "sessions.sqlite"
    async with gateway_of({"office": Office()}, store=SqliteStore(path)) as running, Client(running.url) as c:
        session_id = (await c.initialize()).headers["Mcp-Session-Id"]
    async with gateway_of({"office": Office()}, store=SqliteStore(path)) as running:
        sessions = Sessions(running.gateway, asyncio.get_running_loop().time)
        try:
            first, second = await asyncio.gather(
                sessions.find(session_id, EVERYTHING, ""),
                sessions.find(session_id, LESS, ""),
                return_exceptions=True,
            )
            assert not isinstance(first, BaseException)
            assert first.caller == EVERYTHING
            assert isinstance(second, RequestRefused)
        finally:
            await sessions.close()
