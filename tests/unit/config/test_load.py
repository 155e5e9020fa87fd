"""One look at every source: what is in effect, where it comes from, and what is said about the rest."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.commands.config import explain
from dragoman.config import approval
from dragoman.config.connectors import _keep as keep_list  # pyright: ignore[reportPrivateUsage]
from dragoman.config.load import Configuration, load, path_of
from dragoman.config.merge import EXCLUSIVE
from dragoman.config.model import ServerConfig
from dragoman.config.schema import ConnectorsConfig
from dragoman.config.scopes import SCOPES, Sources
from dragoman.errors import ConfigError, ConfigFileError
from dragoman.settings import TABLE
from dragoman.transport_types import IN_PROCESS
from tests.integration.desk import Desk

URL = "https://org.example.com/list"


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


def tool(*args: str, **more: Any) -> dict[str, Any]:
    return {"command": "tool", "args": list(args), **more}


def look(cwd: Path | None = None, **more: Any) -> Configuration:
    return load(Sources.here(cwd, **more))


def eligibilities(configuration: Configuration) -> dict[str, str]:
    return {name: server.eligibility for name, server in configuration.servers.items()}


def approve(desk: Desk, path: Path) -> None:
    for name, entry in json.loads(path.read_text())["mcpServers"].items():
        approval.remember(desk.approvals_file, path, name, entry, "approved")


def fill(desk: Desk, scope: str, name: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Gives one scope a server; what has to be handed to `Sources` is returned."""
    match scope:
        case "connectors":
            settings = json.loads(desk.user_file.read_text()) if desk.user_file.exists() else {}
            desk.write(desk.user_file, **{**settings, "connectors": {"url": URL}})
            cache = Sources.here().connectors_cache
            keep_list(cache, ConnectorsConfig(URL), {name: entry}, None, time.time())
        case "plugin":
            desk.write(desk.plugin_file("tools"), {name: entry})
        case "user":
            settings = json.loads(desk.user_file.read_text()) if desk.user_file.exists() else {}
            desk.write(desk.user_file, **{**settings, "mcpServers": {name: entry}})
        case "project" | "local":
            path = desk.project_file if scope == "project" else desk.local_file
            desk.write(path, {name: entry})
            approve(desk, path)
        case "dynamic":
            return {"given": {name: entry}}
        case _:
            desk.managed({name: entry})
    return {}


def source_of(desk: Desk, scope: str) -> str:
    sources = {
        "connectors": "connectors of org.example.com",
        "plugin": str(desk.plugin_file("tools")),
        "user": str(desk.user_file),
        "project": str(desk.project_file),
        "local": str(desk.local_file),
        "dynamic": "code",
        "enterprise": str(desk.managed_file),
    }
    return sources[scope]


# --- scopes and their files ---


@pytest.mark.requirement("CFG-1", "CFG-2")
@pytest.mark.parametrize("scope", SCOPES)
def test_a_server_of_each_scope_is_ready_and_has_its_source(desk: Desk, scope: str):
    given = fill(desk, scope, "box", {"url": "https://box.example.com/"})
    configuration = look(**given)
    assert eligibilities(configuration) == {"box": "ready"}
    server = configuration.servers["box"]
    assert (server.scope, server.source) == (scope, source_of(desk, scope))
    assert configuration.problems == ()
    file = None if scope in ("connectors", "dynamic") else Path(source_of(desk, scope))
    assert path_of(configuration, server) == file
    assert (explain(configuration, server).line is not None) == (file is not None)


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize("count", range(2, len(SCOPES)))
def test_the_higher_scope_has_the_name_and_displaced_entries_are_reported(desk: Desk, count: int):
    given: dict[str, Any] = {}
    for scope in SCOPES[:count]:
        given |= fill(desk, scope, "box", {"url": f"https://{scope}.example.com/"})
    configuration = look(**given)
    server = configuration.servers["box"]
    assert server.scope == SCOPES[count - 1]
    assert [each.scope for each in server.replaced] == list(reversed(SCOPES[: count - 1]))
    assert {each.source for each in server.replaced} == {
        source_of(desk, scope) for scope in SCOPES[: count - 1]
    }


