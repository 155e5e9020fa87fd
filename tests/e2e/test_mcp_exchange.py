"""`dragoman mcp import` and `export`: seven hosts, both ways, in the places where they keep their files."""

import json
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.forked import Terminal, run
from tests.integration.desk import WELL_BEHAVED, Desk

pytestmark = pytest.mark.slow

SECRET = "hunter2-very-secret"


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


def read(path: Path) -> Any:
    return tomllib.loads(path.read_text()) if path.suffix == ".toml" else json.loads(path.read_text())


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


class Host(NamedTuple):
    """A host as its user has it: a local server that needs TOKEN, and a remote one that needs API_TOKEN."""

    key: str
    place: str
    """Under the home directory."""
    text: str
    files: dict[str, Any]
    """What its local server is in our words."""
    api: dict[str, Any] | None
    kept: tuple[str, ...] = ()
    """What must still stand in its file after an export."""


def files(**more: Any) -> dict[str, Any]:
    return {"command": "npx", "args": ["-y", "srv", "/tmp"], "env": {"TOKEN": "${TOKEN}"}, **more}


BEARER = {"Authorization": "Bearer ${API_TOKEN}"}
API = {"type": "http", "url": "https://example.com/mcp", "headers": BEARER}

HOSTS = (
    Host(
        "claude-code",
        ".claude.json",
        """{
  "numStartups": 41,
  "projects": {"/elsewhere": {"mcpServers": {"foreign": {"command": "x"}}}},
  "mcpServers": {
    "files": {"type": "stdio", "command": "npx", "args": ["-y", "srv", "/tmp"], "env": {"TOKEN": "${TOKEN}"}},
    "api": {
      "type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${API_TOKEN}"}
    }
  }
}
""",
        files(type="stdio"),
        API,
        ('"numStartups": 41', '{"mcpServers": {"foreign": {"command": "x"}}}'),
    ),
    Host(
        "claude-desktop",
        ".config/Claude/claude_desktop_config.json",
        """{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {"files": {"command": "npx", "args": ["-y", "srv", "/tmp"], "env": {"TOKEN": "literal"}}}
}
""",
        files(env={"TOKEN": "literal"}),
        None,
        ('"globalShortcut": "Ctrl+Space"',),
    ),
    Host(
        "cursor",
        ".cursor/mcp.json",
        """{
  // mine
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "srv", "/tmp"], "env": {"TOKEN": "${env:TOKEN}"}},
    "api": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${env:API_TOKEN}"}}, // two
  }
}
""",
        files(),
        API,
        ("// mine", "// two"),
    ),
    Host(
        "vscode",
        ".config/Code/User/mcp.json",
        """{
  /* asked when needed */
  "inputs": [{"id": "key", "type": "promptString", "password": true}],
  "servers": {
    "files": {
      "type": "stdio", "command": "npx", "args": ["-y", "srv", "/tmp"], "env": {"TOKEN": "${env:TOKEN}"}
    },
    // remote
    "api": {
      "type": "http", "url": "https://example.com/mcp",
      "headers": {"Authorization": "Bearer ${env:API_TOKEN}"},
    },
  },
}
""",
        files(type="stdio"),
        API,
        ("/* asked when needed */", '"password": true', "// remote"),
    ),
    Host(
        "codex",
        ".codex/config.toml",
        """# my settings
model = "gpt"   # the big one

[mcp_servers.files]
command = "npx"
args = ["-y", "srv", "/tmp"]
env_vars = ["TOKEN"]

[mcp_servers.api] # remote
url = "https://example.com/mcp"
bearer_token_env_var = "API_TOKEN"

[profiles.x]
model = 'small'
""",
        {**files(), "env": {"TOKEN": "${TOKEN:-}"}},
        API,
        ("# my settings", 'model = "gpt"   # the big one', "[mcp_servers.api] # remote", "model = 'small'"),
    ),
    Host(
        "gemini",
        ".gemini/settings.json",
        """{
  "theme": "Dracula", // dark
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "srv", "/tmp"], "env": {"TOKEN": "$TOKEN"}},
    "api": {"httpUrl": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${API_TOKEN}"}}
  }
}
""",
        files(),
        API,
        ('"theme": "Dracula", // dark',),
    ),
    Host(
        "windsurf",
        ".codeium/windsurf/mcp_config.json",
        """{"mcpServers": {
  "files": {"command": "npx", "args": ["-y", "srv", "/tmp"], "env": {"TOKEN": "${env:TOKEN}"}},
  "api": {"serverUrl": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${env:API_TOKEN}"}}
}, "other": 1}
""",
        files(),
        API,
        ('"other": 1',),
    ),
)
every_host = pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.key)


