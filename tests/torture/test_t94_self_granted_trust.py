"""T94: No project, plugin or connector list can declare itself trusted or get the organisation's token."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.config.connector_entries import safe_origins
from dragoman.config.connectors import entries_of, read_cache
from dragoman.config.model import fingerprint
from dragoman.config.schema import ConnectorsConfig
from dragoman.config.scopes import Sources
from dragoman.credentials import Challenge
from tests.certificates import Authority, secured
from tests.e2e.forked import run
from tests.servers import stdio_server
from tests.servers.web import streamable
from tests.torture import projects
from tests.torture.projects import Listener, seen, servers, write

LIST = "https://org.example.com/connectors"
CLOSED = "https://127.0.0.1:1/list"
"""No server listens there."""
COUNTS = "it applies only in your own settings, in code and in the administrator's file"
READS = json.dumps(
    [{"tools": [{"name": "get", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}]
)


# --- trust ---


def put_entry(home: Path, scope: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Writes the entry `box` into a file of the scope, approved; returns options for a host."""
    block = servers(box=entry)
    match scope:
        case "project" | "local":
            place = {"project": ".mcp.json", "local": ".dragoman/settings.local.json"}[scope]
            projects.approve(write(home / "work" / place, block), "box")
        case "plugin":
            write(home / ".dragoman" / "plugins" / "p" / ".mcp.json", block)
        case "user":
            projects.user(home, block)
        case "enterprise":
            projects.managed(home, block)
        case _:
            return {"servers": {"box": entry}}
    return {}


SCOPES = {
    "plugin": False,
    "user": True,
    "project": False,
    "local": False,
    "dynamic": True,
    "enterprise": True,
}


@pytest.mark.requirement("PRM-2")
@pytest.mark.parametrize(("scope", "counts"), SCOPES.items())
def test_t94_trusted_applies_only_in_entries_of_the_person_the_program_and_the_administrator(
    home: Path, scope: str, counts: bool
):
    entry = {"url": "https://box.example.com/mcp", "trusted": True}
    given = put_entry(home, scope, entry).get("servers")
    box = seen(given=given).servers["box"]
    assert (box.scope, box.eligibility) == (scope, "ready")
    assert box.config is not None
    assert box.config.trusted is counts


@pytest.mark.requirement("PRM-2")
@pytest.mark.parametrize("scope", ["project", "local", "plugin", "user", "dynamic", "enterprise"])
async def test_t94_mode_auto_ignores_annotations_of_a_server_that_declares_itself_trusted(
    home: Path, scope: str
):
    options = put_entry(home, scope, stdio_server("lists_given_pages.py", READS, trusted=True))
    async with Host.configured(permission_mode="auto", **options) as host:
        await host.ready(timeout=30)
        outcome = await host.call("mcp__box__get")
        assert outcome.is_error is not SCOPES[scope]
        told = [problem for problem in host.servers["box"].problems if "trusted" in problem]
        assert told == ([] if SCOPES[scope] else [f"trusted has no effect in scope {scope}: {COUNTS}"])


def test_t94_the_commands_report_that_trusted_has_no_effect(home: Path):
    put_entry(home, "project", stdio_server("well_behaved.py", trusted=True))
    assert "trusted has no effect in scope project" in run("config", "explain", "box").stdout
    added = run("mcp", "add-json", "new", '{"command": "true", "trusted": true}')
    assert added.returncode == 0
    assert "trusted has no effect in scope local" in added.stderr
    assert (
        "trusted"
        not in run("mcp", "add-json", "-s", "user", "new", '{"command": "x", "trusted": true}').stderr
    )


# --- the organisation's token ---


class Bearer:
    """Counts how often the token is requested."""

    def __init__(self) -> None:
        self.given = 0

    async def headers(self) -> Mapping[str, str]:
        self.given += 1
        return {"Authorization": "Bearer t0ken"}

    async def renew(self, challenge: Challenge) -> bool:
        return False


NAMED = {
    "nobody named an origin": {},
    "another port": {"connectors": {"url": CLOSED}},
    "another host": {"connectors": {"url": CLOSED, "bearerOrigins": ["https://127.0.0.2:{port}"]}},
    "another scheme": {"connectors": {"url": CLOSED, "bearerOrigins": ["{other}://127.0.0.1:{port}"]}},
    "a variable that is not set": {"connectors": {"url": "https://${GONE}/list"}},
    "a plain name": {"connectors": {"url": CLOSED, "bearerOrigins": ["127.0.0.1:{port}"]}},
}