@pytest.mark.requirement("CFG-3")
def test_with_servers_of_the_administrator_other_scopes_are_ignored_and_reported(desk: Desk):
    given: dict[str, Any] = {}
    for scope in SCOPES:
        given |= fill(desk, scope, f"from-{scope}", {"url": f"https://{scope}.example.com/"})
    configuration = look(**given)
    assert eligibilities(configuration) == {"from-enterprise": "ready"}
    assert {each.candidate.scope for each in configuration.dropped} == set(SCOPES) - {"enterprise"}
    assert {each.text for each in configuration.dropped} == {EXCLUSIVE}
    assert configuration.is_exclusive
    assert configuration.needing_approval == ()


@pytest.mark.requirement("CFG-3")
def test_an_administrators_file_without_servers_keeps_other_scopes(desk: Desk):
    desk.managed(deniedMcpServers=[{"serverName": "evil"}])
    desk.user({"mine": tool(), "evil": tool("x")})
    assert eligibilities(look()) == {"mine": "ready", "evil": "refused"}
    desk.managed({})
    assert eligibilities(look()) == {}


@pytest.mark.requirement("CFG-2")
def test_project_files_of_all_parent_folders_count_and_the_nearest_takes_precedence(desk: Desk):
    inner = desk.project / "a" / "b"
    inner.mkdir(parents=True)
    folders = [desk.home, desk.project, inner]
    for number, folder in enumerate(folders):
        file = folder / ".mcp.json"
        desk.write(file, {"shared": tool(str(number)), f"own-{number}": tool("own", str(number))})
        approve(desk, file)
    configuration = look(inner)
    assert set(configuration.servers) == {"shared", "own-0", "own-1", "own-2"}
    assert configuration.servers["shared"].source == str(inner / ".mcp.json")
    assert look(desk.project / "a").servers["shared"].source == str(desk.project / ".mcp.json")


@pytest.mark.requirement("CFG-2")
def test_no_file_above_the_home_is_read(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(desk.project))
    desk.write(desk.home / ".mcp.json", {"beyond": tool()})
    (desk.project / "inner").mkdir()
    assert look(desk.project / "inner").servers == {}


@pytest.mark.requirement("CFG-2")
def test_outside_the_home_parent_folders_are_searched_too(desk: Desk, tmp_path: Path):
    inner = tmp_path / "srv" / "app"
    inner.mkdir(parents=True)
    desk.write(tmp_path / "srv" / ".mcp.json", {"box": tool()})
    approve(desk, tmp_path / "srv" / ".mcp.json")
    assert look(inner).servers["box"].eligibility == "ready"