def servers_of(host: Host) -> dict[str, Any]:
    return {"files": host.files} | ({"api": host.api} if host.api else {})


# --- both ways ---


@pytest.mark.requirement("CFG-12", "CLI-1")
@every_host
def test_servers_are_imported_from_the_hosts_default_path(desk: Desk, host: Host) -> None:
    place = put(desk.home / host.place, host.text)
    done = run("mcp", "import", host.key)
    assert done.returncode == 0, done.stderr
    assert str(place) in done.stdout
    assert read(desk.user_file)["mcpServers"] == servers_of(host)
    assert desk.user_file.stat().st_mode & 0o777 == 0o600
    assert place.read_text() == host.text
    again = json.loads(run("mcp", "import", host.key, "--json").stdout)
    assert (again["added"], list(again["skipped"])) == ([], list(servers_of(host)))


@pytest.mark.slow
@pytest.mark.requirement("CFG-12", "CLI-1")
@every_host
def test_an_export_adds_servers_and_keeps_other_content(desk: Desk, host: Host) -> None:
    place = put(desk.home / host.place, host.text)
    place.chmod(0o640)
    new = {"command": "new", "args": ["a b", 'quo"te', "é\\"], "env": {"PLAIN": "1"}}
    desk.user({**servers_of(host), "new": new})
    done = run("mcp", "export", host.key, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["file"], told["written"], told["conflicts"]) == (str(place), ["new"], [])
    after = place.read_text()
    for line in host.kept:
        assert line in after
    assert "new" in after
    assert place.stat().st_mode & 0o777 == 0o640
    assert run("mcp", "export", host.key).returncode == 0
    assert place.read_text() == after, "writing twice changes nothing"
    desk.user({})
    assert run("mcp", "import", host.key).returncode == 0
    back = read(desk.user_file)["mcpServers"]
    back["new"].pop("type", None)
    assert back == {**servers_of(host), "new": new}


@pytest.mark.requirement("CFG-12")
@every_host
def test_an_export_creates_the_file_at_the_hosts_default_path(desk: Desk, host: Host) -> None:
    desk.user({"files": {**files(), "env": {"LITERAL": SECRET}}})
    done = run("mcp", "export", host.key)
    assert done.returncode == 0, done.stderr
    assert SECRET in (desk.home / host.place).read_text()
    assert SECRET not in done.stdout + done.stderr


def test_private_secrets_are_not_exported_into_a_shared_file(desk: Desk) -> None:
    desk.user({"files": {**files(), "env": {"LITERAL": SECRET}}})
    assert run("mcp", "export", "cursor", umask=0o022).returncode == 0
    assert (desk.home / ".cursor" / "mcp.json").stat().st_mode & 0o077 == 0


# --- what does not carry over ---


@pytest.mark.requirement("CFG-12")
def test_unsupported_fields_are_reported_without_values(desk: Desk) -> None:
    put(
        desk.home / ".cursor" / "mcp.json",
        json.dumps(
            {
                "mcpServers": {
                    "good": {"command": "p", "envFile": ".env", "env": {"A": SECRET, "B": "${input:my-key}"}},
                    "off": {"url": "https://example.com/mcp", "disabled": True},
                    "bad": {"args": [SECRET]},
                    "spa ce": {"command": "p"},
                }
            }
        ),
    )
    done = run("mcp", "import", "cursor")
    assert done.returncode == 0
    assert "Added 2 of" in done.stdout
    assert "good: envFile" in done.stderr
    assert "INPUT_MY_KEY" in done.stderr
    assert "bad" in done.stderr
    assert "spa ce" in done.stdout + done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert read(desk.user_file)["disabledMcpServers"] == ["off"]
    assert read(desk.user_file)["mcpServers"]["good"]["env"]["B"] == "${INPUT_MY_KEY}"