@pytest.mark.requirement("TRN-8")
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("what", NAMED)
@pytest.mark.parametrize("scope", ["project", "local", "plugin", "user", "dynamic"])
async def test_t94_the_token_is_sent_only_to_origins_configured_by_the_organisation(
    home: Path, scope: str, what: str, scheme: str
):
    bearer = Bearer()
    with Listener() as listener:
        entry = {"type": "claudeai-proxy", "url": f"{scheme}://127.0.0.1:{listener.port}/mcp"}
        options = put_entry(home, scope, entry)
        text = json.dumps(NAMED[what]).replace("{port}", str(listener.port))
        named = json.loads(text.replace("{other}", "https" if scheme == "http" else "http"))
        user_file = Sources.here().user_file
        known = json.loads(user_file.read_text()) if user_file.exists() else {}
        projects.user(home, {**known, **named})
        async with Host.configured(bearer=lambda _: bearer, **options) as host:
            await host.ready(timeout=30)
            view = host.servers["box"]
            assert view.status == "failed"
            assert (view.error and view.error.code) == "config"
            origin = f"{scheme}://127.0.0.1:{listener.port}"
            assert f"the organisation's token is not sent to {origin}" in str(view.error)
            assert "bearerOrigins" in str(view.error and view.error.hint)
        assert listener.connections == 0
    assert bearer.given == 0


@pytest.mark.requirement("TRN-8")
@pytest.mark.parametrize("named_by", ["the list's own origin", "bearerOrigins", "the administrator", "code"])
async def test_t94_a_configured_origin_gets_the_token(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named_by: str
):
    authority = Authority(tmp_path)
    monkeypatch.setenv("DRAGOMAN_CA_FILE", authority.file)
    bearer = Bearer()
    async with secured(streamable(), authority.serving()) as server:
        origin = server.url.rpartition("/")[0]
        options = put_entry(home, "dynamic", {"type": "claudeai-proxy", "url": server.url})
        match named_by:
            case "code":
                options["bearer_origins"] = [origin.upper() + "/"]
            case "bearerOrigins":
                projects.user(home, {"connectors": {"url": CLOSED, "bearerOrigins": [f"{origin}/mcp"]}})
            case "the administrator":
                projects.managed(home, {"connectors": {"url": CLOSED, "bearerOrigins": [origin]}})
            case _:
                projects.user(home, {"connectors": {"url": f"{origin}/list"}})
        async with Host.configured(bearer=lambda _: bearer, **options) as host:
            await host.ready(timeout=30)
            assert host.servers["box"].status == "connected", host.servers["box"].reason
        assert {ask.headers.get("Authorization") for ask in server.asks if ask.path == "/mcp"} == {
            "Bearer t0ken"
        }


DETOURS: dict[str, dict[str, Any]] = {
    "a proxy": {"proxy": "http://127.0.0.1:{port}"},
    "an authority": {"tls": {"ca": "ca.pem"}},
    "a Host header": {"headers": {"hOsT": "evil.example.com"}},
}


@pytest.mark.requirement("TRN-8")
@pytest.mark.parametrize("what", DETOURS)
@pytest.mark.parametrize("scope", ["project", "local", "plugin"])
async def test_t94_no_other_scope_sends_the_token_through_a_proxy_or_other_option(
    home: Path, scope: str, what: str
):
    bearer = Bearer()
    with Listener() as listener:
        fields = json.loads(json.dumps(DETOURS[what]).replace("{port}", str(listener.port)))
        origin = f"https://127.0.0.1:{listener.port}"
        put_entry(home, scope, {"type": "claudeai-proxy", "url": f"{origin}/mcp", **fields})
        async with Host.configured(bearer=lambda _: bearer, bearer_origins=[origin]) as host:
            await host.ready(timeout=30)
            assert "may not set" in str(host.servers["box"].error)
        assert listener.connections == 0
    assert bearer.given == 0


# --- connector lists ---

FINE: dict[str, Any] = {"url": "https://box.example.com/mcp"}

