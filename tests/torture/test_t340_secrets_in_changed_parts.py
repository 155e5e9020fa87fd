"""T340: a server cannot leak a secret of its entry through the URI of a changed sub-resource."""

import sys

import pytest

from dragoman import Host

pytestmark = pytest.mark.requirement("AUT-11")
SECRET = "canary-0123456789-abcdef"
SERVER = """
import json, sys

results = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"resources": {"subscribe": True}},
        "serverInfo": {"name": "parts", "version": "1"},
    },
    "resources/read": {"contents": []},
}


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "resources/read":
        for part in ("one", "canary-0123456789-abcdef"):
            send(method="notifications/resources/updated", params={"uri": f"book://divan/{part}"})
    if "id" in asked:
        send(id=asked["id"], result=results.get(asked["method"], {}))
"""


async def test_t340_the_subscribed_resource_is_reported_in_place_of_the_sub_resource():
    entry = {"command": sys.executable, "args": ["-c", SERVER], "protocol": "legacy", "env": {"KEY": SECRET}}
    async with Host({"box": entry}) as host:
        await host.ready()
        async with host.resources.subscribed("box", "book://divan") as updates:
            await host.resources.read("box", "book://divan")
            found = [(await anext(updates)).uri for _ in range(2)]
    assert found == ["book://divan/one", "book://divan"]
