"""T771: a deny rule that is added while a subscription to a resource waits for its server, for another
subscription or for a hook prevents its request, then and after a reconnect."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host, hook
from dragoman.errors import PermissionRefused
from tests.integration.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.requirement("PRM-1")]

SERVER = """
import json, os, sys, time
home, era = sys.argv[1:]
modern = era == "modern"
capabilities = {"resources": {"subscribe": True}, "tools": {}}
info = {"name": "s", "version": "1"}
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def wait_for(name):
    while not os.path.exists(home + "/" + name):
        time.sleep(0.01)
wait_for("start")
for line in sys.stdin:
    asked = json.loads(line)
    method, params = asked["method"], asked.get("params", {})
    uris = params.get("notifications", {}).get("resourceSubscriptions", [])
    if method == "resources/subscribe":
        uris = [params["uri"]]
    with open(home + "/asked", "a") as file:
        file.writelines(f"{uri}\\n" for uri in uris)
    if "id" not in asked:
        continue
    if method == "server/discover" and not modern:
        send(id=asked["id"], error={"code": -32601, "message": "unknown"})
        continue
    if uris == ["x:slow"]:
        wait_for("go")
    result = {"resultType": "complete"}
    if method == "server/discover":
        result |= {"supportedVersions": ["2026-07-28"], "serverInfo": info, "capabilities": capabilities,
                   "ttlMs": 0, "cacheScope": "private"}
    elif method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
    elif method == "tools/list":
        result |= {"tools": []}
    elif method == "subscriptions/listen":
        send(method="notifications/subscriptions/acknowledged", params={
            "notifications": params["notifications"],
            "_meta": {"io.modelcontextprotocol/subscriptionId": asked["id"]}})
        continue
    send(id=asked["id"], result=result)
"""
RULE = "read_mcp_resource(uri=x:secret)"


class World:
    def __init__(self, home: Path, era: str) -> None:
        (home / "server.py").write_text(SERVER)
        (home / "asked").touch()
        self.home = home
        self.entry: dict[str, Any] = {
            "command": sys.executable,
            "args": [str(home / "server.py"), str(home), era],
        }

    def host(self, **options: Any) -> Host:
        return Host({"s": self.entry}, permission_mode="bypassPermissions", **options)

    def let(self, step: str) -> None:
        (self.home / step).touch()

    @property
    def asked(self) -> list[str]:
        return (self.home / "asked").read_text().split()


@pytest.fixture(params=["legacy", "modern"])
def world(home: Path, request: pytest.FixtureRequest) -> World:
    return World(home, request.param)


def subscribing(host: Host, uri: str, seconds: float = 0) -> "asyncio.Task[None]":
    async def subscribe() -> None:
        async with host.resources.subscribed("s", uri):
            await asyncio.sleep(seconds)

    return asyncio.create_task(subscribe())


async def test_t771_a_rule_added_during_the_wait_for_its_server_prevents_the_subscription(world: World):
    async with world.host() as host:
        subscription = subscribing(host, "x:secret")
        await asyncio.sleep(0.2)
        host.add_rule("deny", RULE)
        world.let("start")
        with pytest.raises(PermissionRefused):
            await subscription
    assert world.asked == []


async def test_t771_a_rule_added_during_another_subscription_prevents_the_subscription(world: World):
    world.let("start")
    async with world.host() as host:
        await host.ready(timeout=20)
        slow = subscribing(host, "x:slow")
        await until(lambda: world.asked == ["x:slow"])
        subscription = subscribing(host, "x:secret")
        await asyncio.sleep(0.1)
        host.add_rule("deny", RULE)
        world.let("go")
        with pytest.raises(PermissionRefused):
            await subscription
        await slow
    assert "x:secret" not in world.asked


async def test_t771_a_rule_added_while_earlier_subscriptions_are_renewed_prevents_the_subscription(
    home: Path,
):
    world = World(home, "legacy")  # one request after the other
    for step in ("start", "go"):
        world.let(step)
    async with world.host() as host:
        await host.ready(timeout=20)
        tasks = [subscribing(host, "x:slow", 60)]
        await until(lambda: "x:slow" in world.asked)
        tasks.append(subscribing(host, "x:secret", 60))
        await until(lambda: "x:secret" in world.asked)
        (home / "go").unlink()
        (home / "asked").write_text("")
        reconnecting = asyncio.create_task(host.reconnect("s"))
        await until(lambda: world.asked == ["x:slow"])
        host.add_rule("deny", RULE)
        await asyncio.sleep(0.1)
        world.let("go")
        await reconnecting
        await asyncio.sleep(0.3)
        assert world.asked == ["x:slow"]
        for task in tasks:
            task.cancel()


async def test_t771_a_rule_added_while_a_later_hook_runs_prevents_the_subscription(world: World):
    world.let("start")

    async def deny(*_: Any) -> None:
        host.add_rule("deny", RULE)

    async with world.host(hooks=[hook(deny, "PostToolUse")]) as host:
        await host.ready(timeout=20)
        async with host.resources.subscribed("s", "x:secret") as updates:
            with pytest.raises(StopAsyncIteration):
                await asyncio.wait_for(anext(updates), 5)
            (world.home / "asked").write_text("")
            await host.reconnect("s")
            await asyncio.sleep(0.3)
    assert world.asked == []
