"""T147: control characters in arguments, options with one dash, parts of secrets, malformed deny
entries."""

from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.config.masking import masked_entry
from dragoman.testing import InMemoryServer
from tests.e2e.forked import run
from tests.torture import projects

KEY, OTHER = "k1-Zx81hQp02Lm", "k2-Yt93aWq77Bn"
PASSWORD = "hunter2Xyz-77q"


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize("mark", ["\x1c", "\x1d", "\x1e", "\x1f", "\x01"])
@pytest.mark.parametrize("place", ["value", "path", "name"])
async def test_t147_control_characters_in_an_argument_do_not_avoid_a_deny_rule(mark: str, place: str):
    arguments = {
        "value": {"path": f"dr{mark}op table t"},
        "path": {"path": f"/e{mark}tc/passwd"},
        "name": {f"pa{mark}th": "/etc/passwd"},
    }[place]
    server = InMemoryServer("x")
    server.add_tool("read_file", lambda given, context: "read", description="Reads.", properties={})
    rules = {"deny": ["mcp__x__read_file(path=*drop table*)", "mcp__x__read_file(path=/etc/*)"]}
    async with Host({"x": server}, rules=rules, permission_mode="bypassPermissions") as host:
        await host.ready()
        outcome = await host.call("mcp__x__read_file", arguments)
    assert outcome.error is not None
    assert outcome.error.code == "refused"


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize(
    "command",
    [
        "npm run a -script-shell=./x",
        "npm run a -script-shell ./x",
        "npm run a -scr=./x",
        "npm run a -userconfig=./rc",
        "npm run a -globalconfig=./rc",
        "pnpm run a --config.script-shell=./x",
    ],
)
def test_t147_options_with_one_dash_that_name_a_program_need_permission(home: Path, command: str):
    program = command.split()[0]
    projects.user(home, {"permissions": {"allow": [f"Bash({program} run *)"]}})
    assert run("permissions", "test", "Bash", command).returncode == 8
    assert run("permissions", "test", "Bash", f"{program} run a -s").returncode == 0


@pytest.mark.requirement("CAL-7")
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("API_KEYS", f"{KEY},{OTHER}", OTHER),
        ("API_KEYS", f"a:{KEY};b:{OTHER}", KEY),
        ("AUTH_HEADER", f"Authorization: Bearer {KEY}", f"Bearer {KEY}"),
        ("APP_PASSWORD", f'"{PASSWORD}"', PASSWORD),
        ("PRIVATE_KEY", f"-----BEGIN-----\\n{KEY}\\n{OTHER}\\n-----END-----", f"{KEY}\n{OTHER}"),
        ("PRIVATE_KEY", f"-----BEGIN-----\\n{KEY}\\n{OTHER}\\n-----END-----", f"{KEY}\r\n{OTHER}"),
    ],
)
async def test_t147_credentials_inside_a_secret_are_redacted(name: str, value: str, said: str):
    from dragoman.config.masking import secrets_of
    from dragoman.config.model import ServerConfig
    from dragoman.content.redact import Redactor

    shown = Redactor(secrets_of(ServerConfig(command="x", env={name: value}))).text(f"it was {said} there")
    assert not any(secret in shown for secret in (KEY, OTHER, PASSWORD) if secret in said)
    assert "[secret]" in shown


@pytest.mark.requirement("AUT-11")
@pytest.mark.parametrize(
    "entry",
    [
        {"url": f"https://box.example.com/mcp/key={PASSWORD}/x"},
        {"url": f"https://box.example.com/mcp;token={PASSWORD}/x"},
        {"command": "x", "secrets": {"github": PASSWORD}},
        {"command": "x", "auth": {"type": "basic", "value": PASSWORD}},
        {"command": "x", "Env": {"FOO": PASSWORD}},
        {"command": "x", "httpHeaders": {"X-Foo": PASSWORD}},
    ],
    ids=str,
)
def test_t147_no_entry_is_printed_with_a_secret(entry: dict[str, Any]):
    assert PASSWORD not in str(masked_entry(entry))


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize("place", ["user", "managed"])
@pytest.mark.parametrize(
    ("item", "other"),
    [
        ({"serverName": "h", "comment": "see ticket"}, "ready"),
        ({"serverName": "h", "serverCommand": "x"}, "ready"),
        ({"serverCommand": "/bin/echo h"}, "ready"),
        ({"serverName": ["h"]}, "ready"),
        ({"command": "/bin/echo h"}, "ready"),
        ({"serverName": 5}, "refused"),
        (["h"], "refused"),
        ({"serverCommand": "'"}, "refused"),
    ],
    ids=str,
)
def test_t147_a_malformed_deny_entry_denies_its_readable_part_or_everything(
    home: Path, place: str, item: Any, other: str
):
    entries = {"h": {"command": "/bin/echo", "args": ["h"]}, "other": {"command": "/bin/true"}}
    denied = {"deniedMcpServers": [item]}
    projects.user(home, {**projects.servers(**entries), **(denied if place == "user" else {})})
    if place == "managed":
        projects.managed(home, denied)
    found = projects.seen()
    assert (found.servers["h"].eligibility, found.servers["other"].eligibility) == ("refused", other)
    assert any("deniedMcpServers[0]" in problem for problem in found.problems)