UNFIT: dict[str, tuple[dict[str, Any], str]] = {
    **{
        f"sets {field}": ({**FINE, field: value}, f"a connector may not set {field}")
        for field, value in {
            "trusted": True,
            "proxy": "http://evil.example.com",
            "tls": {"cert": "/home/me/.ssh/id"},
            "oauth": {"xaa": True},
            "tokenHeader": "X",
            "lazy": True,
            "env": {},
            "cwd": "/",
            "args": [],
            "command": "sh",
            "headersHelper": "id",
        }.items()
    },
    **{
        f"type {kind}": ({**FINE, "type": kind}, "its type is none of http, sse, ws and claudeai-proxy")
        for kind in ("sdk", "stdio", "sse-ide", "ws-ide", "in-process", "", None, 5, ["http"])
    },
    **{
        f"address {host}": (
            {"url": f"https://{host}/mcp"},
            "the host of its URL is not public",
        )
        for host in (
            "169.254.169.254",
            "[fe80::1]",
            "127.0.0.1",
            "2130706433",
            "0x7f.1",
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "0.0.0.0",
            "[::]",
            "[fd00::1]",
            "224.0.0.1",
            "[ff02::1]",
            "[2002:7f00:1::]",
            "[2002:a9fe:a9fe::]",
            "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b::7f00:1]",
        )
    },
    "plain http": (
        {"url": "http://box.example.com/mcp"},
        "its URL does not begin with https:// or wss://",
    ),
    "plain ws": (
        {"type": "ws", "url": "ws://box.example.com/mcp"},
        "its URL does not begin with https:// or wss://",
    ),
    "no address": ({"type": "http"}, "it has no URL"),
    "no text": ({"url": 5}, "it has no URL"),
    "nonsense": ({"url": "https://"}, "the URL has no host"),
    "another host": (
        {**FINE, "headers": {"HOST": "evil.example.com"}},
        "a connector may not set the header HOST",
    ),
    "a length": (
        {**FINE, "headers": {"Content-Length": "0"}},
        "a connector may not set the header Content-Length",
    ),
    "a proxy's header": (
        {**FINE, "headers": {"Proxy-Authorization": "x"}},
        "a connector may not set the header Proxy-Authorization",
    ),
    "headers of another form": ({**FINE, "headers": ["Host: x"]}, "its headers are not an object of texts"),
    "a header that is a number": ({**FINE, "headers": {"A": 1}}, "its headers are not an object of texts"),
}


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize("what", UNFIT)
def test_t94_a_list_entry_that_is_not_a_plain_remote_server_is_left_out(what: str):
    entry, reason = UNFIT[what]
    assert entries_of({"mcpServers": {"bad": entry, "good": FINE}}) == (
        {"good": FINE},
        [f"'bad' is left out: {reason}"],
    )


@pytest.mark.requirement("CFG-1")
def test_t94_unknown_fields_are_dropped_and_fields_of_other_hosts_understood():
    listed = {
        "name": "box",
        "serverUrl": "https://box.example.com/mcp",
        "headers": {"X-Team": "a"},
        "includeTools": ["get"],
        "timeout": 5,
        "description": "Boxes",
        "icon": {"trusted": True},
    }
    assert entries_of({"connectors": [listed]}) == (
        {
            "box": {
                "url": "https://box.example.com/mcp",
                "type": "http",
                "headers": {"X-Team": "a"},
                "enabledTools": ["get"],
                "timeout": 5,
            }
        },
        [],
    )


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize("what", UNFIT)
def test_t94_a_cached_copy_of_an_earlier_version_is_checked_again(tmp_path: Path, what: str):
    entry, _ = UNFIT[what]
    path = write(tmp_path / "c.json", {"list": fingerprint(LIST), "servers": {"bad": entry, "good": FINE}})
    assert read_cache(path, ConnectorsConfig(LIST)).servers == {"good": FINE}


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize(
    ("host", "fits"),
    [("127.0.0.1:9", True), ("localhost", True), ("169.254.169.254", False), ("10.0.0.1", False)],
)
def test_t94_a_list_on_this_machine_may_name_servers_on_this_machine(tmp_path: Path, host: str, fits: bool):
    """For development: a program that answers there is already running on this machine."""
    url = "http://127.0.0.1:8/list"
    entry = {"url": f"http://{host}/mcp"}
    path = write(tmp_path / "c.json", {"list": fingerprint(url), "servers": {"box": entry}})
    assert read_cache(path, ConnectorsConfig(url)).servers == ({"box": entry} if fits else {})


@pytest.mark.requirement("TRN-8")
@pytest.mark.parametrize(
    ("named", "safe"),
    [
        (["https://a.example.com/x?y"], ["https://a.example.com"]),
        (
            ["https://A.example.com:443", "https://b.example.com:8443"],
            ["https://a.example.com", "https://b.example.com:8443"],
        ),
        (["http://a.example.com", "ws://a.example.com", "wss://a.example.com"], []),
        (["https://a.example.com@evil.example.com", "*", "https://*", "", "a.example.com"], []),
        (["http://127.0.0.1:5", "http://localhost"], ["http://127.0.0.1:5", "http://localhost"]),
        (["http://169.254.169.254", "http://10.0.0.1"], []),
    ],
    ids=str,
)
def test_t94_only_https_origins_and_this_machine_can_be_configured(named: list[str], safe: list[str]):
    assert sorted(safe_origins(named)) == safe
