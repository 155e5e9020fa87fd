"""T374: a policy rule repeats a server's command, and with it a secret, which is never printed."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import DragomanError
from tests.e2e.forked import run
from tests.torture.projects import managed, user

pytestmark = pytest.mark.requirement("AUT-11")

SECRET = "cAnary-4711-secret"
LOCAL = {"command": "/bin/false", "args": ["--token", SECRET]}
REMOTE = {"type": "http", "url": f"http://127.0.0.1:1/mcp?key={SECRET}"}
RULES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a command": (LOCAL, {"serverCommand": ["/bin/false", "--token", SECRET]}),
    "a command in one text": (LOCAL, {"serverCommand": f"/bin/false --token {SECRET}"}),
    "a name beside it": (LOCAL, {"serverName": "box", "serverCommand": ["/bin/false", "--token", SECRET]}),
    "a query": (REMOTE, {"serverUrl": f"http://127.0.0.1:1/mcp?key={SECRET}"}),
    "a login": (REMOTE, {"serverUrl": f"http://me:{SECRET}@127.0.0.1:1/*"}),
}
LISTS = ("deniedMcpServers", "allowedMcpServers")
COMMANDS = (["config", "explain"], ["config", "explain", "--json"], ["mcp", "list"], ["mcp", "get", "box"])


@pytest.mark.parametrize("key", LISTS)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("put", [user, managed])
async def test_t374_no_command_prints_a_secret_of_a_rule(home: Path, put: Any, rule: str, key: str):
    entry, said = RULES[rule]
    servers = {"mcpServers": {"box": entry}}
    if put is user:
        user(home, {**servers, key: [said]})
    else:
        user(home, servers)
        managed(home, {key: [said]})
    for words in COMMANDS:
        shown = run(*words)
        assert SECRET not in shown.stdout + shown.stderr, words


async def test_t374_no_error_contains_a_secret_of_a_rule(home: Path):
    user(home, {"mcpServers": {"box": LOCAL}, "deniedMcpServers": [RULES["a command"][1]]})
    async with Host.configured() as host:
        shown = json.dumps([str(view) for view in host.servers.values()])
        try:
            shown += repr(await host.call("mcp__box__get"))
        except DragomanError as error:
            shown += f"{error} {error.hint}"
    assert "serverCommand" in shown
    assert SECRET not in shown
