"""T24 with front ends that we did not write: nginx and haproxy refuse, time out, and drop without a word."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import DragomanError, Host
from dragoman.errors import HttpError
from tests.servers.web import streamable

Part = Callable[..., dict[str, Any]]

NGINX = """
daemon off; master_process off; worker_processes 1; pid {folder}/pid; error_log {folder}/errors;
events {{ worker_connections 64; }}
http {{
    access_log off; client_body_temp_path {folder}/1; proxy_temp_path {folder}/2;
    fastcgi_temp_path {folder}/3; uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
    limit_req_zone all zone=few:1m rate=1r/m; limit_req_status 429;
    server {{
        listen 127.0.0.1:{port};
        proxy_http_version 1.1; proxy_buffering off; proxy_read_timeout 1s;
        location /mcp {{ proxy_pass http://127.0.0.1:{upstream}/mcp; }}
        location /few {{ limit_req zone=few burst=12 nodelay; proxy_pass http://127.0.0.1:{upstream}/mcp; }}
        location /down {{ proxy_pass http://127.0.0.1:1/mcp; }}
    }}
}}
"""

HAPROXY = """
defaults
    mode http
    timeout connect 1s
    timeout client 5s
    timeout server 5s
frontend front
    bind 127.0.0.1:{port}
    http-request silent-drop if {{ req.hdr(Mcp-Name) -m str ledger }}
    http-request return status 429 hdr Retry-After 5 if {{ req.hdr(Mcp-Name) -m str slow }}
    http-request deny deny_status 503 if {{ req.hdr(Mcp-Name) -m str count }}
    default_backend back
backend back
    server one 127.0.0.1:{upstream}
"""


@contextlib.asynccontextmanager
async def front_end(entry: dict[str, Any], config: str, folder: Path, upstream: int) -> AsyncIterator[int]:
    """The port of a front end that is running."""
    with socket.socket() as keeper:  # bound and never listening, it keeps the port ours
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("127.0.0.1", 0))
        port = keeper.getsockname()[1]
        file = folder / "config"
        file.write_text(config.format(folder=folder, port=port, upstream=upstream))
        words = [word.format(file=file) for word in entry["args"]]
        process = await asyncio.create_subprocess_exec(
            entry["command"], *words, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            await listening(port)
            yield port
        finally:
            process.kill()
            await process.wait()


async def listening(port: int) -> None:
    async with asyncio.timeout(10):
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return await writer.wait_closed()
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def host_at(url: str, **settings: int) -> AsyncIterator[Host]:
    server = {"type": "http", "url": url, "protocol": "2026-07-28"}
    async with Host({"x": server}, settings=settings, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=10)
        yield host


async def error_of(host: Host, tool: str, seconds: float = 5, **arguments: Any) -> DragomanError:
    with pytest.raises(DragomanError) as caught:
        async with asyncio.timeout(seconds + 1):
            await host.call(f"mcp__x__{tool}", arguments, timeout_seconds=seconds)
    return caught.value


@pytest.mark.slow
@pytest.mark.requirement("TRN-2")
@pytest.mark.needs("nginx")
async def test_t24_behind_nginx_limits_and_timeouts_fail_their_call_only(part: Part, tmp_path: Path) -> None:
    async with (
        streamable(replies="json") as server,
        front_end(part("nginx", "-c", "{file}", "-e", "stderr"), NGINX, tmp_path, server.port) as port,
    ):
        async with host_at(f"http://127.0.0.1:{port}/mcp") as host:
            late = await error_of(host, "hold", key="x")
            assert isinstance(late, HttpError)
            assert (late.status, late.may_have_run) == (504, True)
            assert server.ledger.counts == {"hold x": 1}
            assert (await host.call("mcp__x__echo", {"text": "on"})).text == "on"
        async with host_at(f"http://127.0.0.1:{port}/few") as host:
            ends = await asyncio.gather(
                *(host.call("mcp__x__ledger", {"key": f"{n}"}) for n in range(30)), return_exceptions=True
            )
            refused = [end for end in ends if isinstance(end, HttpError)]
            assert refused
            assert {(end.status, end.may_have_run) for end in refused} == {(429, False)}
            assert len(refused) + sum(server.ledger.counts.values()) - 1 == 30
            assert host.servers["x"].status == "connected"


@pytest.mark.requirement("LIF-3")
@pytest.mark.needs("nginx")
async def test_t24_behind_nginx_a_server_that_is_down_is_reported_by_status(
    part: Part, tmp_path: Path
) -> None:
    async with (
        front_end(part("nginx", "-c", "{file}", "-e", "stderr"), NGINX, tmp_path, 1) as port,
        host_at(f"http://127.0.0.1:{port}/down", DRAGOMAN_RECONNECT_ATTEMPTS=0) as host,
    ):
        assert host.servers["x"].status == "failed"
        assert "502" in (host.servers["x"].reason or "")


@pytest.mark.slow
@pytest.mark.requirement("TRN-2", "LIF-5")
@pytest.mark.needs("haproxy")
async def test_t24_behind_haproxy_a_silent_drop_ends_with_the_deadline(part: Part, tmp_path: Path) -> None:
    async with (
        streamable(replies="json") as server,
        front_end(part("haproxy", "-f", "{file}"), HAPROXY, tmp_path, server.port) as port,
        host_at(f"http://127.0.0.1:{port}/mcp") as host,
    ):
        dropped = await error_of(host, "ledger", seconds=1, key="x")
        assert dropped.code in ("timeout", "connection-lost")
        assert getattr(dropped, "may_have_run", False)
        assert not server.ledger.counts
        often = await error_of(host, "slow")
        assert isinstance(often, HttpError)
        assert (often.status, often.retry_after_seconds, often.may_have_run) == (429, 5, False)
        down = await error_of(host, "count")
        assert isinstance(down, HttpError)
        assert (down.status, down.may_have_run) == (503, True)
        assert (await host.call("mcp__x__echo", {"text": "on"})).text == "on"
