"""T710: a caller with a subscription stream of the modern era is removed from the gateway's file, or its
rights are changed. Its stream ends as other streams do, although it is the response to a POST."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dragoman.gateway import app, callers_file
from dragoman.gateway.access import fixed_tokens, with_token
from dragoman.gateway.callers_file import CallersFile
from dragoman.gateway.settings_file import read_settings
from tests.gateway import ADA, BOB, MODERN, Client, gateway_of
from tests.integration.waiting import until
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-3")
LISTEN = "subscriptions/listen"


def write(path: Path, callers: dict[str, Any]) -> None:
    path.write_text(json.dumps({"callers": callers}))
    path.chmod(0o600)


async def listening(client: Client) -> aiohttp.ClientResponse:
    """The stream of a subscription that was acknowledged."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": LISTEN, "params": params}
    headers = {**client.headers, "MCP-Protocol-Version": MODERN, "Mcp-Method": LISTEN}
    response = await client.http.post(client.url, json=message, headers=headers)
    assert response.status == 200
    async for line in response.content:
        if b"notifications/subscriptions/acknowledged" in line:
            return response
    raise AssertionError("the subscription was not acknowledged")


async def has_ended(response: aiohttp.ClientResponse) -> bool:
    try:
        async with asyncio.timeout(0.5):
            await response.read()
    except TimeoutError:
        return False
    except aiohttp.ClientError:
        pass
    return True


@pytest.mark.parametrize(
    "left", [{}, {"ada": {"token": ADA, "tools": ["office__count"]}}], ids=["out", "less"]
)
async def test_t710_only_the_stream_of_that_caller_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: dict[str, Any]
):
    monkeypatch.setattr(callers_file, "CHECK_SECONDS", 0.0)
    monkeypatch.setattr(app, "CLEANING_SECONDS", 0.05)
    path = tmp_path / "gateway.json"
    bob = {"bob": {"token": BOB}}
    write(path, {"ada": {"token": ADA}, **bob})
    file = CallersFile(
        path, read_settings(path), lambda settings: with_token(fixed_tokens(settings.callers)), print
    )
    async with (
        gateway_of({"office": Office()}, identify=file.identify) as running,
        Client(running.url) as first,
        Client(running.url, BOB) as second,
    ):
        streams = [await listening(first), await listening(second)]
        write(path, {**left, **bob})
        reason = "its token is not valid any more"
        await until(lambda: running.gateway.metrics.disconnected[reason] == 1)
        assert [await has_ended(each) for each in streams] == [True, False]
        streams[1].close()