@pytest.mark.requirement("CFG-2")
def test_the_variables_move_the_persons_and_the_administrators_files(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    desk.user({"old": tool()})
    desk.managed(deniedMcpServers=[{"serverName": "*"}])
    desk.write(tmp_path / "c" / "settings.json", {"new": tool("1")})
    desk.write(tmp_path / "c" / "plugins" / "p" / ".mcp.json", {"plug": tool("2")})
    desk.write(tmp_path / "m" / "managed-mcp.json", deniedMcpServers=[{"serverName": "plug"}])
    monkeypatch.setenv("DRAGOMAN_CONFIG_DIR", str(tmp_path / "c"))
    monkeypatch.setenv("DRAGOMAN_MANAGED_DIR", str(tmp_path / "m"))
    assert eligibilities(look()) == {"new": "ready", "plug": "refused"}


def test_with_strict_given_servers_the_persons_files_are_ignored_but_not_policy(desk: Desk):
    desk.user({"mine": tool()}, env={"MCP_TIMEOUT": 5}, disabledMcpServers=["now"])
    desk.managed(deniedMcpServers=[{"serverName": "evil"}])
    configuration = look(given={"now": tool("1"), "evil": tool("2")}, only_given=True)
    assert eligibilities(configuration) == {"now": "ready", "evil": "refused"}
    assert configuration.settings["MCP_TIMEOUT"] == 30_000


@pytest.mark.requirement("CFG-6")
def test_the_same_server_of_two_scopes_is_used_once_and_reported(desk: Desk):
    desk.user({"mine": {"url": "https://API.example.com:443/mcp", "headers": {"A": "b"}}})
    now = {"type": "sse", "url": "https://api.example.com/mcp", "headers": {"a": "b"}}
    configuration = look(given={"now": now})
    assert list(configuration.servers) == ["now"]
    (dropped,) = configuration.dropped
    assert (dropped.candidate.name, dropped.why) == ("mine", "duplicate")
    assert dropped.kept == configuration.servers["now"].candidate


@pytest.mark.requirement("CFG-6")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"command": "x", "env": {"TOKEN": "a"}}, {"command": "x", "env": {"TOKEN": "b"}}),
        (
            {"url": "https://x.example/", "headers": {"Authorization": "a"}},
            {"url": "https://x.example/", "headers": {"Authorization": "b"}},
        ),
        ({"command": "x", "env": {"TOKEN": "${MINE:-a}"}}, {"command": "x", "env": {"TOKEN": "b"}}),
    ],
    ids=["env", "headers", "variable"],
)
def test_two_accounts_of_one_server_are_two_servers(desk: Desk, one: dict[str, Any], other: dict[str, Any]):
    desk.user({"mine": one})
    configuration = look(given={"work": other})
    assert list(configuration.servers) == ["mine", "work"]
    assert configuration.dropped == ()


# --- problems ---


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize("scope", ["user", "project", "local", "plugin"])
def test_a_broken_file_is_reported_with_its_position_and_the_others_are_loaded(desk: Desk, scope: str):
    for each in ("plugin", "user", "project", "local"):
        fill(desk, each, f"from-{each}", {"url": f"https://{each}.example.com/"})
    path = Path(source_of(desk, scope))
    path.write_text('{"mcpServers": {\n  "x": {"command": "tool",}\n}}')
    configuration = look()
    left = {f"from-{each}" for each in ("plugin", "user", "project", "local")} - {f"from-{scope}"}
    can_deny = scope in ("user", "local")
    assert eligibilities(configuration) == dict.fromkeys(left, "refused" if can_deny else "ready")
    (problem,) = configuration.problems
    assert f"{path}, line 2, column " in problem
    assert ("no call is made" in problem) == can_deny


@pytest.mark.requirement("CFG-4", "CFG-10")
@pytest.mark.parametrize(
    "entry",
    [
        {"command": "${NOT_SET_ANYWHERE}"},
        {"command": 7},
        {},
        {"url": "ftp://x"},
        "npx",
        None,
        [],
        {"type": "x"},
    ],
    ids=json.dumps,
)
def test_an_invalid_entry_is_broken_alone_and_its_error_has_a_position(desk: Desk, entry: Any):
    desk.user({"good": tool(), "bad": entry})
    configuration = look()
    assert eligibilities(configuration) == {"good": "ready", "bad": "broken"}
    error = configuration.servers["bad"].error
    assert isinstance(error, ConfigFileError)
    assert (error.file, error.line) == (
        str(desk.user_file),
        explain(configuration, configuration.servers["bad"]).line,
    )
    assert error.column is not None


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize("text", ["", "{", "[]", '{"mcpServers": []}', '{"mcpServers": {"a": 1}', "\udcff"])
def test_with_a_broken_administrators_file_nothing_is_ready(desk: Desk, text: str):
    given: dict[str, Any] = {}
    for scope in SCOPES[:-1]:
        given |= fill(desk, scope, f"from-{scope}", {"url": f"https://{scope}.example.com/"})
    given["given"] = {**given["given"], "object": object()}
    desk.managed_file.parent.mkdir(exist_ok=True)
    desk.managed_file.write_bytes(text.encode("utf-8", "surrogateescape"))
    configuration = look(**given)
    assert "ready" not in eligibilities(configuration).values()
    assert str(desk.managed_file) in configuration.problems[0]
    assert configuration.admit("more", tool()).eligibility == "refused"


