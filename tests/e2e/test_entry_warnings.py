"""What an entry says that has no effect: every command that shows the entry says it, once."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.forked import run
from tests.integration.desk import WELL_BEHAVED, Desk

pytestmark = pytest.mark.slow

TYPO = {**WELL_BEHAVED, "comand": "x", "oauth": {"clientID": "x"}}
WARNINGS = [
    "the entry has a field 'comand' that this version does not know; did you mean command?",
    "the entry has a field 'oauth.clientID' that this version does not know; did you mean clientId?",
]


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


COMMANDS: dict[str, tuple[str, ...]] = {
    "list": ("mcp", "list", "--no-health"),
    "list with health": ("mcp", "list"),
    "get": ("mcp", "get", "--no-health", "it"),
    "get with health": ("mcp", "get", "it"),
    "explain": ("config", "explain", "it"),
    "explain everything": ("config", "explain"),
    "add-json": ("mcp", "add-json", "new", json.dumps(TYPO)),
}


@pytest.mark.requirement("CFG-5")
@pytest.mark.parametrize("what", COMMANDS)
def test_unknown_fields_are_reported_once_by_every_command(desk: Desk, what: str):
    if what != "add-json":
        desk.user({"it": TYPO})
    done = run(*COMMANDS[what])
    assert done.returncode == 0, done.stderr
    for warning in WARNINGS:
        assert (done.stdout + done.stderr).count(warning) == 1


@pytest.mark.requirement("CFG-5")
@pytest.mark.parametrize("what", ["list", "get", "explain"])
def test_warnings_are_part_of_the_json_output(desk: Desk, what: str):
    desk.user({"it": TYPO})
    done = run(*COMMANDS[what], "--json")
    document = json.loads(done.stdout)
    assert WARNINGS[0] not in done.stderr
    server: Any = document["servers"][0] if "servers" in document else document
    assert server["warnings"] == WARNINGS


@pytest.mark.requirement("CFG-5")
def test_the_json_of_add_has_the_warnings(desk: Desk):
    document = json.loads(run(*COMMANDS["add-json"], "--json").stdout)
    assert document["notes"] == WARNINGS


@pytest.mark.requirement("CFG-5")
def test_an_entry_with_an_invalid_oauth_metadata_url_is_not_added(desk: Desk):
    entry = {"url": "https://x.example/mcp", "oauth": {"authServerMetadataUrl": "nowhere"}}
    done = run("mcp", "add-json", "it", json.dumps(entry))
    assert done.returncode == 3
    assert "oauth.authServerMetadataUrl" in done.stderr
    assert not desk.local_file.exists()


# --- what would be run ---

BOTH = {"type": "stdio", "command": "run-this", "args": ["a"], "url": "https://harmless.example/mcp"}


@pytest.mark.parametrize(
    ("command", "entry", "shown", "hidden"),
    [
        (("mcp", "list", "--no-health"), BOTH, "run-this a", "harmless"),
        (
            ("mcp", "list", "--no-health"),
            {**BOTH, "type": "http"},
            "https://harmless.example/mcp",
            "run-this",
        ),
        (("config", "plan"), BOTH, "run-this a", "harmless"),
    ],
    ids=["list, stdio", "list, http", "plan"],
)
def test_the_shown_command_is_the_one_that_would_run(
    desk: Desk, command: tuple[str, ...], entry: dict[str, Any], shown: str, hidden: str
):
    desk.user({"it": entry})
    done = run(*command)
    assert shown in done.stdout
    assert hidden not in done.stdout


UNUSED = "url has no effect: the server's type is stdio"


def test_get_and_explain_show_used_and_unused_fields(desk: Desk):
    desk.user({"it": BOTH})
    got = run("mcp", "get", "--no-health", "it")
    assert "run-this a" in got.stdout.splitlines()[0]
    assert UNUSED in got.stderr
    explained = run("config", "explain", "it").stdout
    assert "target    run-this a\n" in explained
    assert UNUSED in explained
    document = json.loads(run("mcp", "get", "--no-health", "it", "--json").stdout)
    assert (document["transport"], document["target"]) == ("stdio", "run-this a")


def test_the_approval_question_shows_unused_fields(desk: Desk):
    desk.in_project({"it": BOTH})
    done = run("mcp", "approve", "it", "--yes")
    assert UNUSED in done.stderr
    assert 'command: "run-this"' in done.stderr


# --- entries of a project that cannot work ---

UNUSABLE = {
    "num": ({"command": 3}, "Expected `str | null`, got `int` - at `$.command`"),
    "typ": ({"type": "pi\x1bgeon", "command": "x"}, "unknown type 'pi\\x1bgeon'"),
    "ftp": ({"url": "ftp://x/"}, "the URL has a scheme other than http, https, ws and wss"),
    "txt": ("x", "the entry must be an object"),
}
PENDING_COMMANDS: dict[str, tuple[str, ...]] = {
    "list": ("mcp", "list"),
    "get": ("mcp", "get"),
    "explain": ("config", "explain"),
    "approve": ("mcp", "approve"),
}


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.requirement("CFG-5")
@pytest.mark.parametrize("name", UNUSABLE)
@pytest.mark.parametrize("what", PENDING_COMMANDS)
def test_an_entry_that_cannot_work_is_reported_before_its_approval(desk: Desk, what: str, name: str):
    entry, fault = UNUSABLE[name]
    desk.in_project({name: entry})
    done = run(*PENDING_COMMANDS[what], *([] if what == "list" else [name]))
    shown = flat(done.stdout + done.stderr)
    assert shown.count("even with approval it cannot be started: ") == 1
    assert fault in shown
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.requirement("CFG-5")
def test_after_the_approval_the_reason_is_only_the_error(desk: Desk):
    desk.in_project({"num": {"command": 3}})
    for answer, eligibility in (("--yes", "broken"), ("--no", "rejected")):
        run("mcp", "approve", "num", answer)
        document = json.loads(run("mcp", "get", "num", "--json").stdout)
        assert document["eligibility"] == eligibility
        assert "even with approval" not in document["reason"]


@pytest.mark.requirement("CFG-5")
def test_the_reason_of_a_valid_entry_names_no_error(desk: Desk):
    desk.in_project({"it": WELL_BEHAVED})
    reason = json.loads(run("mcp", "get", "it", "--json").stdout)["reason"]
    assert reason == "the project defines it, and it is not approved yet"


# --- duplicates ---


@pytest.mark.requirement("CFG-6")
def test_add_reports_that_the_new_server_is_a_duplicate(desk: Desk):
    desk.user({"mine": {"command": "p", "args": ["a"], "env": {"T": "1"}}})
    done = run("mcp", "add", "-s", "local", "-e", "T=1", "it", "p", "a")
    assert f"it is left out: the same server as 'mine' of user ({desk.user_file})" in done.stderr
    done = run("mcp", "add", "-s", "local", "-e", "T=2", "other", "p", "a")
    assert "same server" not in done.stderr
    assert json.loads(run("mcp", "get", "--no-health", "other", "--json").stdout)["eligibility"] == "ready"
    done = run("mcp", "add", "-s", "user", "-e", "T=1", "again", "p", "a")
    assert "it is the same server as 'mine' in the same file; both are used" in done.stderr


@pytest.mark.requirement("CFG-6")
def test_add_reports_which_server_the_new_one_displaces(desk: Desk):
    plugin = desk.home / ".dragoman" / "plugins" / "p" / ".mcp.json"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(json.dumps({"mcpServers": {"theirs": {"command": "p", "args": []}}}))
    done = run("mcp", "add", "-s", "user", "it", "p")
    said = f"'theirs' of plugin ({plugin}) is left out from now on: it is the same server"
    assert said in done.stderr
