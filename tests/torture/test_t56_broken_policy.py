"""T56: A policy file that cannot be read.

No server starts, every command reports it, and readable rules still apply."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.direct import open_session
from dragoman import Host
from dragoman.cli import exit_codes
from dragoman.errors import PolicyRefused
from tests.e2e.command import config
from tests.e2e.forked import in_terminal, run
from tests.servers import stdio_server
from tests.torture import projects
from tests.torture.projects import COMMANDS, Canary, eligibilities, invocations, servers, write

pytestmark = pytest.mark.requirement("CFG-7")

GOOD = json.dumps({"deniedMcpServers": [{"serverName": "evil"}]}).encode()

CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "truncated": GOOD[:-3],
    "not UTF-8": GOOD.replace(b"evil", b"\xff\xfe"),
    "UTF-16": GOOD.decode().encode("utf-16"),
    "NULs": bytes(100),
    "a list": b"[" + GOOD + b"]",
    "a text": b'"x"',
    "null": b"null",
    "servers as a list": b'{"mcpServers": []}',
    "servers as null": b'{"mcpServers": null}',
    "a key twice": b'{"deniedMcpServers": [], "deniedMcpServers": []}',
    "too deep": b'{"deniedMcpServers":' + b"[" * 10_000,
    "too large": b'{"x": "' + b"x" * (9 * 1024 * 1024) + b'"}',
    "a comment": b"// x\n" + GOOD,
}


def content(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


def loop(path: Path) -> None:
    path.symlink_to(path)


def leads_nowhere(path: Path) -> None:
    path.symlink_to(path.parent / "not mounted" / "policy.json")


INVALID_FILES: dict[str, Callable[[Path], object]] = {
    **{what: content(data) for what, data in CONTENTS.items()},
    "a folder": Path.mkdir,
    "a pipe": lambda path: os.mkfifo(path),
    "a link to itself": loop,
    "a link that leads nowhere": leads_nowhere,
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


class ManagedSetup:
    """A person with servers of every scope, and an administrator whose file is made invalid."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.canary = Canary(home / "canary")
        self.file = home / "managed" / "managed-mcp.json"
        self.file.parent.mkdir()
        entry = self.canary.entry
        projects.user(home, servers(mine=entry("mine")))
        write(home / ".dragoman" / "plugins" / "p" / ".mcp.json", servers(plugged=entry("plugged")))
        for file, name in ((".mcp.json", "shared"), (".dragoman/settings.local.json", "own")):
            projects.approve(write(home / "work" / file, servers(**{name: entry(name)})), name)
        self.names = ["mine", "plugged", "shared", "own"]

    def spoil(self, what: str) -> None:
        INVALID_FILES[what](self.file)


@pytest.fixture
def managed_setup(home: Path) -> ManagedSetup:
    return ManagedSetup(home)


def test_t56_without_a_managed_file_everything_starts(managed_setup: ManagedSetup):
    run("tools")
    assert managed_setup.canary.started == set(managed_setup.names)


@pytest.mark.parametrize("what", INVALID_FILES)
def test_t56_no_server_of_any_scope_is_admitted(managed_setup: ManagedSetup, what: str):
    managed_setup.spoil(what)
    entry = managed_setup.canary.entry("coded")
    configuration = projects.seen(given={"coded": entry})
    found = {name: server.eligibility for name, server in configuration.servers.items()}
    assert found == dict.fromkeys([*managed_setup.names, "coded"], "refused") or (
        found == {} and {each.why for each in configuration.dropped} == {"exclusive"}
    )
    assert configuration.admit("new", entry).eligibility == "refused"
    assert str(managed_setup.file) in "\n".join(configuration.problems)


@pytest.mark.parametrize("what", INVALID_FILES)
async def test_t56_no_server_starts_through_the_library(managed_setup: ManagedSetup, what: str):
    managed_setup.spoil(what)
    entry = managed_setup.canary.entry("coded")
    for host in (Host.configured(servers={"coded": entry}), Host({"coded": entry})):
        async with host:
            await host.ready(timeout=30)
            assert "connected" not in {view.status for view in host.servers.values()}
            async with host.for_agent([{"inline": entry}]) as agent:
                await agent.ready(timeout=30)
                assert agent.tools() == []
    with pytest.raises(PolicyRefused):
        await (await open_session(entry)).close()
    assert managed_setup.canary.started == set()


