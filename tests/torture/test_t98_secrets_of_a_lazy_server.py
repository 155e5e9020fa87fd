"""T98: a secret that becomes known only while a request is made is masked in the answer to this request."""

import json
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dragoman import Host
from tests.servers.web import streamable
from tests.torture.conftest import MODERN

pytestmark = pytest.mark.requirement("AUT-11")
SECRET = "s3cr3t-0f-th1s-helper"


async def by_call(host: Host) -> str:
    return (await host.call("mcp__x__echo", {"text": SECRET})).text


async def by_resource(host: Host) -> str:
    return (await host.resources.read("x", "note://a")).text


@pytest.mark.parametrize("first", [by_call, by_resource])
async def test_t98_the_first_answer_of_a_lazy_server_is_masked_with_the_output_of_its_helper(
    home: Path, first: Callable[[Host], Awaitable[str]]
):
    (home / "headers").write_text(json.dumps({"Authorization": f"Bearer {SECRET}"}))
    helper = f"cat {shlex.quote(str(home / 'headers'))}"  # nothing in the entry itself is secret
    async with streamable(revisions=(MODERN,)) as server:
        server.in_memory.contents.add_resource("note://a", SECRET)
        entry = {"url": server.url, "headersHelper": helper, "lazy": True}
        async with Host({"x": entry}, permission_mode="bypassPermissions") as host:
            await host.ready()  # its tools are known from now on
        async with Host({"x": entry}, permission_mode="bypassPermissions") as host:
            assert host.servers["x"].status == "pending"
            assert await first(host) == "[secret]"