@pytest.mark.requirement("CFG-12")
def test_servers_that_a_host_cannot_express_are_reported_and_left_out(desk: Desk) -> None:
    desk.user({"api": API, "local": {**WELL_BEHAVED, "env": {"A": "${A}"}, "timeout": 5}})
    done = run("mcp", "export", "claude-desktop")
    assert done.returncode == 0
    assert "api" in done.stderr
    assert "env.A" in done.stderr
    assert "timeout" in done.stderr
    written = read(desk.home / ".config" / "Claude" / "claude_desktop_config.json")["mcpServers"]
    assert list(written) == ["local"]


# --- conflicts ---


@pytest.mark.requirement("CFG-12", "CLI-1")
def test_an_import_replaces_nothing_without_confirmation(desk: Desk) -> None:
    host = HOSTS[2]
    put(desk.home / host.place, host.text)
    desk.user({"files": {"command": "mine"}})
    done = run("mcp", "import", host.key)
    assert done.returncode == 0
    assert "files: there is already" in done.stdout
    assert read(desk.user_file)["mcpServers"] == {"files": {"command": "mine"}, "api": host.api}
    assert json.loads(run("mcp", "import", host.key, "--force", "--json").stdout)["added"] == ["files"]
    assert read(desk.user_file)["mcpServers"]["files"] == host.files


@pytest.mark.requirement("CFG-12", "CLI-1")
def test_an_export_replaces_nothing_without_confirmation(desk: Desk) -> None:
    host = HOSTS[3]
    place = put(desk.home / host.place, host.text)
    desk.user({"files": {"command": "mine"}})
    done = run("mcp", "export", host.key)
    assert done.returncode == 0
    assert "--force" in done.stdout + done.stderr
    assert place.read_text() == host.text
    assert run("mcp", "export", host.key, "--force").returncode == 0
    after = place.read_text()
    assert '"mine"' in after
    assert "srv" not in after
    for line in host.kept:
        assert line in after


@pytest.mark.parametrize(("key", "replaced"), [(b"y", True), (b"\x04", False)])
def test_a_person_is_asked_about_conflicts(desk: Desk, key: bytes, replaced: bool) -> None:
    host = HOSTS[2]
    place = put(desk.home / host.place, host.text)
    desk.user({"files": {"command": "mine"}})
    for command in ("export", "import"):
        with Terminal("mcp", command, host.key) as terminal:
            terminal.answer(key)
            assert "Replace files" in terminal.finish()
            assert terminal.process.returncode == 0
        if command == "export":
            assert ('"mine"' in place.read_text()) == replaced
            place.write_text(host.text)
    assert (read(desk.user_file)["mcpServers"]["files"] == host.files) == replaced


@pytest.mark.requirement("CFG-12")
def test_a_dry_run_writes_nothing(desk: Desk) -> None:
    host = HOSTS[4]
    place = put(desk.home / host.place, host.text)
    done = run("mcp", "import", host.key, "--dry-run")
    assert "Would add 2 of 2" in done.stdout
    assert not desk.user_file.exists()
    desk.user({"new": {"command": "new"}})
    shown = run("mcp", "export", host.key, "--dry-run")
    assert tomllib.loads(shown.stdout)["mcp_servers"]["new"]["command"] == "new"
    assert "# my settings" not in shown.stdout, "only what would be added"
    assert "Would write 1" in shown.stderr
    assert place.read_text() == host.text


# --- choosing ---


def test_one_server_can_be_selected(desk: Desk) -> None:
    host = HOSTS[2]
    put(desk.home / host.place, host.text.replace('"command": "npx"', '"envFile": "x", "command": "npx"'))
    done = run("mcp", "import", host.key, "--name", "api")
    assert list(read(desk.user_file)["mcpServers"]) == ["api"]
    assert "envFile" not in done.stderr, "servers that were not asked for are not talked about"
    desk.user({"a": {"command": "a"}, "b": {"command": "b"}})
    assert run("mcp", "export", "windsurf", "--name", "b").returncode == 0
    assert list(read(desk.home / ".codeium" / "windsurf" / "mcp_config.json")["mcpServers"]) == ["b"]


