"""T171: a sign-in contacts a server only if it may be started: approved, admitted, enabled. Rules about the
server apply to its pseudo-tool."""

from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import ConfigError, PolicyRefused, SignInFailed
from dragoman.sign_ins import CollectingScreen
from tests.integration.desk import Desk
from tests.servers.web import answers, streamable
from tests.torture.projects import Listener

pytestmark = pytest.mark.requirement("AUT-7")


def entry(port: int, **oauth: Any) -> dict[str, Any]:
    origin = f"http://127.0.0.1:{port}"
    return {"type": "http", "url": f"{origin}/mcp", "oauth": {"issuer": origin, **oauth}}


SECRET = {"grant": "client_credentials", "clientId": "me", "clientSecret": "canary-secret-1"}


def arrange(desk: Desk, case: str, server: dict[str, Any]) -> None:
    if case == "not approved":
        desk.in_project({"x": server})
        return
    desk.user({"x": server}, **({"disabledMcpServers": ["x"]} if case == "disabled" else {}))
    if case == "denied by policy":
        desk.managed(deniedMcpServers=[{"serverName": "x"}])


@pytest.mark.parametrize("case", ["not approved", "denied by policy", "disabled"])
async def test_t171_no_sign_in_contacts_a_server_that_may_not_be_started(home: Path, case: str):
    with Listener() as listener:
        arrange(Desk(home), case, entry(listener.port, **SECRET))
        async with Host.configured(cwd=Desk(home).project) as host:
            await host.ready(10)
            with pytest.raises((ConfigError, PolicyRefused)) as caught:
                await host.sign_in("x", CollectingScreen(), timeout=5)
            assert not isinstance(caught.value, SignInFailed)
            assert host.sign_in_tools() == {}
        assert listener.connections == 0


@pytest.mark.parametrize("rule", ["mcp__x", "mcp__x__*", "mcp__x__authenticate"])
async def test_t171_rules_that_deny_the_server_deny_its_sign_in(home: Path, rule: str):
    async with streamable(on={"*": answers.challenge()}) as server:
        rules = {"deny": [rule]}
        async with Host({"x": {"url": server.url}}, rules=rules) as host:
            await host.ready(10)
            before = len(server.asks)
            outcome = await host.call("mcp__x__authenticate")
            assert outcome.is_error
            assert f"deny rule {rule} of dynamic (code)" in outcome.text
            assert len(server.asks) == before


async def test_t171_without_a_rule_the_sign_in_is_allowed_in_every_mode(home: Path):
    async with (
        streamable(on={"*": answers.challenge()}) as server,
        Host({"x": {"url": server.url}}, permission_mode="dontAsk") as host,
    ):
        await host.ready(10)
        outcome = await host.call("mcp__x__authenticate")
        assert "The sign-in to x failed: x: sign-in failed: " in outcome.text
