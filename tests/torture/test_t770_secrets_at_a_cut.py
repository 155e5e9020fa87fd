"""T770: a server writes a secret of its entry so that the host's limit for the text cuts it. Neither the
complete secret nor its beginning is shown, logged or passed to a hook."""

import json
import sys
from pathlib import Path
from typing import Any, Literal

import pytest

from dragoman import DragomanError, Host
from dragoman.connections import server_log
from dragoman.interaction import UrlElicitation

pytestmark = [pytest.mark.slow, pytest.mark.requirement("AUT-11")]

SECRET = "s3cr3t-0f-th1s-entry"
HALF = SECRET[:12]

SERVER = """
import json, os, sys
secret, told = os.environ["API_KEY"], json.loads(sys.argv[1])
def at(limit):
    return "x" * (limit - 12) + secret + "y" * 400
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    method = asked.get("method")
    if method == "server/discover" and told["era"] == "modern":
        info = {"name": "x", "version": "1"}
        result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "serverInfo": info,
                  "capabilities": {"tools": {}, "resources": {}}, "ttlMs": 0, "cacheScope": "private"}
        send(id=asked["id"], result=result)
    elif method == "server/discover":
        send(id=asked["id"], error={"code": -32601, "message": "no"})
    elif method == "initialize":
        send(id=asked["id"], result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                     "serverInfo": {"name": "x", "version": "1"}})
    elif method == "tools/list":
        send(id=asked["id"], result={"resultType": "complete", "tools": [
            {"name": "go", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        for each in told["requests"]:
            params = each.get("params", {})
            cut = {name: at(value) if isinstance(value, int) else value for name, value in params.items()}
            method = at(each["method"]) if isinstance(each["method"], int) else each["method"]
            send(id=f"s{len(method)}", method=method, params=cut)
        result = {"content": []}
        if told["kind"]:
            result["resultType"] = at(told["kind"])
        if told["requests"] and told["era"] == "legacy":
            sys.stdin.readline()
        send(id=asked["id"], result=result)
    elif "id" in asked:
        send(id=asked["id"], result={"resultType": "complete", "contents": [], "resources": []})
"""


class Person:
    def __init__(self) -> None:
        self.shown: list[UrlElicitation] = []

    async def elicit_url(self, question: UrlElicitation) -> Literal["decline"]:
        self.shown.append(question)
        return "decline"


def entry(era: str, requests: list[dict[str, Any]], kind: int = 0) -> dict[str, Any]:
    told = json.dumps({"era": era, "requests": requests, "kind": kind})
    return {"command": sys.executable, "args": ["-c", SERVER, told], "env": {"API_KEY": SECRET}}


def host_of(server: dict[str, Any], person: Person) -> Host:
    return Host({"x": server}, interaction=person, permission_mode="bypassPermissions", server_logs=True)


REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "a request that the era forbids": ("modern", {"method": 200}),
    "an unknown mode": ("legacy", {"method": "elicitation/create", "params": {"mode": 50, "message": "m"}}),
}


@pytest.mark.parametrize("name", REQUESTS)
async def test_t770_the_server_log_contains_no_part_of_it(home: Path, name: str):
    era, request = REQUESTS[name]
    async with host_of(entry(era, [request]), Person()) as host:
        await host.ready(timeout=20)
        await host.call("mcp__x__go", {}, timeout_seconds=5)
    logged = server_log.path_of("x").read_text()
    assert "xxxx" in logged
    assert HALF not in logged


async def test_t770_the_id_of_an_elicitation_contains_no_part_of_it(home: Path):
    params = {"mode": "url", "message": "m", "url": "https://example.com/", "elicitationId": 1000}
    request = {"method": "elicitation/create", "params": params}
    person = Person()
    async with host_of(entry("legacy", [request]), person) as host:
        await host.ready(timeout=20)
        await host.call("mcp__x__go", {}, timeout_seconds=5)
    [question] = person.shown
    assert "xxxx" in question.elicitation_id
    assert HALF not in question.elicitation_id


async def test_t770_the_error_about_an_undeclared_result_type_contains_no_part_of_it(home: Path):
    async with host_of(entry("modern", [], kind=40), Person()) as host:
        await host.ready(timeout=20)
        with pytest.raises(DragomanError) as raised:
            await host.call("mcp__x__go", {}, timeout_seconds=5)
    assert "xxxx" in str(raised.value)
    assert HALF not in str(raised.value)