def test_an_unknown_name_is_an_error_for_import_and_export(desk: Desk) -> None:
    host = HOSTS[2]
    place = put(desk.home / host.place, host.text)
    desk.user({"a": {"command": "a"}})
    for command in ("export", "import"):
        done = run("mcp", command, host.key, "--name", "nothing")
        assert done.returncode == 5
        assert "nothing" in done.stderr
    assert place.read_text() == host.text


def test_a_file_and_a_scope_can_be_named(desk: Desk) -> None:
    host = HOSTS[3]
    put(desk.project / "other.json", host.text)
    assert run("mcp", "import", host.key, "other.json", "-s", "project").returncode == 0
    assert read(desk.project_file)["mcpServers"] == servers_of(host)
    listed = json.loads(run("mcp", "list", "--no-health", "--json").stdout)["servers"]
    assert {server["eligibility"] for server in listed} <= {"ready", "broken"}, "who imports has approved"
    assert run("mcp", "export", "codex", "out.toml").returncode == 0
    assert set(read(desk.project / "out.toml")["mcp_servers"]) == {"files", "api"}


def test_only_the_persons_servers_are_exported_by_default(desk: Desk) -> None:
    desk.user({"mine": {"command": "a"}})
    desk.write(desk.plugin_file("p"), {"plugins": {"command": "b"}})
    desk.in_project({"unapproved": {"command": "c"}})
    done = json.loads(run("mcp", "export", "cursor", "--json").stdout)
    assert done["written"] == ["mine"]


def test_claude_codes_servers_of_this_project_are_imported_too(desk: Desk) -> None:
    mine = {"mcpServers": {"here": {"command": "p"}}, "disabledMcpServers": ["here"]}
    other = {"mcpServers": {"there": {"command": "q"}}}
    put(desk.home / ".claude.json", json.dumps({"projects": {str(desk.project): mine, "/x": other}}))
    assert run("mcp", "import", "claude-code").returncode == 0
    assert list(read(desk.user_file)["mcpServers"]) == ["here"]
    assert read(desk.user_file)["disabledMcpServers"] == ["here"]


@pytest.mark.requirement("CFG-12")
def test_a_disabled_server_stays_disabled_in_export_and_import(desk: Desk) -> None:
    desk.user({"on": {"command": "a"}, "off": {"command": "b"}}, disabledMcpServers=["off"])
    assert run("mcp", "export", "codex", "out.toml").returncode == 0
    assert read(desk.project / "out.toml")["mcp_servers"] == {
        "on": {"command": "a"},
        "off": {"command": "b", "enabled": False},
    }
    shown = run("mcp", "export", "codex", "other.toml", "--dry-run").stdout
    assert "enabled = false" in shown
    done = run("mcp", "export", "cursor", "out.json")
    assert "off: it is disabled here, and Cursor has no such field; the server is left out" in done.stderr
    assert list(read(desk.project / "out.json")["mcpServers"]) == ["on"]


@pytest.mark.requirement("CFG-12")
def test_an_entry_without_approval_is_not_exported_and_that_is_reported(desk: Desk) -> None:
    desk.in_project({"theirs": {"command": "c"}})
    done = run("mcp", "export", "cursor", "out.json", "--name", "theirs")
    assert done.returncode == 3
    assert "'theirs' is not exported: the project defines it, and it is not approved yet" in done.stderr
    assert "dragoman mcp approve theirs" in done.stderr
    assert not (desk.project / "out.json").exists()
    done = run("mcp", "export", "cursor", "out.json")
    assert "Wrote 0 servers" in done.stdout
    assert "theirs: left out: the project defines it, and it is not approved yet" in done.stdout
    document = json.loads(run("mcp", "export", "cursor", "out.json", "--json").stdout)
    assert list(document["leftOut"]) == ["theirs"]


