"""T751: a TLS connection or a WebSocket that ends in the middle is reported as such. ("operation not
permitted", "ConnectionResetError" and "Cannot write to closing transport" were shown.)."""

import asyncio
import os
from pathlib import Path

import pytest

from dragoman.errors import ConnectionLost
from tests.certificates import Authority, secured
from tests.faults import FaultProxy
from tests.torture.bystander_host import at_once
from tests.torture.network import COMES_BACK, LEGACY, Way, end_of, serves
from tests.torture.test_t23_tls_and_dns import entry, refusal

pytestmark = pytest.mark.requirement("TRN-2")
WAY = Way("http", LEGACY, "json")


async def test_t751_data_that_is_not_tls_during_a_call_is_reported(bystander_host, tmp_path: Path):
    authority = Authority(tmp_path)
    server = secured(WAY.server(), authority.serving())
    async with (
        server,
        bystander_host(WAY.entry(server, tls={"ca": authority.file}), settings=COMES_BACK) as a,
    ):
        call = asyncio.create_task(end_of(a, "hold", key="x", seconds=20.0))
        await server.ledger.wait_for("hold x")
        for transport in server._transports:
            os.write(transport.get_extra_info("socket").fileno(), b"\x99" * 200)
        async with at_once():
            ended = await call
        assert isinstance(ended, ConnectionLost)
        assert str(ended).startswith("the connection to hostile was lost: the TLS connection failed: "), str(
            ended
        )
        assert ended.may_have_run
        await serves(a)


@pytest.mark.parametrize("bytes_of_handshake", [0, 1, 100])
async def test_t751_an_aborted_tls_handshake_is_reported(
    bystander_host, tmp_path: Path, bytes_of_handshake: int
):
    authority = Authority(tmp_path)
    server = secured(WAY.server(), authority.serving())
    async with server, FaultProxy(server.port) as proxy:
        proxy.down.close_at(bytes_of_handshake)
        url = server.url.replace(f":{server.port}/", f":{proxy.port}/")
        error = await refusal(bystander_host, entry("http", url, tls={"ca": authority.file}))
        assert "the connection was closed" in str(error)
        assert "Error" not in str(error)


@pytest.mark.parametrize("revision", [LEGACY])
async def test_t751_a_websocket_without_a_close_frame_is_reported(bystander_host, revision: str):
    way = Way("ws", revision)
    async with way.server() as server, bystander_host(way.entry(server), settings=COMES_BACK) as a:
        call = asyncio.create_task(end_of(a, "hold", key="x", seconds=20.0))
        await server.ledger.wait_for("hold x")
        server.cut_connections()
        async with at_once():
            ended = await call
        assert str(ended) == (
            "the connection to hostile was lost: the connection ended without a close frame; "
            "the request may have run"
        )
