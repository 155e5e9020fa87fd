"""T233: a caller that is removed from the gateway's file, or whose rights are changed there, is not served
by the previous content; a file that cannot be used changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dragoman.gateway import app, callers_file
from dragoman.gateway.access import fixed_tokens, with_token
from dragoman.gateway.callers_file import CallersFile
from dragoman.gateway.settings_file import read_settings
from tests.gateway import ADA, BOB, Client, gateway_of
from tests.integration.waiting import until
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-3")
BOTH = {"ada": {"token": ADA}, "bob": {"token": BOB}}


def write(path: Path, callers: dict[str, Any], **more: Any) -> None:
    path.write_text(json.dumps({"callers": callers, **more}))
    path.chmod(0o600)


def watched(path: Path, reported: list[str]) -> CallersFile:
    return CallersFile(
        path,
        read_settings(path),
        lambda settings: with_token(fixed_tokens(settings.callers)),
        reported.append,
    )


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers_file, "CHECK_SECONDS", 0.0)
    monkeypatch.setattr(app, "CLEANING_SECONDS", 0.05)


@pytest.mark.usefixtures("quick")
async def test_t233_a_removed_caller_is_refused_and_its_streams_end(tmp_path: Path):
    path = tmp_path / "gateway.json"
    write(path, BOTH)
    identify = watched(path, []).identify
    async with gateway_of({"office": Office()}, identify=identify) as running:  # noqa: SIM117
        async with (
            Client(running.url) as ada,
            Client(running.url, BOB) as bob,
            aiohttp.ClientSession() as http,
        ):
            await ada.initialize()
            await bob.initialize()
            base = running.url.removesuffix("/mcp")
            sockets = [
                await http.ws_connect(f"{base}/ws", headers={"Authorization": f"Bearer {token}"})
                for token in (ADA, BOB)
            ]
            streams = [
                await http.get(running.url, headers={**client.headers, "Accept": "text/event-stream"})
                for client in (ada, bob)
            ]
            write(path, {"bob": {"token": BOB}})
            assert (await ada.legacy("tools/list")).status == 401
            assert (await ada.modern("tools/list")).status == 401
            assert (await bob.legacy("tools/list")).status == 200
            reason = "its token is not valid any more"
            await until(lambda: running.gateway.metrics.disconnected[reason] == 2)
            assert (await sockets[0].receive()).type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)
            await sockets[1].send_json({"jsonrpc": "2.0", "id": 1, "method": "ping"})
            assert (await sockets[1].receive_json())["id"] == 1
            for each in (*sockets, *streams):
                closing = each.close()
                if closing is not None:
                    await closing


@pytest.mark.usefixtures("quick")
async def test_t233_changed_rights_apply_from_the_next_request(tmp_path: Path):
    path = tmp_path / "gateway.json"
    write(path, BOTH)
    identify = watched(path, []).identify
    async with gateway_of({"office": Office()}, identify=identify) as running, Client(running.url) as ada:
        await ada.initialize()
        write(path, {"ada": {"token": ADA, "tools": ["office__count"]}})
        assert (await ada.legacy("tools/list")).status == 404, "a session has the rights it was opened with"
        listed = await ada.modern("tools/list")
        assert [tool["name"] for tool in listed.last["result"]["tools"]] == ["office__count"]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("content", [b"{", b'{"callers": {}}', None])
async def test_t233_a_file_that_cannot_be_used_changes_nothing(tmp_path: Path, content: bytes | None):
    path, reported = tmp_path / "gateway.json", list[str]()
    write(path, BOTH)
    identify = watched(path, reported).identify
    async with gateway_of({"office": Office()}, identify=identify) as running, Client(running.url) as ada:
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        assert [(await ada.modern("tools/list")).status for _ in range(2)] == [200, 200]
        async with Client(running.url, "token-of-nobody-0123456") as other:
            assert (await other.modern("tools/list")).status == 401
        assert len(reported) == 1
        assert reported[0].endswith("; the callers before the change stay in effect")
        write(path, {"bob": {"token": BOB}})
        assert (await ada.modern("tools/list")).status == 401


@pytest.mark.usefixtures("quick")
async def test_t233_changed_views_are_reported_to_apply_after_a_restart(tmp_path: Path):
    path, reported = tmp_path / "gateway.json", list[str]()
    write(path, BOTH)
    file = watched(path, reported)
    write(path, BOTH, views={"small": {}})
    await file.identify([f"Bearer {ADA}"])
    assert reported == [
        f"{path}: only callers and oauth are read again; other changes take effect at the next start"
    ]
