"""The policy decision is the same for every code path that can start a server."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.direct import open_session
from dragoman import Host
from dragoman.cli import exit_codes
from dragoman.config import approval, connectors
from dragoman.config.load import load
from dragoman.config.model import ServerConfig
from dragoman.config.schema import ConnectorsConfig
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigError, DragomanError, PolicyRefused
from dragoman.testing import InMemoryServer
from tests.case_selection import some
from tests.e2e.command import config
from tests.e2e.forked import run
from tests.servers import stdio_server
from tests.torture import projects
from tests.torture.projects import Canary, Listener, eligibilities, servers, write

pytestmark = pytest.mark.requirement("CFG-7")

Rules = dict[str, Any]
NAME = "box"


def policies(entry: Mapping[str, Any]) -> dict[str, tuple[Rules, bool]]:
    """What an administrator may state about this server, and whether it may then be started."""
    command = [entry["command"], *entry["args"]]
    return {
        "denied by name": ({"deniedMcpServers": [{"serverName": NAME}]}, False),
        "denied by pattern": ({"deniedMcpServers": [{"serverName": "b*"}]}, False),
        "denied by command": ({"deniedMcpServers": [{"serverCommand": command}]}, False),
        "denied and allowed": (
            {"deniedMcpServers": [{"serverName": NAME}], "allowedMcpServers": [{"serverCommand": command}]},
            False,
        ),
        "nothing allowed": ({"allowedMcpServers": []}, False),
        "others allowed": ({"allowedMcpServers": [{"serverName": "other"}]}, False),
        "another command allowed": ({"allowedMcpServers": [{"serverCommand": [*command, "x"]}]}, False),
        "name allowed beside a command": (
            {"allowedMcpServers": [{"serverName": NAME}, {"serverCommand": ["x"]}]},
            False,
        ),
        "no policy": ({}, True),
        "allowed by name": ({"allowedMcpServers": [{"serverName": NAME}]}, True),
        "allowed by command": ({"allowedMcpServers": [{"serverCommand": command}]}, True),
        "others denied": ({"deniedMcpServers": [{"serverName": "other"}, {"serverCommand": ["x"]}]}, True),
    }


POLICIES = list(policies({"command": "", "args": []}))
DENYING = [what for what, (_, verdict) in policies({"command": "", "args": []}).items() if not verdict]


class Stage:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.work = home / "work"
        self.canary = Canary(home / "canary")
        self.entry = self.canary.entry(NAME)
        self.policies = policies(self.entry)

    def rule(self, what: str) -> bool:
        rules, verdict = self.policies[what]
        projects.managed(self.home, rules)
        return verdict

    @property
    def has_started(self) -> bool:
        return self.canary.started == {NAME}


@pytest.fixture
def stage(home: Path) -> Stage:
    return Stage(home)


async def opened(host: Host) -> None:
    async with host:
        await host.ready(timeout=30)
        assert ("connected" in {view.status for view in host.servers.values()}) == bool(host.tools())


# --- the code paths ---


async def from_user_file(stage: Stage) -> None:
    projects.user(stage.home, servers(box=stage.entry))
    await opened(Host.configured())


async def from_project(stage: Stage) -> None:
    projects.approve(write(stage.work / ".mcp.json", servers(box=stage.entry)), NAME)
    await opened(Host.configured())


async def from_project_trusted_by_the_person(stage: Stage) -> None:
    projects.user(stage.home, {"enableAllProjectMcpServers": True})
    write(stage.work / ".mcp.json", servers(box=stage.entry))
    await opened(Host.configured())


async def from_local_file(stage: Stage) -> None:
    file = write(stage.work / ".dragoman" / "settings.local.json", servers(box=stage.entry))
    projects.approve(file, NAME)
    await opened(Host.configured())


async def from_plugin(stage: Stage) -> None:
    write(stage.home / ".dragoman" / "plugins" / "p" / ".mcp.json", servers(box=stage.entry))
    await opened(Host.configured())


async def from_code(stage: Stage) -> None:
    await opened(Host({NAME: stage.entry}))


async def from_code_as_config(stage: Stage) -> None:
    config = ServerConfig(command=stage.entry["command"], args=tuple(stage.entry["args"]))
    await opened(Host({NAME: config}))


async def from_code_beside_files(stage: Stage) -> None:
    await opened(Host.configured(servers={NAME: stage.entry}))


async def from_code_strictly(stage: Stage) -> None:
    await opened(Host.configured(servers={NAME: stage.entry}, strict=True))


async def from_an_agent(stage: Stage) -> None:
    async with Host({}) as host, host.for_agent([{NAME: stage.entry}]) as agent:
        await agent.ready(timeout=30)


async def from_an_agent_that_requires_it(stage: Stage) -> None:
    async with Host({}) as host:
        try:
            async with host.for_agent([{NAME: stage.entry}], required=[NAME]) as agent:
                await agent.ready(timeout=30)
        except ConfigError:
            pass


async def at_a_reload(stage: Stage) -> None:
    async with Host.configured() as host:
        await host.ready(timeout=30)
        projects.user(stage.home, servers(box=stage.entry))
        await host.reload()
        await host.ready(timeout=30)


async def while_watching(stage: Stage) -> None:
    projects.user(stage.home, {})
    async with Host.configured(watch=True) as host:
        await host.ready(timeout=30)
        async with asyncio.timeout(30):
            while NAME not in host.servers:
                projects.user(stage.home, servers(box=stage.entry))
                await asyncio.sleep(0.3)
        await host.ready(timeout=30)


async def by_switching_on(stage: Stage) -> None:
    projects.user(stage.home, {**servers(box=stage.entry), "disabledMcpServers": [NAME]})
    await asyncio.to_thread(run, "mcp", "enable", NAME)
    await opened(Host.configured())


async def by_adding(stage: Stage) -> None:
    words = ["mcp", "add", "-s", "user", NAME, "--", stage.entry["command"], *stage.entry["args"]]
    await asyncio.to_thread(run, *words)
    await opened(Host.configured())


async def by_adding_json_with_a_check(stage: Stage) -> None:
    await asyncio.to_thread(run, "mcp", "add-json", "--check", NAME, json.dumps(stage.entry))


async def by_importing(stage: Stage) -> None:
    write(stage.home / ".claude.json", servers(box=stage.entry))
    await asyncio.to_thread(run, "mcp", "import", "claude-code")
    await opened(Host.configured())


async def by_approving(stage: Stage) -> None:
    write(stage.work / ".mcp.json", servers(box=stage.entry))
    await asyncio.to_thread(run, "mcp", "approve", NAME, "--yes")
    await opened(Host.configured())


def by_command(*words: str) -> Callable[[Stage], Awaitable[None]]:
    async def way(stage: Stage) -> None:
        projects.user(stage.home, servers(box=stage.entry))
        await asyncio.to_thread(run, *words)

    return way


def by_option(*words: str) -> Callable[[Stage], Awaitable[None]]:
    async def way(stage: Stage) -> None:
        await asyncio.to_thread(run, *words, "--mcp-config", config(box=stage.entry))

    return way


WAYS: dict[str, Callable[[Stage], Awaitable[None]]] = {
    "user": from_user_file,
    "project": from_project,
    "project, trusted": from_project_trusted_by_the_person,
    "local": from_local_file,
    "plugin": from_plugin,
    "code": from_code,
    "code, ServerConfig": from_code_as_config,
    "code beside files": from_code_beside_files,
    "code, strict": from_code_strictly,
    "agent": from_an_agent,
    "agent, required": from_an_agent_that_requires_it,
    "reload": at_a_reload,
    "watch": while_watching,
    "mcp enable": by_switching_on,
    "mcp add": by_adding,
    "mcp add-json --check": by_adding_json_with_a_check,
    "mcp import": by_importing,
    "mcp approve": by_approving,
    "tools": by_command("tools"),
    "call": by_command("call", "mcp__box__echo", "message=x"),
    "mcp list": by_command("mcp", "list"),
    "mcp get": by_command("mcp", "get", NAME),
    "tools --mcp-config": by_option("tools"),
    "tools --strict-mcp-config": by_option("tools", "--strict-mcp-config"),
    "call --mcp-config": by_option("call", "mcp__box__echo"),
    "mcp list --mcp-config": by_option("mcp", "list"),
    "mcp get --mcp-config": by_option("mcp", "get", NAME),
}


@pytest.mark.parametrize(("way", "what"), some(WAYS, POLICIES, each=5))
async def test_t57_a_denied_server_never_starts_and_an_allowed_one_does(stage: Stage, way: str, what: str):
    verdict = stage.rule(what)
    await WAYS[way](stage)
    assert stage.has_started == verdict


BY_WHAT_IT_IS = (
    "denied by command",
    "nothing allowed",
    "others allowed",
    "another command allowed",
    "no policy",
)


@pytest.mark.parametrize("what", [*BY_WHAT_IT_IS, "allowed by command", "others denied"])
async def test_t57_a_direct_session_is_checked_by_its_command_or_url(stage: Stage, what: str):
    """It has no name that a rule could match."""
    verdict = stage.rule(what) or what == "denied and allowed"  # it is denied by a name
    try:
        await (await open_session(stage.entry)).close()
    except PolicyRefused:
        assert not verdict
    assert stage.has_started == verdict


# --- an entry is checked before it is written ---


@pytest.mark.parametrize(("scope", "what"), some(["user", "project", "local"], DENYING, each=3))
def test_t57_a_denied_server_is_not_written_to_a_file(stage: Stage, what: str, scope: str):
    stage.rule(what)
    command = [stage.entry["command"], *stage.entry["args"]]
    write(stage.home / ".claude.json", servers(box=stage.entry))
    for words in (
        ["mcp", "add", "-s", scope, NAME, "--", *command],
        ["mcp", "add-json", "-s", scope, NAME, json.dumps(stage.entry)],
    ):
        done = run(*words)
        assert done.returncode == exit_codes.CONFIG, words
        assert "policy" in done.stderr or "allow" in done.stderr or "denied" in done.stderr
    assert "Added 0 of 1" in run("mcp", "import", "claude-code", "-s", scope).stdout
    assert NAME not in eligibilities()
    assert not stage.canary.started


# --- the person's own rules apply to all of the person's servers ---

OWN_RULES: dict[str, Rules] = {
    "deny": {"deniedMcpServers": [{"serverName": NAME}]},
    "allow": {"allowedMcpServers": []},
}


@pytest.mark.parametrize("rule", OWN_RULES)
@pytest.mark.parametrize("way", ["beside files", "agent", "--mcp-config", "--strict-mcp-config", "mcp add"])
async def test_t57_the_persons_own_rules_apply_there_too(stage: Stage, way: str, rule: str):
    projects.user(stage.home, OWN_RULES[rule])
    given = config(box=stage.entry)
    match way:
        case "beside files":
            await opened(Host.configured(servers={NAME: stage.entry}))
        case "agent":
            async with Host.configured() as host, host.for_agent([{NAME: stage.entry}]) as agent:
                await agent.ready(timeout=30)
        case "mcp add":
            await asyncio.to_thread(run, "mcp", "add-json", "--check", NAME, json.dumps(stage.entry))
        case "--mcp-config":
            await asyncio.to_thread(run, "tools", "--mcp-config", given)
        case _:
            await asyncio.to_thread(run, "tools", "--mcp-config", given, "--strict-mcp-config")
    assert not stage.canary.started


# --- reloads and reconnects ---


@pytest.mark.parametrize("what", DENYING)
async def test_t57_a_running_server_that_is_denied_by_a_reload_is_stopped(stage: Stage, what: str):
    projects.user(stage.home, servers(box=stage.entry, other=stdio_server("well_behaved.py")))
    async with Host.configured(permission_mode="bypassPermissions") as host:
        await host.ready(timeout=30)
        pid = host.servers[NAME].pid
        stage.rule(what)
        await host.reload()
        assert host.servers[NAME].status == "disabled"
        assert isinstance(host.servers[NAME].error, PolicyRefused)
        assert not Path(f"/proc/{pid}").exists()
        assert f"mcp__{NAME}__echo" not in [tool.name for tool in host.tools()]
        with pytest.raises(DragomanError):
            (await host.call(f"mcp__{NAME}__echo", {"message": "x"})).raise_for_error()


@pytest.mark.parametrize("what", POLICIES)
async def test_t57_every_new_transport_is_checked_again(stage: Stage, what: str):
    """A lost server is reconnected long after the configuration was read."""
    projects.user(stage.home, servers(box=stage.entry))
    host = Host.configured()
    make = host._servers[NAME].connection._target.make_transport
    make()
    verdict = stage.rule(what)
    host._servers.configuration = load(Sources.here())
    if verdict:
        make()
    else:
        with pytest.raises(PolicyRefused):
            make()


async def test_t57_the_program_that_was_checked_is_the_one_that_is_started(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    """A second program of the same name, put first on the path after the check, is not started."""
    for folder, mark in (("first", "usurper"), ("second", NAME)):
        tool = stage.home / folder / "tool"
        tool.parent.mkdir()
        tool.write_text(f"#!/bin/sh\n{stage.canary.script(mark)}\n")
        tool.chmod(0o755)
    path = f"{stage.home / 'first'}:{stage.home / 'second'}:/usr/bin:/bin"
    monkeypatch.setenv("PATH", path)
    (stage.home / "first" / "tool").rename(stage.home / "first" / "later")
    allowed = [{"serverCommand": [str(stage.home / "second" / "tool")]}]
    projects.managed(stage.home, {"allowedMcpServers": allowed})
    host = Host({NAME: {"command": "tool"}})
    (stage.home / "first" / "later").rename(stage.home / "first" / "tool")
    async with host:
        await host.ready(timeout=30)
    assert "usurper" not in stage.canary.started


async def test_t57_the_program_lookup_is_the_same_for_the_check_and_for_the_start(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    """Whichever PATH the administrator sets: a denied program is not found through the other one."""
    for folder in ("judged", "denied"):
        tool = stage.home / folder / "tool"
        tool.parent.mkdir()
        tool.write_text(f"#!/bin/sh\n{stage.canary.script(folder)}\n")
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stage.home / 'denied'}:/usr/bin:/bin")
    variables = {"PATH": f"{stage.home / 'judged'}:/usr/bin:/bin"}
    denied = [{"serverCommand": [str(stage.home / "denied" / "tool")]}]
    projects.managed(stage.home, {"env": variables, "deniedMcpServers": denied})
    approval.confirm_variables(Sources.here().approvals_file, variables)

    await opened(Host({NAME: {"command": "tool"}}))

    assert "denied" not in stage.canary.started


# --- servers without a process ---


@pytest.mark.parametrize("denied", [True, False])
async def test_t57_in_process_servers_are_checked_by_name(stage: Stage, denied: bool):
    server = InMemoryServer(NAME)
    projects.managed(stage.home, {"deniedMcpServers": [{"serverName": NAME if denied else "other"}]})
    async with Host({NAME: server}) as host, Host({}) as other, other.for_agent([{NAME: server}]) as agent:
        await host.ready(timeout=30)
        await agent.ready(timeout=30)
        expected = "disabled" if denied else "connected"
        assert host.servers[NAME].status == expected
        assert agent.servers[NAME].status == expected


REMOTE: dict[str, tuple[Rules, str]] = {
    "denied": ({"deniedMcpServers": [{"serverUrl": "http://127.0.0.1/*"}]}, "refused"),
    "denied by name": ({"deniedMcpServers": [{"serverName": NAME}]}, "refused"),
    "another allowed": ({"allowedMcpServers": [{"serverUrl": "https://box.example.com/*"}]}, "refused"),
    "allowed": ({"allowedMcpServers": [{"serverUrl": "http://127.0.0.1:*/*"}]}, "ready"),
    "no policy": ({}, "ready"),
}


@pytest.mark.parametrize("kind", ["http", "sse", "ws"])
@pytest.mark.parametrize(("place", "what"), some(["user", "plugin", "connectors", "code"], REMOTE, each=3))
async def test_t57_a_denied_address_is_not_connected_to(stage: Stage, what: str, place: str, kind: str):
    rules, eligibility = REMOTE[what]
    if kind == "ws":
        rules = json.loads(json.dumps(rules).replace("http://", "ws://"))
    projects.managed(stage.home, rules)
    with Listener() as listener:
        scheme = "ws" if kind == "ws" else "http"
        entry = {"type": kind, "url": f"{scheme}://127.0.0.1:{listener.port}/mcp"}
        given = _put_remote(stage, place, entry)
        host = Host.configured(servers=given, settings={"MCP_TIMEOUT": 300})
        assert host.configuration.servers[NAME].eligibility == eligibility
        async with host:
            await host.ready(timeout=30)
            assert (host.servers[NAME].status == "disabled") == (eligibility == "refused")
        if eligibility == "refused":
            assert listener.connections == 0


def _put_remote(stage: Stage, place: str, entry: dict[str, Any]) -> dict[str, Any]:
    match place:
        case "user":
            projects.user(stage.home, servers(box=entry))
        case "plugin":
            write(stage.home / ".dragoman" / "plugins" / "p" / ".mcp.json", servers(box=entry))
        case "connectors":
            listed = {"url": "http://127.0.0.1:1/"}  # a list on this machine may name servers on this machine
            projects.user(stage.home, {"connectors": listed})
            cache = Sources.here().connectors_cache
            connectors._keep(cache, ConnectorsConfig(**listed), {NAME: entry}, None, time.time())  # type: ignore[reportPrivateUsage]
        case _:
            return {NAME: entry}
    return {}


def test_t57_a_connector_list_cannot_start_a_program_on_this_machine(stage: Stage):
    found, problems = connectors.entries_of(servers(box=stage.entry, far={"url": "https://x.example.com/"}))
    assert list(found) == ["far"]
    assert len(problems) == 1
