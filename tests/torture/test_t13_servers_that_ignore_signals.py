"""T13: Servers that refuse to end are killed, all at the same time."""

import pytest

from tests.servers import stdio_server

STUBBORN = stdio_server("ignores_signals.py")


@pytest.mark.requirement("TRN-1")
async def test_t13_a_server_that_ignores_every_request_to_end_is_killed(bystander_host):
    async with bystander_host(STUBBORN) as a:
        await a.serves_still()
    assert a.close_seconds < 2
    assert a.view.exit_code == -9


@pytest.mark.requirement("LIF-10")
async def test_t13_ten_servers_that_refuse_to_end_are_killed_in_parallel(bystander_host):
    async with bystander_host(STUBBORN, others={f"stubborn_{n}": STUBBORN for n in range(9)}) as a:
        assert all(view.status == "connected" for view in a.host.servers.values())
    assert a.close_seconds < 4
    codes = [view.exit_code for name, view in a.host.servers.items() if name != "bystander"]
    assert codes == [-9] * 10


@pytest.mark.requirement("LIF-10")
async def test_t13_closing_does_not_wait_for_servers_that_are_connecting(bystander_host):
    silent = {f"silent_{n}": stdio_server("silent.py") for n in range(5)}
    async with bystander_host(STUBBORN, others=silent, wait=False) as a:
        pass
    assert a.close_seconds < 4
