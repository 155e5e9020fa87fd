"""T100: Settings with deny rules that cannot be read. What they denied remains denied."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.direct import open_session
from dragoman import Host
from dragoman.calls.outcome import CallOutcome
from dragoman.catalog.tools import BuiltinTool
from dragoman.cli import exit_codes
from dragoman.config.load import load
from dragoman.config.scopes import Sources
from dragoman.errors import PolicyRefused
from tests.e2e.command import config
from tests.e2e.forked import run
from tests.servers import stdio_server
from tests.torture import projects
from tests.torture.projects import COMMANDS, Canary, invocations, seen, servers, write

pytestmark = pytest.mark.requirement("PRM-1")

FLAG = "--ignore-broken-settings"
PLACES = {"user": ".dragoman/settings.json", "local": "work/.dragoman/settings.local.json"}
MANAGED = "managed/managed-mcp.json"


def add_trailing_comma(path: Path) -> None:
    text = path.read_text()
    path.write_text(text.rstrip().removesuffix("}").rstrip() + ",\n}\n")


def text(content: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(content)


def replaced_by(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def replace(path: Path) -> None:
        path.unlink()
        make(path)

    return replace


def change(**values: Any) -> Callable[[Path], object]:
    return lambda path: path.write_text(json.dumps({**json.loads(path.read_text()), **values}, indent=2))


SPOILED: dict[str, Callable[[Path], object]] = {
    "a trailing comma": add_trailing_comma,
    "cut off": lambda path: path.write_text(path.read_text()[:-4]),
    "empty": text(""),
    "NULs": text("\0" * 9),
    "a list": text("[]"),
    "a key twice": text('{"permissions": {}, "permissions": {}}'),
    "another encoding": lambda path: path.write_bytes(path.read_text().encode("utf-16")),
    "a folder": replaced_by(Path.mkdir),
    "a pipe": replaced_by(lambda path: os.mkfifo(path)),
    "a link to itself": replaced_by(lambda path: path.symlink_to(path)),
    "a link to nothing": replaced_by(lambda path: path.symlink_to(path.parent / "gone.json")),
    "rules of another form": change(permissions=["mcp__mine"]),
    "a deny that is no list": change(permissions={"deny": "mcp__mine"}),
    "an ask that is no list": change(permissions={"ask": {"mcp__mine": True}}),
    "off, but no list": change(disabledMcpServers="mine"),
}
HOOKS: dict[str, Callable[[Path], object]] = {
    "hooks of another form": change(hooks=["x"]),
    "a hook that is no list": change(hooks={"PreToolUse": {"hooks": []}}),
}


class Home:
    """A plugin's server that the person's or the local settings deny in part."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.canary = Canary(home / "canary")
        plugin = home / ".dragoman" / "plugins" / "p" / ".mcp.json"
        write(plugin, servers(mine=self.canary.entry("mine")))
        self.file = Path()

    def denies(self, place: str, **more: Any) -> Path:
        rules = {"deny": ["mcp__mine__echo"], "defaultMode": "default"}
        self.file = write(self.home / {**PLACES, "managed": MANAGED}[place], {"permissions": rules, **more})
        return self.file


@pytest.fixture
def desk(home: Path) -> Home:
    return Home(home)


CASES = [
    *((place, what) for place in PLACES for what in SPOILED),
    *(("user", what) for what in HOOKS),
]


def spoil(desk: Home, what: str) -> None:
    {**SPOILED, **HOOKS}[what](desk.file)


# --- at the start ---


@pytest.mark.parametrize(("place", "what"), CASES)
def test_t100_no_server_is_admitted_and_the_file_is_named(desk: Home, place: str, what: str):
    desk.denies(place)
    spoil(desk, what)
    for options in ({}, {"only_given": True}):
        configuration = seen(given={"coded": desk.canary.entry("coded")}, **options)
        assert {server.eligibility for server in configuration.servers.values()} == {"refused"}
        assert configuration.admit("new", {"command": "true"}).eligibility == "refused"
        reason = str(configuration.servers["coded"].reason)
        assert str(desk.file) in reason
        assert FLAG in reason
        assert configuration.problems[0].partition(": ")[0] == (
            "settings cannot be read, so no server is started and no call is made"
        )
        assert str(desk.file) in configuration.problems[0]