@pytest.mark.parametrize("what", INVALID_FILES)
def test_t56_commands_that_would_start_servers_report_the_reason(managed_setup: ManagedSetup, what: str):
    managed_setup.spoil(what)
    given = config(coded=managed_setup.canary.entry("coded"))
    for words in (["tools"], ["tools", "--mcp-config", given], ["call", "mcp__mine__echo"], ["mcp", "list"]):
        done = run(*words)
        assert str(managed_setup.file) in done.stdout + done.stderr, words
        assert managed_setup.canary.started == set(), words
    done = run("mcp", "add", "new", "true", "-s", "user")
    assert done.returncode == exit_codes.CONFIG
    assert str(managed_setup.file) in done.stderr


def test_t56_a_file_without_read_permission_counts_as_unreadable(
    managed_setup: ManagedSetup, monkeypatch: pytest.MonkeyPatch
):
    """Root can read every file, so the error is simulated."""
    managed_setup.file.write_bytes(GOOD)
    real = os.open

    def refuse(path: Any, *arguments: Any, **more: Any) -> int:
        if Path(path) == managed_setup.file:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *arguments, **more)

    monkeypatch.setattr(os, "open", refuse)
    assert set(eligibilities().values()) == {"refused"}
    assert any(str(managed_setup.file) in problem for problem in projects.seen().problems)


SILENT = {"completion", "config schema", "logs"}
"""These commands do not use the configuration."""


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("command", [command for command in COMMANDS if command not in SILENT])
def test_t56_every_command_reports_it_on_stderr(managed_setup: ManagedSetup, command: str):
    managed_setup.spoil("truncated")
    for words in invocations(command, managed_setup.names):
        done = run(*words)
        assert "Traceback" not in done.stderr, words
        assert managed_setup.canary.started == set(), words
        if done.returncode == exit_codes.USAGE or "--help" in words:
            continue
        assert str(managed_setup.file) in done.stderr + done.stdout, words
        if "--json" not in words:
            assert str(managed_setup.file) in done.stderr, words


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["tools", "--mcp-config", "demo"], exit_codes.CONFIG),
        (["call", "mcp__mine__echo"], exit_codes.CONFIG),
        (["mcp", "add", "new", "true"], exit_codes.CONFIG),
        (["mcp", "add-json", "new", '{"command": "true"}'], exit_codes.CONFIG),
        (["mcp", "enable", "mine"], exit_codes.CONFIG),
        (["mcp", "list"], exit_codes.CONFIG),
        (["mcp", "list", "--json"], exit_codes.CONFIG),
        (["config", "explain"], exit_codes.OK),
        (["config", "plan"], exit_codes.OK),
        (["demo"], exit_codes.CONFIG),
        (["demo", "--json"], exit_codes.CONFIG),
    ],
    ids=str,
)
def test_t56_each_command_ends_with_the_expected_exit_code(
    managed_setup: ManagedSetup, words: list[str], code: int
):
    managed_setup.spoil("truncated")
    done = run(*words)
    assert "Traceback" not in done.stderr
    assert done.returncode == code


def test_t56_the_reason_is_shown_in_a_terminal(managed_setup: ManagedSetup):
    managed_setup.spoil("truncated")
    assert str(managed_setup.file) in in_terminal("tools")[1]
    assert managed_setup.canary.started == set()


def test_t56_an_import_adds_nothing(managed_setup: ManagedSetup):
    managed_setup.spoil("truncated")
    write(managed_setup.home / ".claude.json", servers(new=stdio_server("well_behaved.py")))
    done = run("mcp", "import", "claude-code")
    assert "Added 0 of 1" in done.stdout
    assert "new" not in eligibilities()


async def test_t56_a_file_that_becomes_invalid_while_a_host_runs_leaves_the_previous_rules_in_force(
    managed_setup: ManagedSetup,
):
    projects.managed(managed_setup.home, {"deniedMcpServers": [{"serverName": "own"}]})
    async with Host.configured() as host:
        await host.ready(timeout=30)
        before = {name: view.status for name, view in host.servers.items()}
        assert before == {
            "mine": "connected",
            "plugged": "connected",
            "shared": "connected",
            "own": "disabled",
        }
        managed_setup.spoil("truncated")
        assert (await host.reload()).is_empty
        assert {name: view.status for name, view in host.servers.items()} == before
        assert any(str(managed_setup.file) in problem for problem in host.configuration.problems)
        with pytest.raises(PolicyRefused):
            await host.reconnect("own")
        assert run("tools").returncode == exit_codes.CONFIG, "a new host has no version to go by"
        managed_setup.file.unlink()
        await host.reload()
        await host.ready(timeout=30)
        assert {view.status for view in host.servers.values()} == {"connected"}


# --- one invalid entry ---

