"""What a new person sees: servers that fail, names that are not known, entries taken from an editor."""

import json
from pathlib import Path

import pytest

from dragoman.cli import exit_codes
from tests.e2e.command import plain
from tests.e2e.forked import Terminal, run
from tests.integration.desk import Desk

pytestmark = pytest.mark.slow

PRINTS = {"command": "sh", "args": ["-c", "echo usage: tool FILE; exit 2"]}


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


@pytest.mark.requirement("LIF-3", "CLI-1")
def test_output_printed_on_stdout_before_an_exit_is_shown(desk: Desk):
    desk.user({"it": PRINTS})
    for words in (("mcp", "list"), ("mcp", "get", "it")):
        shown = run(*words).stdout
        at = shown.index("  it: handshake failed: it exited with code 2\n    usage: tool FILE\n")
        assert shown.index("    Run its command by hand") > at, "what the server said stands before the hint"
    called = run("call", "it", "x")
    assert "  last output:\n    usage: tool FILE\n" in called.stderr
    assert "stderr" not in called.stderr


@pytest.mark.requirement("CLI-1")
def test_the_command_that_is_shown_can_be_copied(desk: Desk):
    desk.user({"it": {"command": "/opt/my tools/run", "args": ["-c", "exit 0", "", "${A}"]}})
    (server,) = json.loads(run("mcp", "list", "--no-health", "--json").stdout)["servers"]

    assert server["target"] == "'/opt/my tools/run' -c 'exit 0' '' ${A}"


@pytest.mark.requirement("CFG-8")
def test_servers_are_approved_in_the_order_of_their_file(desk: Desk):
    desk.in_project({name: {"command": "p", "args": [name]} for name in ("first", "second", "third")})
    with Terminal("mcp", "approve") as terminal:
        for _ in range(3):
            terminal.answer(b"l")
        shown = plain(terminal.finish())

    asked = [line.split()[2] for line in shown.splitlines() if line.endswith("needs approval.")]
    assert asked == ["first", "second", "third"]


@pytest.mark.requirement("PRM-6")
def test_a_name_without_its_server_does_not_match_the_tool():
    explained = run("permissions", "explain", "add", "--mcp-config", "demo")
    nowhere = run("permissions", "explain", "mcp__nowhere__add", "--mcp-config", "demo")

    assert " ".join(explained.stderr.split()) == (
        "! only a built-in tool can have this name: in rules, the name of a server's tool is "
        "mcp__SERVER__TOOL, as `dragoman tools` lists it; decided by the name only"
    )
    assert " ".join(nowhere.stderr.split()) == (
        "! no configured server has a tool of this name; decided by the name only"
    )


@pytest.mark.requirement("CLI-1")
@pytest.mark.parametrize("scope", ["user", "local"])
def test_an_import_reports_a_lost_workspace_folder(desk: Desk, scope: str):
    file = desk.home / "cursor.json"
    args = {"command": "p", "args": ["${workspaceFolder}"]}
    servers = {"a": args, "b": {**args, "cwd": "${workspaceFolder}"}, "c": {"command": "p"}}
    file.write_text(json.dumps({"mcpServers": servers}))
    done = run("mcp", "import", "cursor", file, "--scope", scope, "--json")
    notes = [(note["server"], note["text"]) for note in json.loads(done.stdout)["notes"]]

    assert done.returncode == exit_codes.OK
    said = (
        "a",
        "${WORKSPACE_FOLDER:-.} is not the folder you work in: in scope user a server starts in a folder of "
        'its own. Set WORKSPACE_FOLDER, import it with --scope local, or add "cwd": "." to its entry',
    )
    assert [note for note in notes if "not the folder" in note[1]] == ([said] if scope == "user" else [])


@pytest.mark.requirement("CLI-1")
def test_a_name_that_cannot_be_imported_is_reported_with_the_available_ones(desk: Desk):
    file = desk.home / "claude.json"
    file.write_text(json.dumps({"mcpServers": {"My Server": {"command": "p"}}}))
    skipped = json.loads(run("mcp", "import", "claude-desktop", file, "--json").stdout)["skipped"]

    allowed = "Up to 64 letters, digits, hyphens and underscores."
    assert skipped == {"My Server": f"'My Server' cannot be a server's name. {allowed}"}