@pytest.mark.parametrize("place", PLACES)
def test_t100_the_line_is_reported(desk: Home, place: str):
    desk.denies(place)
    add_trailing_comma(desk.file)
    line = desk.file.read_text().count("\n") - 1
    assert seen().problems == (
        "settings cannot be read, so no server is started and no call is made: "
        f"{desk.file}, line {line}, column 4: a trailing comma is not allowed in JSON; "
        f"correct the file, or ignore it for one run with {FLAG}",
    )


@pytest.mark.parametrize(("place", "what"), CASES)
async def test_t100_nothing_starts_and_no_call_is_made_through_the_library(desk: Home, place: str, what: str):
    desk.denies(place)
    spoil(desk, what)
    entry = desk.canary.entry("coded")
    ran: list[str] = []

    async def act(arguments: Any) -> str:
        ran.append("own")
        return "done"

    own = BuiltinTool("write_file", act, description="writes", input_schema={"type": "object"})
    for host in (Host.configured(servers={"coded": entry}), Host({"coded": entry})):
        async with host:
            await host.ready(timeout=30)
            assert {view.status for view in host.servers.values()} == {"disabled"}
            async with host.for_agent([{"inline": entry}]) as agent:
                await agent.ready(timeout=30)
                assert agent.tools() == []
            outcome = await host.call("write_file", {}, builtin_tools={"write_file": own})
            assert outcome.is_error
            assert str(desk.file) in outcome.text
    with pytest.raises(PolicyRefused):
        await (await open_session(entry)).close()
    assert desk.canary.started == set()
    assert ran == []


@pytest.mark.parametrize("place", PLACES)
def test_t100_the_commands_that_connect_are_refused_with_file_line_reason_and_next_step(
    desk: Home, place: str
):
    desk.denies(place, **servers(mine=desk.canary.entry("mine")))
    if place == "local":
        projects.approve(desk.file, "mine")
    assert run("call", "mcp__mine__echo", "message=x").returncode == exit_codes.REFUSED
    desk.canary.forget()
    add_trailing_comma(desk.file)
    for words in (
        ["call", "mcp__mine__echo", "message=x"],
        ["call", "--yes", "mcp__mine__echo", "message=x"],
        ["tools"],
        ["tools", "--mcp-config", config(coded=desk.canary.entry("coded"))],
        ["tools", "--strict-mcp-config", "--mcp-config", config(coded=desk.canary.entry("coded"))],
        ["resources"],
        ["demo"],
    ):
        done = run(*words)
        assert done.returncode == exit_codes.CONFIG, words
        assert f"{desk.file}, line " in done.stderr, words
        assert FLAG in done.stderr, words
        assert "Traceback" not in done.stderr
        assert desk.canary.started == set(), words


READERS: list[tuple[list[str], int]] = [
    (["mcp", "list"], exit_codes.CONFIG),
    (["mcp", "list", "--no-health"], exit_codes.CONFIG),
    (["mcp", "get", "mine"], exit_codes.OK),
    (["mcp", "approve"], exit_codes.OK),
    (["config", "explain"], exit_codes.OK),
    (["config", "explain", "mine"], exit_codes.OK),
    (["config", "plan"], exit_codes.OK),
    (["permissions", "list"], exit_codes.OK),
    (["permissions", "test", "mcp__mine__echo"], exit_codes.REFUSED),
    (["permissions", "explain", "mcp__mine__echo"], exit_codes.OK),
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("words", "code"), READERS, ids=str)
def test_t100_read_only_commands_still_work_and_report_it(
    desk: Home, place: str, words: list[str], code: int
):
    desk.denies(place)
    add_trailing_comma(desk.file)
    done = run(*words)
    assert done.returncode == code
    assert f"{desk.file}, line " in done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("! settings cannot be read")]
    assert len(told) == 1
    assert desk.canary.started == set()