def test_no_file_makes_loading_raise(desk: Desk):
    for path in (desk.user_file, desk.project_file, desk.local_file, desk.managed_file, desk.approvals_file):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir()
    (desk.home / ".dragoman" / "plugins").write_text("not a folder")
    configuration = look()
    assert configuration.servers == {}
    assert len(configuration.problems) == 5


# --- settings ---

PLACES = ["managed", "code", "environment", "user", "default"]


def settle(desk: Desk, monkeypatch: pytest.MonkeyPatch, name: str, values: dict[str, int]) -> Configuration:
    for place in ("managed", "user"):
        if place in values:
            getattr(desk, place)(None, env={name: values[place]})
    if "environment" in values:
        monkeypatch.setenv(name, str(values["environment"]))
    return look(overrides={name: values["code"]} if "code" in values else {})


@pytest.mark.requirement("CFG-9")
@pytest.mark.parametrize("first", range(len(PLACES)))
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_the_highest_scope_of_a_setting_applies(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, row: Any, first: int
):
    said = PLACES[first:]
    values = {place: row.minimum + 100 + number for number, place in enumerate(PLACES)}
    values["default"] = row.default
    settings = settle(desk, monkeypatch, row.name, {place: values[place] for place in said}).settings
    assert settings[row.name] == values[said[0]]
    assert [each.value for each in settings.values_of(row.name)] == [values[place] for place in said]
    files = {"managed": str(desk.managed_file), "user": str(desk.user_file)}
    assert [each.source for each in settings.values_of(row.name)] == [
        files.get(place, place) for place in said
    ]


@pytest.mark.requirement("CFG-9")
@pytest.mark.parametrize("scope", ["user", "managed"])
@pytest.mark.parametrize("value", ["soon", 0, -1, "", "1.5"], ids=repr)
def test_an_invalid_setting_is_ignored_and_reported(desk: Desk, scope: str, value: Any):
    getattr(desk, scope)(None, env={"MCP_TIMEOUT": value, "MCP_TOOL_TIMEOUT": "7"})
    configuration = look()
    assert configuration.settings["MCP_TIMEOUT"] == 30_000
    assert configuration.settings["MCP_TOOL_TIMEOUT"] == 7
    assert any("MCP_TIMEOUT" in problem for problem in configuration.problems)


def test_plugins_and_shared_project_files_cannot_change_settings(desk: Desk):
    desk.in_project({}, env={"MCP_TIMEOUT": 5})
    desk.write(desk.plugin_file("p"), {}, env={"MCP_TIMEOUT": 6})
    assert look().settings["MCP_TIMEOUT"] == 30_000


# --- variables ---


def argument(configuration: Configuration, name: str = "box") -> str | None:
    config = configuration.servers[name].config
    return config.args[0] if config else None


