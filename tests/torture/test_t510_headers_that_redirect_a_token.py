"""T510: an entry that is not the person's does not send the organisation's token with a header by which a
proxy may forward the request to another host or path: the same headers that policy knows."""

from pathlib import Path

import pytest

from dragoman import Host
from dragoman.config.connectors import entries_of
from tests.torture.projects import Listener
from tests.torture.test_t94_self_granted_trust import Bearer, put_entry

pytestmark = pytest.mark.requirement("TRN-8")

HEADERS = ["X-Forwarded-Host", "Forwarded", "x-original-url", "X-Rewrite-URL", "Mcp-Session-Id"]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("scope", ["project", "local", "plugin"])
async def test_t510_the_server_is_refused_and_not_contacted(home: Path, scope: str, header: str):
    bearer = Bearer()
    with Listener() as listener:
        origin = f"https://127.0.0.1:{listener.port}"
        entry = {"type": "claudeai-proxy", "url": f"{origin}/mcp", "headers": {header: "evil.example"}}
        put_entry(home, scope, entry)
        async with Host.configured(bearer=lambda _: bearer, bearer_origins=[origin]) as host:
            await host.ready(timeout=30)
            assert f"may not set the header {header}" in str(host.servers["box"].error)
        assert listener.connections == 0
    assert bearer.given == 0


@pytest.mark.parametrize("header", HEADERS)
def test_t510_a_connector_list_cannot_set_such_a_header(header: str):
    entry = {"url": "https://box.example/mcp", "headers": {header: "evil.example"}}
    found = entries_of({"mcpServers": {"box": entry}})
    assert found == ({}, [f"'box' is left out: a connector may not set the header {header}"])
