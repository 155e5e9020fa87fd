"""T223: rules for an entry in the gateway's own host apply to it in the host of a caller as well."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.config.scopes import Sources
from tests.callers_site import CallersSite, call, names, signed_in
from tests.gateway import Client, Json, gateway_of

pytestmark = pytest.mark.requirement("GWY-3")
FORMS: Json = {"elicitation": {"form": {}}}


@pytest.fixture
def site() -> Iterator[CallersSite]:
    with CallersSite() as running:
        yield running


def write(path: Path, document: object) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(json.dumps(document))


def settings(home: Path, site: CallersSite, **more: Any) -> None:
    write(home / ".dragoman" / "settings.json", {"mcpServers": {"tracker": site.entry}, **more})


async def test_t223_a_projects_entry_without_approval_is_not_contacted(home: Path, site: CallersSite):
    write(home / "work" / ".mcp.json", {"mcpServers": {"tracker": site.entry}})
    async with gateway_of(Sources.here(), own=["tracker"]) as running, Client(running.url) as ada:
        assert await names(ada) == []
        assert await call(ada, "tracker__authenticate") == "Unknown tool: tracker__authenticate"
        assert site.registrations == 0


async def test_t223_an_approved_project_entry_stays_connected_when_another_entry_changes(
    home: Path, site: CallersSite
):
    settings(home, site, mcpServers={}, enableAllProjectMcpServers=True)
    write(home / "work" / ".mcp.json", {"mcpServers": {"tracker": site.entry}})
    async with gateway_of(Sources.here(), own=["tracker"]) as running, Client(running.url) as ada:
        await signed_in(ada, site, "anna")
        settings(home, site, mcpServers={}, enableAllProjectMcpServers=True, permissions={"deny": ["mcp__x"]})
        await running.host.reload()
        assert await call(ada) == "anna"
        # What an edit adds to a project needs an explicit approval, though all were approved at the start.
        write(home / "work" / ".mcp.json", {"mcpServers": {"tracker": {**site.entry, "timeout": 5000}}})
        await running.host.reload()
        assert await names(ada) == []


async def test_t223_a_policy_added_later_ends_the_servers_of_all_callers(home: Path, site: CallersSite):
    settings(home, site)
    async with gateway_of(Sources.here(), own=["tracker"]) as running, Client(running.url) as ada:
        await signed_in(ada, site, "anna")
        for kind in ("resources", "resources/templates", "prompts"):  # loaded in the background
            await ada.modern(f"{kind}/list")
        before = len(site.sent)
        settings(home, site, deniedMcpServers=[{"serverName": "tracker"}])
        await running.host.reload()
        assert await names(ada) == []
        assert await call(ada) == "Unknown tool: tracker__whoami"
        assert len(site.sent) == before


async def test_t223_a_rule_added_later_applies_at_once(home: Path, site: CallersSite):
    settings(home, site)
    async with gateway_of(Sources.here(), own=["tracker"]) as running, Client(running.url) as ada:
        await signed_in(ada, site, "anna")
        running.host.add_rule("deny", "mcp__tracker__whoami")
        assert await names(ada) == ["tracker__look"]
        assert await call(ada) == "Unknown tool: tracker__whoami"


async def test_t223_a_caller_is_asked_as_for_a_shared_server_and_its_approval_is_its_own(site: CallersSite):
    async with (
        gateway_of({"tracker": site.entry}, own=["tracker"], permission_mode="default") as running,
        Client(running.url) as ada,
    ):
        await signed_in(ada, site, "anna")
        params: Json = {"name": "tracker__whoami", "arguments": {}}
        asked = (await ada.modern("tools/call", params, capabilities=FORMS)).last["result"]
        ((key, question),) = asked["inputRequests"].items()
        assert "May mcp__tracker__whoami be called" in question["params"]["message"]
        params["requestState"] = asked["requestState"]
        answer = {"answer": "allow while the gateway runs"}
        params["inputResponses"] = {key: {"action": "accept", "content": answer}}
        done = (await ada.modern("tools/call", params, capabilities=FORMS)).last["result"]
        assert done["content"][0]["text"] == "anna"
        assert await call(ada) == "anna"
        hosts = running.gateway.callers
        assert hosts is not None
        await hosts.close()
        assert await call(ada) == "anna", "a yes outlives the host of the caller"
