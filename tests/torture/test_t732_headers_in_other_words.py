"""T732: headers that forward a message to another host or path, spelled with `_` or named as other proxies
name them; and company sign-on in an entry that needs approval."""

from pathlib import Path

import pytest

from dragoman.config.connectors import entries_of
from tests.e2e import forked
from tests.torture.projects import managed, servers, user, write

pytestmark = pytest.mark.requirement("CFG-7")
HEADERS = [
    "X_Forwarded_Host",
    "Mcp_Session_Id",
    "X-Host",
    "X-HTTP-Host-Override",
    "X-HTTP-Method-Override",
    "X-Envoy-Original-Path",
    "X-URL",
]
URL = "http://127.0.0.1:9/mcp"


@pytest.mark.parametrize("header", HEADERS)
def test_t732_a_rule_about_its_url_does_not_admit_such_an_entry(home: Path, header: str):
    managed(home, {"allowedMcpServers": [{"serverUrl": URL}]})
    user(home, servers(box={"url": URL, "headers": {header: "evil.example"}}))
    ended = forked.run("mcp", "list")
    assert f"but the entry sets the header {header}, which sends requests to another host" in ended.stdout
    user(home, servers(box={"url": URL, "headers": {"X-Api-Version": "2"}}))
    assert "which sends requests" not in forked.run("mcp", "list").stdout


@pytest.mark.parametrize("header", HEADERS)
def test_t732_a_connector_list_cannot_set_such_a_header(header: str):
    entry = {"url": "https://box.example/mcp", "headers": {header: "evil.example"}}
    found = entries_of({"mcpServers": {"box": entry}})
    assert found == ({}, [f"'box' is left out: a connector may not set the header {header}"])


def test_t732_the_approval_question_mentions_the_company_sign_on(home: Path):
    write(Path(".mcp.json"), servers(box={"url": URL, "oauth": {"xaa": True, "clientId": "x"}}))
    ended = forked.run("mcp", "approve", "box")
    assert "oauth.xaa: tokens for the server are obtained with your company's sign-on" in ended.stderr