WRONG_ENTRIES: list[Any] = [
    None,
    5,
    "mine",
    [],
    {},
    {"serverName": 5},
    {"serverName": ""},
    {"serverNam": "mine"},
    {"serverName": "mine", "serverUrl": "https://x.example.com"},
    {"serverUrl": "not a url"},
    {"serverUrl": ["https://x.example.com"]},
    {"serverCommand": "npx -y box"},
    {"serverCommand": []},
    {"serverCommand": ["npx", 5]},
]


# A text in a deny list denies the server of that name, so it is valid there.
@pytest.mark.parametrize("wrong", [each for each in WRONG_ENTRIES if each != "mine"], ids=repr)
def test_t56_an_invalid_deny_entry_affects_only_itself(managed_setup: ManagedSetup, wrong: Any):
    projects.managed(managed_setup.home, {"deniedMcpServers": [wrong, {"serverName": "mine"}, wrong]})
    assert eligibilities()["mine"] == "refused"
    problems = "\n".join(projects.seen().problems)
    assert str(managed_setup.file) in problems
    assert "deniedMcpServers[0]" in problems
    assert "deniedMcpServers[2]" in problems


@pytest.mark.parametrize("wrong", WRONG_ENTRIES, ids=repr)
def test_t56_an_invalid_allow_entry_never_extends_the_list(managed_setup: ManagedSetup, wrong: Any):
    projects.managed(managed_setup.home, {"allowedMcpServers": [wrong]})
    assert set(eligibilities().values()) == {"refused"}
    assert "allowedMcpServers[0]" in "\n".join(projects.seen().problems)


@pytest.mark.parametrize("wrong", [None, 5, "mine", {}, {"serverName": "mine"}, True, False], ids=repr)
@pytest.mark.parametrize("key", ["allowedMcpServers", "deniedMcpServers"])
def test_t56_an_allow_list_of_the_wrong_type_admits_nothing(
    managed_setup: ManagedSetup, key: str, wrong: Any
):
    projects.managed(managed_setup.home, {key: wrong})
    assert set(eligibilities().values()) == {"refused"}
    assert any(key in problem for problem in projects.seen().problems)


@pytest.mark.parametrize("wrong", [None, 1, "false", [], {}], ids=repr)
def test_t56_an_invalid_managed_only_flag_is_treated_as_true(managed_setup: ManagedSetup, wrong: Any):
    projects.user(
        managed_setup.home,
        {**servers(mine=stdio_server("well_behaved.py")), "allowedMcpServers": [{"serverName": "mine"}]},
    )
    projects.managed(managed_setup.home, {"allowManagedMcpServersOnly": wrong, "allowedMcpServers": []})
    assert eligibilities()["mine"] == "refused"
    assert any("managed-only" in problem for problem in projects.seen().problems)


@pytest.mark.parametrize("key", ["deniedMcpServer", "denyMcpServers", "DeniedMcpServers", "policy"])
def test_t56_a_misspelt_key_is_reported_with_its_line(managed_setup: ManagedSetup, key: str):
    projects.managed(managed_setup.home, {key: [], "deniedMcpServers": [{"serverName": "mine"}]})
    assert eligibilities()["mine"] == "refused"
    assert any(
        f"{managed_setup.file}, line 2" in problem and key in problem for problem in projects.seen().problems
    )


def test_t56_invalid_entries_are_reported_by_the_commands_too(managed_setup: ManagedSetup):
    projects.managed(managed_setup.home, {"deniedMcpServers": [{"serverNam": "x"}, {"serverName": "mine"}]})
    for words in (["tools"], ["mcp", "list"], ["config", "explain"], ["call", "mcp__plugged__echo"]):
        done = run(*words)
        assert "deniedMcpServers[0]" in done.stderr, words
    assert not managed_setup.canary.started, "an entry that cannot be read denies everything"


def test_t56_a_broken_user_file_removes_no_rule_of_the_administrator(managed_setup: ManagedSetup):
    projects.managed(managed_setup.home, {"deniedMcpServers": [{"serverName": "own"}]})
    (managed_setup.home / ".dragoman" / "settings.json").write_text("{")
    assert eligibilities() == {"plugged": "refused", "shared": "refused", "own": "refused"}
    ignoring = eligibilities(ignore_broken_settings=True)
    assert ignoring == {"plugged": "ready", "shared": "ready", "own": "refused"}


def test_t56_an_exclusive_file_with_an_invalid_server_is_still_exclusive(managed_setup: ManagedSetup):
    projects.managed(managed_setup.home, servers(bad={"command": 5}, good=stdio_server("well_behaved.py")))
    assert eligibilities() == {"bad": "broken", "good": "ready"}
    assert {each.candidate.name for each in projects.seen().dropped} == set(managed_setup.names)