@pytest.mark.parametrize("place", PLACES)
def test_t100_rules_can_be_added_to_the_other_readable_file(desk: Home, place: str):
    desk.denies(place)
    add_trailing_comma(desk.file)
    other = {"user": "local", "local": "user"}[place]
    done = run("permissions", "add", "deny", "mcp__other", "-s", other)
    assert done.returncode == exit_codes.OK
    assert str(desk.file) in done.stderr
    assert run("permissions", "add", "deny", "mcp__other", "-s", place).returncode == exit_codes.CONFIG


SILENT = {"completion", "config schema", "logs"}


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("command", [command for command in COMMANDS if command not in SILENT])
def test_t100_every_command_reports_it_and_starts_nothing(desk: Home, command: str):
    desk.denies("user")
    add_trailing_comma(desk.file)
    for words in invocations(command, ["mine"]):
        if FLAG in words:
            continue
        done = run(*words)
        assert "Traceback" not in done.stderr, words
        assert desk.canary.started == set(), words
        if done.returncode != exit_codes.USAGE and "--help" not in words:
            assert str(desk.file) in done.stderr + done.stdout, words


# --- still allowed ---


@pytest.mark.parametrize("file", ["work/.mcp.json", ".mcp.json", ".dragoman/plugins/bad/.mcp.json"])
@pytest.mark.parametrize("what", ["cut off", "a folder", "a pipe"])
def test_t100_a_file_that_cannot_contain_deny_rules_affects_only_itself(desk: Home, file: str, what: str):
    path = write(desk.home / file, servers(gone={"command": "x"}))
    SPOILED[what](path)
    found = seen()
    assert {name: server.eligibility for name, server in found.servers.items()} == {"mine": "ready"}
    (problem,) = found.problems
    assert str(path) in problem


def test_t100_a_broken_local_file_of_another_folder_has_no_effect_here(desk: Home):
    other = write(desk.home / "other" / ".dragoman" / "settings.local.json", {})
    add_trailing_comma(other)
    assert seen().servers["mine"].eligibility == "ready"
    assert seen(other.parents[1]).servers["mine"].eligibility == "refused"


# --- the flag ---


@pytest.mark.parametrize(("place", "what"), CASES)
def test_t100_the_flag_ignores_the_file_and_reports_that_it_is_not_applied(desk: Home, place: str, what: str):
    desk.denies(place)
    spoil(desk, what)
    found = load(Sources.here(ignore_broken_settings=True))
    assert found.servers["mine"].eligibility == "ready"
    assert any(
        str(desk.file) in problem and "is not applied in this run" in problem for problem in found.problems
    )


@pytest.mark.parametrize("place", PLACES)
def test_t100_the_flag_applies_to_one_command(desk: Home, place: str):
    desk.denies(place)
    add_trailing_comma(desk.file)
    words = ["call", "mcp__mine__echo", "message=x"]
    done = run(*words, FLAG)
    assert (done.returncode, done.stdout) == (0, "x\n")
    assert str(desk.file) in done.stderr
    assert run("mcp", "list", FLAG).returncode == 0
    assert run(*words).returncode == exit_codes.CONFIG


@pytest.mark.parametrize("place", PLACES)
async def test_t100_a_host_can_be_configured_to_ignore_it(desk: Home, place: str):
    desk.denies(place)
    add_trailing_comma(desk.file)
    options: Any = {"ignore_broken_settings": True, "permission_mode": "bypassPermissions"}
    async with Host.configured(**options) as host:
        await host.ready(timeout=30)
        assert (await host.call("mcp__mine__echo", {"message": "x"})).text == "x"
        async with host.for_agent([{"inline": stdio_server("well_behaved.py")}]) as agent:
            await agent.ready(timeout=30)
            assert [tool.name for tool in agent.tools()] == ["mcp__inline__echo"]