def test_an_empty_export_gives_the_reason(desk: Desk) -> None:
    done = run("mcp", "export", "cursor", "out.json")
    assert done.stdout.splitlines()[1:] == ["  No servers are configured."]
    desk.user({"mine": {"command": "a"}})
    run("mcp", "export", "cursor", "out.json")
    done = run("mcp", "export", "cursor", "out.json")
    assert done.stdout.splitlines()[1:] == ["  = mine: it exists already"]
    desk.user({})
    desk.write(desk.plugin_file("p"), {"plugins": {"command": "b"}})
    done = run("mcp", "export", "cursor", "out.json")
    assert "plugins: left out: it is of scope plugin; --name plugins exports it" in done.stdout


@pytest.mark.requirement("CFG-12")
def test_an_import_counts_every_server_and_names_variables_that_are_not_set(desk: Desk) -> None:
    entries = {"good": {"command": "p", "env": {"A": "${env:NOT_SET_HERE}"}}, "bad": 5}
    put(desk.project / "in.json", json.dumps({"mcpServers": entries}))
    done = run("mcp", "import", "cursor", "in.json")
    assert done.stdout.startswith("Added 1 of 2 servers of Cursor\n")
    assert "good: NOT_SET_HERE is not set yet" in done.stderr


@pytest.mark.requirement("CFG-12")
def test_an_import_reports_that_a_projects_server_is_added_for_all_projects(desk: Desk) -> None:
    mine = {"mcpServers": {"here": {"command": "p"}}}
    put(desk.home / ".claude.json", json.dumps({"projects": {str(desk.project): mine}}))
    done = run("mcp", "import", "claude-code", "-s", "local")
    assert "here: Claude Code keeps it for this project only; here it is in scope local" in done.stderr
    done = run("mcp", "import", "claude-code")
    said = "here it is in scope user, for all projects (-s local keeps it to this one)"
    assert f"here: Claude Code keeps it for this project only; {said}" in done.stderr


# --- what goes wrong ---


@pytest.mark.requirement("CFG-12")
@pytest.mark.parametrize(
    ("key", "place", "text"),
    [
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {'),
        ("claude-code", ".claude.json", '{"mcpServers": []}'),
        ("codex", ".codex/config.toml", "[mcp_servers.x\n"),
    ],
)
def test_a_broken_file_is_reported_and_not_changed(desk: Desk, key: str, place: str, text: str) -> None:
    path = put(desk.home / place, text)
    desk.user({"a": {"command": "a"}})
    before = desk.user_file.read_text()
    for command in ("export", "import"):
        done = run("mcp", command, key, "--force")
        assert done.returncode == 3
        assert str(path) in done.stderr
        assert "line" in done.stderr
        assert "Traceback" not in done.stderr
    assert path.read_text() == text
    assert desk.user_file.read_text() == before


def test_a_host_without_a_file_is_reported_with_the_searched_paths(desk: Desk) -> None:
    done = run("mcp", "import", "gemini")
    assert done.returncode == 3
    assert str(desk.home / ".gemini" / "settings.json") in done.stderr
    unknown = run("mcp", "import", "emacs")
    assert unknown.returncode == 2
    assert "windsurf" in unknown.stderr


@pytest.mark.requirement("CFG-7", "CFG-12")
def test_policy_applies_to_imported_entries(desk: Desk) -> None:
    host = HOSTS[2]
    put(desk.home / host.place, host.text)
    desk.managed(deniedMcpServers=[{"serverUrl": "https://example.com/*"}])
    told = json.loads(run("mcp", "import", host.key, "--force", "--json").stdout)
    assert told["added"] == ["files"]
    assert str(desk.managed_file) in told["skipped"]["api"]
    assert list(read(desk.user_file)["mcpServers"]) == ["files"]


@pytest.mark.requirement("CFG-12")
def test_an_imported_server_can_be_called(desk: Desk) -> None:
    put(desk.home / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"it": WELL_BEHAVED}}))
    assert run("mcp", "import", "cursor").returncode == 0
    assert run("call", "mcp__it__echo", "message=hello").stdout == "hello\n"
    assert run("mcp", "export", "codex").returncode == 0
    given = ("--strict-mcp-config", "--mcp-config", str(desk.home / ".codex" / "config.toml"))
    assert run("call", "mcp__it__echo", "message=again", *given).stdout == "again\n"
