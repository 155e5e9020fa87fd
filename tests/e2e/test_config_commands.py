"""`dragoman config`: where every value comes from, what has changed, and what a good file looks like."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from dragoman.settings import TABLE
from tests.e2e.command import config
from tests.e2e.forked import run
from tests.integration.desk import WELL_BEHAVED, Desk, other_well_behaved

pytestmark = pytest.mark.slow

SECRET = "hunter2-very-secret"


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


def document(*words: str) -> Any:
    done = run("config", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def line_in(path: Path, text: str) -> int:
    """The number of the first line that holds the text."""
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


# --- explain ---


@pytest.mark.requirement("CFG-1", "CLI-2")
def test_a_server_is_explained_with_file_line_scope_and_displaced_entries(desk: Desk) -> None:
    desk.write(desk.plugin_file("p"), {"it": {"command": "lowest"}})
    desk.user({"first": {"command": "x"}, "it": {"command": "beaten", "env": {"A": SECRET}}})
    assert run("mcp", "add", "it", "winner", "--token", SECRET).returncode == 0
    done = run("config", "explain", "it")
    assert done.returncode == 0
    line = line_in(desk.local_file, '"it"')
    assert f"{desk.local_file}, line {line}" in done.stdout
    assert "winner" in done.stdout
    assert SECRET not in done.stdout
    assert "first" not in done.stdout
    explained = document("explain", "it")
    (server,) = explained["servers"]
    assert server["scope"] == "local"
    assert server["line"] == line
    assert server["approval"] == {"state": "approved", "reason": "you approved it"}
    assert server["replaced"] == [
        {"scope": "user", "source": str(desk.user_file)},
        {"scope": "plugin", "source": str(desk.plugin_file("p"))},
    ]
    assert {each["why"] for each in explained["dropped"]} == {"replaced"}


@pytest.mark.requirement("CLI-2")
def test_the_line_is_that_of_the_effective_entry(desk: Desk) -> None:
    desk.project_file.write_text(
        '{"other": {"it": 1},\n\n"mcpServers":\n{\n"a": {"command": "it"},\n"it":\n{"command":"p"}}}'
    )
    (server,) = document("explain", "it")["servers"]
    assert server["line"] in (6, 7)
    assert server["eligibility"] == "pending"
    assert server["approval"]["state"] == "pending"


@pytest.mark.requirement("CFG-7", "CLI-2")
def test_policy_is_explained_by_the_rule_and_its_file(desk: Desk) -> None:
    desk.user(
        {
            "good": {"command": "p", "args": ["x"]},
            "bad": {"url": "https://evil.example/"},
            "none": {"command": "q"},
        }
    )
    desk.managed(
        allowedMcpServers=[{"serverCommand": ["p", "*"]}, {"serverName": "bad"}],
        deniedMcpServers=[{"serverUrl": "https://evil.example/*"}],
    )
    explained = document("explain")
    verdicts = {server["name"]: server["policy"] for server in explained["servers"]}
    assert verdicts["good"]["allowed"]
    assert '["p", "*"]' in verdicts["good"]["reason"]
    assert not verdicts["bad"]["allowed"]
    assert 'serverUrl "https://evil.example/*"' in verdicts["bad"]["reason"]
    assert str(desk.managed_file) in verdicts["bad"]["reason"]
    assert not verdicts["none"]["allowed"]
    assert len(explained["policy"]["allowed"]) == 2
    assert len(explained["policy"]["denied"]) == 1
    shown = run("config", "explain").stdout
    assert "deny   serverUrl" in shown
    assert run("config", "explain", "bad").stdout.count(str(desk.managed_file)) == 1


@pytest.mark.requirement("CFG-9", "CLI-2")
def test_settings_are_explained_with_the_values_they_override(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_TIMEOUT", "3")
    desk.user(env={"MCP_TIMEOUT": 1, "MCP_TOOL_TIMEOUT": "10", "MAX_MCP_OUTPUT_TOKENS": 7})
    desk.managed(env={"MCP_TIMEOUT": 4})
    settings = document("explain")["settings"]
    assert set(settings) == {row.name for row in TABLE}

    def chain(name: str) -> list[tuple[int, str]]:
        told = settings[name]
        return [(each["value"], each["source"]) for each in (told, *told["replaced"])]

    assert chain("MCP_TIMEOUT") == [
        (4, str(desk.managed_file)),
        (3, "environment"),
        (1, str(desk.user_file)),
        (30_000, "default"),
    ]
    assert chain("MCP_TOOL_TIMEOUT") == [(10, str(desk.user_file)), (100_000_000, "default")]
    assert chain("MAX_MCP_OUTPUT_TOKENS") == [(7, str(desk.user_file)), (25_000, "default")]
    assert chain("MCP_REQUEST_TIMEOUT_MS") == [(60_000, "default")]
    shown = next(line for line in run("config", "explain").stdout.splitlines() if " MCP_TIMEOUT " in line)
    assert f"= 4 ms  {desk.managed_file}" in shown
    assert "overrides 3 of environment" in shown


@pytest.mark.requirement("CFG-9")
def test_an_invalid_setting_is_reported_and_ignored(desk: Desk) -> None:
    desk.user(env={"MCP_TIMEOUT": "soon"})
    explained = document("explain")
    assert explained["settings"]["MCP_TIMEOUT"]["value"] == 30_000
    assert any(
        "MCP_TIMEOUT" in problem and str(desk.user_file) in problem for problem in explained["problems"]
    )


@pytest.mark.requirement("CLI-2")
def test_the_json_of_the_explanation_has_stable_keys(desk: Desk) -> None:
    desk.user({"it": WELL_BEHAVED}, permissions={"allow": ["mcp__it"]}, frob=1)
    desk.in_project({"it": {"command": "x"}})
    explained = document("explain", "--mcp-config", config(given=other_well_behaved()))
    assert list(explained) == [
        "servers", "dropped", "settings", "policy", "permissions", "files", "problems",
    ]  # fmt: skip
    assert {server["name"]: server["scope"] for server in explained["servers"]} == {
        "it": "user",
        "given": "dynamic",
    }
    assert set(explained["servers"][0]) == {
        "name", "scope", "source", "transport", "eligibility", "reason", "target", "entry", "warnings",
        "line", "policy", "approval", "replaced",
    }  # fmt: skip
    assert explained["policy"] == {"allowed": None, "denied": [], "broken": None}
    assert explained["permissions"][0]["rules"]["allow"] == ["mcp__it"]
    assert explained["permissions"][0]["source"] == str(desk.user_file)
    assert {each["source"] for each in explained["files"]} >= {str(desk.user_file), str(desk.project_file)}
    assert any(
        f"{desk.user_file}, line" in problem and "frob" in problem for problem in explained["problems"]
    )
    assert not any(each["name"] == "given" for each in document("explain")["servers"])


@pytest.mark.requirement("CLI-2")
def test_a_displaced_server_is_explained_by_the_effective_one(desk: Desk) -> None:
    desk.user({"mine": WELL_BEHAVED})
    desk.managed({"company": other_well_behaved()})
    done = run("config", "explain", "mine")
    assert done.returncode == 3
    assert str(desk.user_file) in done.stderr
    assert "administrator" in done.stderr
    assert run("config", "explain", "nothing").returncode == 5


# --- plan ---


def changes() -> dict[str, list[str]]:
    plan = document("plan")
    return {kind: plan[kind] for kind in ("added", "changed", "removed", "unchanged") if plan[kind]}


def test_a_plan_lists_changes_since_the_last_host_in_this_folder(desk: Desk) -> None:
    desk.user(
        {"stays": WELL_BEHAVED, "changes": other_well_behaved(), "goes": {"command": "no-such-program"}}
    )
    assert changes() == {"added": ["stays", "changes", "goes"]}
    run("tools")
    assert changes() == {"unchanged": ["stays", "changes", "goes"]}
    assert "Nothing has changed." in run("config", "plan").stdout
    trace = desk.home / "started"
    desk.user(
        {
            "stays": dict(reversed(WELL_BEHAVED.items())),
            "changes": {**other_well_behaved(), "env": {"A": SECRET}},
            "comes": {"command": "touch", "args": [str(trace)]},
        }
    )
    assert changes() == {
        "added": ["comes"],
        "changed": ["changes"],
        "removed": ["goes"],
        "unchanged": ["stays"],
    }
    shown = run("config", "plan").stdout
    for line in ("+ comes", "~ changes", "- goes", "= stays"):
        assert line in shown
    assert SECRET not in shown
    assert not trace.exists()


def test_a_plan_states_why_a_server_cannot_start(desk: Desk) -> None:
    desk.user({"off": WELL_BEHAVED, "unset": {"command": "${NOT_SET}"}}, disabledMcpServers=["off"])
    desk.in_project({"waits": {"command": "x"}})
    shown = {line.split()[1]: line for line in run("config", "plan").stdout.splitlines()}
    assert "disabled" in shown["off"]
    assert "NOT_SET" in shown["unset"]
    assert "not approved" in shown["waits"]


# --- schema ---


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    done = run("config", "schema")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def is_valid(schemas: dict[str, Any], file: str, content: Any) -> bool:
    return jsonschema_rs.validator_for(schemas[file]).is_valid(content)


def problems_and_eligibilities() -> tuple[list[str], dict[str, str]]:
    listed = json.loads(run("mcp", "list", "--no-health", "--json").stdout)
    return listed["problems"], {server["name"]: server["eligibility"] for server in listed["servers"]}


def test_there_is_a_schema_for_every_file(schemas: dict[str, Any]) -> None:
    assert list(schemas) == ["project", "local", "user", "managed"]
    for name, schema in schemas.items():
        jsonschema_rs.meta.validate(schema)
        assert name in schema["title"]
    assert json.loads(run("config", "schema", "user").stdout) == schemas["user"]
    assert run("config", "schema", "other").returncode == 2


GOOD_ENTRIES: dict[str, Any] = {
    "plain": {"command": "p"},
    "whole": {
        "type": "stdio",
        "command": "p",
        "args": ["a", "${B:-b}"],
        "env": {"A": "${HOME}"},
        "cwd": "/tmp",
        "timeout": 5000,
        "protocol": "legacy",
        "enabledTools": ["x"],
        "disabledTools": [],
    },
    "bare": {"url": "https://example.com/"},
    "remote": {
        "type": "http",
        "url": "https://example.com/mcp",
        "headers": {"Authorization": "Bearer ${TOKEN:-x}"},
        "headersHelper": "helper",
        "oauth": {"clientId": "a", "clientSecret": "b", "callbackPort": 1, "scopes": ["x"], "xaa": True},
    },
    "scopes-as-text": {"type": "sse", "url": "https://example.com/sse", "oauth": {"scopes": "x y"}},
    "ws": {"type": "ws", "url": "wss://example.com/", "protocol": "2025-11-25"},
    "streamable-http": {"type": "streamable-http", "url": "https://example.com/1"},
    "streamableHttp": {"type": "streamableHttp", "url": "https://example.com/2"},
    "windsurf": {"serverUrl": "https://example.com/3"},
    "gemini": {"httpUrl": "https://example.com/4", "includeTools": ["x"]},
    "unknown-field": {"command": "q", "frob": {"x": 1}},
}
BAD_ENTRIES: dict[str, Any] = {
    "nothing": {},
    "null": None,
    "text": "npx",
    "number-as-command": {"command": 5},
    "text-as-args": {"command": "p", "args": "x"},
    "number-in-args": {"command": "p", "args": [1]},
    "number-in-env": {"command": "p", "env": {"A": 1}},
    "type": {"type": "pigeon", "url": "https://example.com/"},
    "http-without-url": {"type": "http"},
    "stdio-without-command": {"type": "stdio"},
    "empty-command": {"command": ""},
    "port": {"url": "https://example.com/", "oauth": {"callbackPort": 0}},
    "timeout-of-text": {"command": "p", "timeout": "5"},
    "timeout-of-nothing": {"command": "p", "timeout": 0},
    "protocol": {"command": "p", "protocol": "1999-01-01"},
}


def test_valid_entries_match_the_schema(desk: Desk, schemas: dict[str, Any]) -> None:
    desk.user(GOOD_ENTRIES)
    problems, eligibilities = problems_and_eligibilities()
    assert problems == []
    assert eligibilities == dict.fromkeys(GOOD_ENTRIES, "ready")
    unfit = [
        name for name, entry in GOOD_ENTRIES.items() if not is_valid(schemas, "project", block(name, entry))
    ]
    assert unfit == []


def test_invalid_entries_do_not_match_the_schema(desk: Desk, schemas: dict[str, Any]) -> None:
    desk.user(BAD_ENTRIES)
    _, eligibilities = problems_and_eligibilities()
    assert eligibilities == dict.fromkeys(BAD_ENTRIES, "broken")
    fit = [name for name, entry in BAD_ENTRIES.items() if is_valid(schemas, "project", block(name, entry))]
    assert fit == []


def block(name: str, entry: Any) -> dict[str, Any]:
    return {"mcpServers": {name: entry}}


GOOD_USER_FILE: dict[str, Any] = {
    "$schema": "https://example.com/schema.json",
    "mcpServers": {},
    "disabledMcpServers": ["a"],
    "enabledMcpjsonServers": ["b"],
    "disabledMcpjsonServers": ["c"],
    "enableAllProjectMcpServers": False,
    "allowedMcpServers": [{"serverName": "*"}],
    "deniedMcpServers": [{"serverUrl": "https://evil.example/*"}, {"serverCommand": ["sh", "*"]}],
    "env": {"MCP_TIMEOUT": 5000, "MCP_TOOL_TIMEOUT": "6000", "FOO": "bar"},
    "permissions": {"allow": ["mcp__a"], "ask": [], "deny": ["Bash(rm *)"], "defaultMode": "plan"},
}
BAD_KEYS: tuple[dict[str, Any], ...] = (
    {"mcpServers": []},
    {"disabledMcpServers": "a"},
    {"enableAllProjectMcpServers": "yes"},
    {"deniedMcpServers": {}},
    {"deniedMcpServers": [{}]},
    {"deniedMcpServers": [{"serverNames": "a"}]},
    {"deniedMcpServers": [{"serverName": "a", "serverUrl": "https://a.example/"}]},
    {"allowedMcpServers": [{"serverCommand": []}]},
    {"permissions": {"allow": "mcp__a"}},
    {"env": {"MCP_TIMEOUT": [1]}},
    {"connectors": {}},
)


def test_a_valid_file_matches_its_schema_and_has_no_problems(desk: Desk, schemas: dict[str, Any]) -> None:
    desk.user(**GOOD_USER_FILE)
    assert problems_and_eligibilities()[0] == []
    assert is_valid(schemas, "user", GOOD_USER_FILE)
    managed = {**GOOD_USER_FILE, "allowManagedMcpServersOnly": True}
    assert is_valid(schemas, "managed", managed)
    assert is_valid(schemas, "local", {"disabledMcpServers": ["a"], "env": {"MCP_TIMEOUT": 1}})


@pytest.mark.slow
@pytest.mark.parametrize("content", BAD_KEYS, ids=json.dumps)
def test_an_invalid_key_matches_no_schema_and_is_reported_with_its_file(
    desk: Desk, schemas: dict[str, Any], content: dict[str, Any]
) -> None:
    desk.user(**content)
    problems, _ = problems_and_eligibilities()
    # While a list that can deny cannot be read, it is also said that nothing is started.
    named = [problem for problem in problems if not problem.startswith("settings cannot be read")]
    assert len(named) == 1
    assert named[0].startswith(str(desk.user_file))
    assert next(iter(content)) in named[0]
    assert not is_valid(schemas, "user", content)