def test_t100_the_flag_does_not_apply_to_the_administrators_file(desk: Home):
    desk.denies("managed")
    add_trailing_comma(desk.file)
    found = load(Sources.here(ignore_broken_settings=True))
    assert found.servers["mine"].eligibility == "refused"
    done = run("call", "mcp__mine__echo", "message=x", FLAG)
    assert done.returncode == exit_codes.CONFIG
    assert FLAG not in done.stderr
    assert desk.canary.started == set()


async def test_t100_a_broken_administrators_file_refuses_built_in_tools_too(desk: Home):
    desk.denies("managed")
    add_trailing_comma(desk.file)

    async def act(arguments: Any) -> str:
        return "done"

    own = BuiltinTool("write_file", act, description="writes", input_schema={"type": "object"})
    async with Host({}, permission_mode="bypassPermissions", ignore_broken_settings=True) as host:
        outcome = await host.call("write_file", {}, builtin_tools={"write_file": own})
        assert outcome.is_error
        assert str(desk.file) in outcome.text


# --- while a host runs ---


async def called(host: Host) -> CallOutcome:
    return await host.call("mcp__mine__echo", {"message": "x"})


RUNNING = [*((place, what) for place, what in CASES), *(("managed", what) for what in SPOILED)]


@pytest.mark.parametrize(("place", "what"), RUNNING)
async def test_t100_a_running_host_keeps_the_last_readable_version(desk: Home, place: str, what: str):
    desk.denies(place)
    before = desk.file.read_text()
    async with Host.configured(permission_mode="bypassPermissions") as host:
        await host.ready(timeout=30)
        assert (await called(host)).is_error
        pid = host.servers["mine"].pid
        spoil(desk, what)

        plan = await host.reload()

        assert plan.is_empty
        assert host.servers["mine"].pid == pid
        outcome = await called(host)
        assert "deny rule mcp__mine__echo" in outcome.text
        assert any(
            str(desk.file) in problem and "the version read before stays in effect" in problem
            for problem in host.configuration.problems
        )
        async with host.for_agent([{"inline": stdio_server("well_behaved.py")}]) as agent:
            await agent.ready(timeout=30)
            assert [tool.name for tool in agent.tools()] == ["mcp__inline__echo"]
        if desk.file.is_dir():
            desk.file.rmdir()
        else:
            desk.file.unlink()
        desk.file.write_text(before.replace("mcp__mine__echo", "mcp__mine__other"))
        await host.reload()
        assert (await called(host)).text == "x"
        assert host.configuration.problems == ()


async def test_t100_a_file_broken_at_the_start_refuses_everything_until_it_can_be_read(desk: Home):
    desk.denies("user")
    add_trailing_comma(desk.file)
    async with Host.configured(permission_mode="bypassPermissions") as host:
        await host.reload()
        desk.file.write_text("{")
        await host.reload()
        await host.ready(timeout=30)
        assert host.servers["mine"].status == "disabled"
        desk.file.write_text("{}")
        await host.reload()
        await host.ready(timeout=30)
        assert (await called(host)).text == "x"


async def test_t100_a_file_that_is_broken_when_it_first_appears_changes_nothing(desk: Home):
    async with Host.configured(permission_mode="bypassPermissions") as host:
        await host.ready(timeout=30)
        write(desk.home / PLACES["user"], {}).write_text("{,")
        assert (await host.reload()).is_empty
        assert (await called(host)).text == "x"


async def test_t100_a_deleted_file_no_longer_applies(desk: Home):
    desk.denies("user")
    async with Host.configured(permission_mode="bypassPermissions") as host:
        await host.ready(timeout=30)
        assert (await called(host)).is_error
        desk.file.unlink()
        await host.reload()
        assert (await called(host)).text == "x"


async def test_t100_a_rule_added_meanwhile_does_not_remove_the_others(desk: Home):
    """Adding a rule reads all files again."""
    desk.denies("user")
    async with Host.configured(permission_mode="bypassPermissions") as host:
        await host.ready(timeout=30)
        add_trailing_comma(desk.file)
        async with asyncio.timeout(30):
            await host._access._keep("local", "mcp__mine__echo")  # pyright: ignore[reportPrivateUsage]
        assert "deny rule mcp__mine__echo" in (await called(host)).text