def test_variables_of_the_persons_file_apply_to_entries_and_the_environment_takes_precedence(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    desk.user({"box": tool("${PLACE}")}, env={"PLACE": "file", "MCP_TIMEOUT": 5})
    assert argument(look()) == "file"
    monkeypatch.setenv("PLACE", "environment")
    assert argument(look()) == "environment"


@pytest.mark.requirement("CFG-9")
def test_a_project_file_sets_no_variables(desk: Desk):
    desk.user({"box": tool("${PLACE:-none}")})
    desk.local(None, env={"PLACE": "local", "MCP_TIMEOUT": 5})
    configuration = look()
    assert argument(configuration) == "none"
    assert configuration.settings["MCP_TIMEOUT"] == 30_000
    [problem] = configuration.problems
    assert str(desk.local_file) in problem
    assert "env has no effect here" in problem


@pytest.mark.requirement("CFG-9")
def test_the_administrators_settings_count_at_once_and_other_variables_once_confirmed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PLACE", "environment")
    desk.managed(env={"PLACE": "managed", "OTHER": 7, "MCP_TIMEOUT": 5})
    desk.user({"box": tool("${PLACE}"), "needs": tool("${OTHER}", "x")})
    configuration = look()
    assert configuration.settings["MCP_TIMEOUT"] == 5
    assert argument(configuration) == "environment"
    assert configuration.servers["needs"].eligibility == "broken"
    assert configuration.unconfirmed_variables == {"PLACE": "managed", "OTHER": "7"}

    approval.confirm_variables(desk.approvals_file, configuration.unconfirmed_variables)
    configuration = look()
    assert (argument(configuration), argument(configuration, "needs")) == ("managed", "7")
    assert configuration.unconfirmed_variables == {}
    assert "MCP_TIMEOUT" not in configuration.unconfirmed_variables


@pytest.mark.requirement("CFG-9")
@pytest.mark.parametrize(
    ("later", "asks"),
    [
        ({"PLACE": "managed", "MCP_TIMEOUT": 9}, False),
        ({"PLACE": "elsewhere"}, True),
        ({"PLACE": "managed", "MORE": "x"}, True),
        ({"place": "managed"}, True),
        ({}, False),
    ],
    ids=str,
)
def test_a_confirmation_is_for_exactly_these_variables(desk: Desk, later: dict[str, Any], asks: bool):
    desk.managed(env={"PLACE": "managed", "MCP_TIMEOUT": 5})
    approval.confirm_variables(desk.approvals_file, look().unconfirmed_variables)
    desk.managed(env=later)
    assert bool(look().unconfirmed_variables) is asks


def test_loading_does_not_change_the_environment(desk: Desk):
    desk.user(None, env={"PLACE": "file"})
    desk.managed(env={"PLACE": "managed"})
    approval.confirm_variables(desk.approvals_file, {"PLACE": "managed"})
    before = dict(os.environ)
    look()
    assert dict(os.environ) == before


# --- what else the files say ---


@pytest.mark.parametrize(
    ("fields", "eligibility"),
    [
        ({"disabled": True}, "disabled"),
        ({"enabled": False}, "disabled"),
        ({"disabled": False, "enabled": True}, "ready"),
        ({"disabled": "true"}, "broken"),
    ],
    ids=str,
)
def test_an_entry_with_disabled_true_is_disabled(desk: Desk, fields: dict[str, Any], eligibility: str):
    server = look(given={"now": {**tool(), **fields}}).servers["now"]

    assert server.eligibility == eligibility
    assert server.warnings == ()
    if eligibility == "disabled":
        assert server.reason == f"disabled by its entry in {server.source}"


@pytest.mark.parametrize("scope", ["user", "local", "managed"])
def test_a_server_disabled_by_name_is_reported_with_the_file(desk: Desk, scope: str):
    getattr(desk, scope)(None, disabledMcpServers=["now"])
    server = look(given={"now": tool()}).servers["now"]
    assert server.eligibility == "disabled"
    assert str(
        {"user": desk.user_file, "local": desk.local_file, "managed": desk.managed_file}[scope]
    ) in str(server.reason)


@pytest.mark.requirement("PRM-1")
def test_permission_rules_are_collected_from_the_lowest_scope_to_the_highest(desk: Desk):
    desk.managed(permissions={"deny": ["mcp__evil"]})
    desk.local(None, permissions={"ask": ["mcp__box"]})
    desk.user(None, permissions={"allow": ["mcp__box"], "defaultMode": "plan"})
    desk.in_project({}, permissions={"allow": ["mcp__*"]})
    configuration = look()
    assert [(part.scope, part.source) for part in configuration.permissions] == [
        ("user", str(desk.user_file)),
        ("local", str(desk.local_file)),
        ("enterprise", str(desk.managed_file)),
    ]
    assert configuration.permissions[0].rules.allow == ("mcp__box",)
    assert configuration.permissions[2].rules.deny == ("mcp__evil",)


def test_only_the_person_or_the_administrator_names_a_connector_list(desk: Desk):
    named = {"url": "https://evil.example.com"}
    desk.in_project({}, connectors=named)
    desk.local(None, connectors=named)
    desk.write(desk.plugin_file("p"), connectors=named)
    assert look().connectors is None
    desk.user(None, connectors={"url": URL})
    assert look().connectors == ConnectorsConfig(URL)
    desk.managed(connectors={"url": "https://managed.example.com"})
    assert look().connectors == ConnectorsConfig("https://managed.example.com")


@pytest.mark.requirement("CFG-1")
def test_a_connector_never_displaces_another_entry(desk: Desk):
    fill(desk, "connectors", "box", {"url": "https://connector.example.com/"})
    desk.write(desk.plugin_file("p"), {"box": {"url": "https://plugin.example.com/"}})
    assert look().servers["box"].scope == "plugin"


# --- servers from code, and the questions a host asks ---


def test_an_object_given_in_code_is_a_server_in_this_process():
    server = look(given={"now": object()}).servers["now"]
    assert (server.eligibility, server.config) == ("ready", ServerConfig(type=IN_PROCESS))


def test_a_config_given_in_code_is_used_unchanged():
    config = ServerConfig(command="${NOT_EXPANDED}")
    assert look(given={"now": config}).servers["now"].config is config


@pytest.mark.parametrize("given", [None, "npx", 7, 1.5, []], ids=repr)
def test_an_invalid_server_is_broken_also_if_given_in_code(given: Any):
    server = look(given={"now": given}).servers["now"]
    assert server.eligibility == "broken"
    assert isinstance(server.error, ConfigError)


def test_policy_applies_to_a_server_that_is_in_no_file(desk: Desk):
    desk.managed(deniedMcpServers=[{"serverName": "evil"}])
    desk.user(None, disabledMcpServers=["off"])
    configuration = look()
    assert configuration.admit("good", tool()).eligibility == "ready"
    assert configuration.admit("evil", tool()).eligibility == "refused"
    assert configuration.admit("off", tool()).eligibility == "disabled"
    assert configuration.admit("bad", {}).eligibility == "broken"
    desk.managed({"official": tool()})
    assert look().admit("good", tool()).eligibility == "refused"
    assert look().admit("good", tool(), scope="enterprise").eligibility == "ready"


@pytest.mark.requirement("CFG-8")
def test_a_pending_entry_is_reported_also_if_displaced_by_another_server(desk: Desk):
    desk.user({"box": tool("mine")})
    desk.in_project({"box": tool("theirs"), "new": tool("new")})
    configuration = look()
    assert eligibilities(configuration) == {"box": "ready", "new": "pending"}
    assert {(server.name, server.scope) for server in configuration.needing_approval} == {
        ("box", "project"),
        ("new", "project"),
    }


@pytest.mark.requirement("CFG-8")
def test_a_pending_entry_is_reported_also_if_displaced_by_a_declined_one(desk: Desk):
    outer = desk.home / ".mcp.json"
    desk.write(outer, {"box": tool("outer")})
    desk.in_project({"box": tool("inner")})
    approval.remember(desk.approvals_file, desk.project_file, "box", tool("inner"), "rejected")
    assert [server.source for server in look().needing_approval] == [str(outer)]


def test_a_selection_of_servers_can_be_loaded(desk: Desk):
    desk.user({"a": tool("1"), "b": tool("2")})
    assert list(look().narrowed(["b", "nobody"]).servers) == ["b"]


@pytest.mark.requirement("CFG-8")
def test_of_two_pending_entries_of_one_name_the_effective_one_comes_first(desk: Desk):
    desk.in_project({"shared": tool("project")})
    desk.local({"shared": tool("local")})
    configuration = look()
    assert [server.scope for server in configuration.needing_approval] == ["local", "project"]
    assert configuration.servers["shared"].scope == "local"
