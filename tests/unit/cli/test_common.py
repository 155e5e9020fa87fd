"""What several commands share."""

from typing import Any

import pytest

from dragoman.cli.common import run_with_host
from dragoman.errors import HostClosed
from dragoman.host import Host


@pytest.mark.parametrize("fails", [False, True])
def test_resources_of_a_host_are_closed_after_the_host(fails: bool):
    hosts, found = list[Host](), list[Any]()

    async def work(host: Host) -> str:
        hosts.append(host)
        if fails:
            raise ValueError
        return "done"

    async def close() -> None:
        try:
            await hosts[0].call("mcp__a__b")
        except HostClosed:
            found.append("the host is closed")

    try:
        found.append(run_with_host({}, work, at_end=close))
    except ValueError:
        found.append("failed")
    assert found == ["the host is closed", "failed" if fails else "done"]
