"""`dragoman mcp`: list, get, enable, disable, approve, reset-project-choices and remove."""

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import config, entry, plain
from tests.e2e.forked import Terminal, in_terminal, run
from tests.integration.desk import WELL_BEHAVED, Desk, other_well_behaved

pytestmark = pytest.mark.slow

CALM_WORDS = (WELL_BEHAVED["command"], *WELL_BEHAVED["args"])
EVIL = "evil\x1b[2J\x1b]0;owned\x07\r\u202egnp\u200b\x9b31m"
SECRET = "hunter2-very-secret"


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def documents(*words: str) -> Any:
    done = run("mcp", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def eligibilities(*words: str) -> dict[str, str]:
    listed = documents("list", "--no-health", *words)
    return {server["name"]: server["eligibility"] for server in listed["servers"]}


def line_of(output: str, name: str) -> str:
    """The line about a server in the list: mark, name, scope, transport, state, target."""
    return next(line for line in output.splitlines() if line[1:].startswith(f" {name} "))


def reason_of(output: str, name: str) -> tuple[str, str]:
    """What stands below the list about a server: the reason, and the line that follows it."""
    lines = output.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(f"  {name}: "))
    follows = lines[at + 1] if at + 1 < len(lines) else ""
    return lines[at].partition(": ")[2], follows.strip() if follows.startswith("    ") else ""


def touches(file: Path) -> dict[str, Any]:
    """A server that leaves a trace when it is started."""
    return {"command": "touch", "args": [str(file)]}


def everything(desk: Desk) -> None:
    """One server of every kind of eligibility."""
    desk.user(
        {
            "good": WELL_BEHAVED,
            "gone": {"command": "no-such-program"},
            "unset": {"command": "p", "env": {"A": "${NOT_SET}"}},
            "wrong": {"command": 5},
            "off": {"command": "p", "args": ["off"]},
            "untrusted": {"command": "p", "args": ["untrusted"]},
            "both": {"command": "p", "args": ["both"]},
        },
        disabledMcpServers=["off"],
        disabledMcpjsonServers=["declined"],
    )
    desk.write(desk.plugin_file("tools"), {"twin": WELL_BEHAVED, "both": {"command": "p", "args": ["lower"]}})
    desk.in_project(
        {"waiting": {"command": "p", "args": ["waiting"]}, "declined": {"command": "p", "args": ["declined"]}}
    )
    desk.managed(deniedMcpServers=[{"serverName": "untrusted"}])


# --- list ---


@pytest.mark.requirement("CFG-1", "CFG-6", "CLI-1")
def test_a_list_shows_every_server_with_scope_transport_and_state(desk: Desk) -> None:
    everything(desk)
    done = run("mcp", "list")
    assert done.returncode == 0, done.stderr
    shown = {
        name: line_of(done.stdout, name).split()[:5]
        for name in ("good", "gone", "unset", "wrong", "off", "untrusted", "both", "waiting", "declined")
    }
    assert shown["good"][:4] == ["✓", "good", "user", "stdio"]
    assert "1 tool" in line_of(done.stdout, "good")
    assert shown["gone"] == ["✗", "gone", "user", "stdio", "failed"]
    assert shown["unset"] == ["✗", "unset", "user", "stdio", "broken"]
    assert shown["wrong"][4] == "broken"
    assert shown["off"] == ["–", "off", "user", "stdio", "disabled"]
    assert shown["untrusted"] == ["⊘", "untrusted", "user", "stdio", "refused"]
    assert shown["waiting"] == ["?", "waiting", "project", "stdio", "pending"]
    assert shown["declined"] == ["–", "declined", "project", "stdio", "rejected"]


@pytest.mark.requirement("CFG-4", "CFG-6", "CFG-7", "CFG-8", "CLI-1")
def test_every_unavailable_server_has_a_reason_and_a_next_step(desk: Desk) -> None:
    everything(desk)
    output = run("mcp", "list").stdout
    reason, step = reason_of(output, "gone")
    assert "no-such-program" in reason
    assert step
    reason, step = reason_of(output, "unset")
    assert f"{desk.user_file}, line" in reason
    assert "NOT_SET" in reason
    assert "Set NOT_SET" in step
    assert "command" in reason_of(output, "wrong")[0]
    reason, step = reason_of(output, "off")
    assert str(desk.user_file) in reason
    assert step == "dragoman mcp enable off"
    reason, step = reason_of(output, "waiting")
    assert "not approved" in reason
    assert step == "dragoman mcp approve waiting"
    reason, step = reason_of(output, "declined")
    assert str(desk.user_file) in reason
    reason, step = reason_of(output, "untrusted")
    assert str(desk.managed_file) in reason
    assert "dragoman config explain" in step
    assert f"twin of plugin ({desk.plugin_file('tools')}): the same server as 'good'" in output
    assert f"both of plugin ({desk.plugin_file('tools')}): replaced by the entry of user" in output


def test_a_server_declined_by_the_person_is_shown_as_declined(desk: Desk) -> None:
    desk.in_project({"it": {"command": "p"}})
    assert run("mcp", "approve", "--no", "it").returncode == 0
    reason, step = reason_of(run("mcp", "list", "--no-health").stdout, "it")
    assert "declined" in reason
    assert step == "", "no ready-made command invites to approve what was declined"


@pytest.mark.requirement("CFG-3")
def test_an_administrators_servers_exclude_all_others(desk: Desk) -> None:
    everything(desk)
    desk.managed({"company": WELL_BEHAVED})
    listed = documents("list")
    assert [server["name"] for server in listed["servers"]] == ["company"]
    assert listed["servers"][0]["scope"] == "enterprise"
    assert {dropped["why"] for dropped in listed["dropped"]} == {"exclusive"}
    assert {dropped["name"] for dropped in listed["dropped"]} >= {"good", "twin", "waiting"}
    given = config(mine=other_well_behaved())
    assert list(eligibilities("--mcp-config", given)) == ["company"]
    refused = run("mcp", "add", "mine", "p")
    assert refused.returncode == 3
    assert "administrator" in refused.stderr


def test_a_broken_file_is_left_out_and_reported_with_its_position(desk: Desk) -> None:
    desk.user({"good": WELL_BEHAVED})
    desk.project_file.write_text('{\n  "mcpServers": {\n    "x": }\n}\n')
    done = run("mcp", "list")
    assert done.returncode == 3
    assert "✓ good" in done.stdout
    assert f"{desk.project_file}, line 3, column 10" in done.stderr


def test_an_empty_list_gives_the_next_step() -> None:
    done = run("mcp", "list")
    assert (done.returncode, done.stderr) == (0, "")
    assert "dragoman mcp add" in done.stdout


@pytest.mark.requirement("CFG-8", "CLI-1")
def test_a_list_starts_only_ready_servers_and_none_without_health_checks(desk: Desk) -> None:
    trace = {name: desk.home / name for name in ("ready", "waiting", "off", "untrusted")}
    desk.user(
        {name: touches(trace[name]) for name in ("ready", "off", "untrusted")}, disabledMcpServers=["off"]
    )
    desk.in_project({"waiting": touches(trace["waiting"])})
    desk.managed(deniedMcpServers=[{"serverName": "untrusted"}])
    for quiet in (
        ("mcp", "list", "--no-health"),
        ("mcp", "list", "--no-health", "--json"),
        ("mcp", "get", "ready", "--no-health"),
        ("config", "explain"),
        ("config", "plan"),
    ):
        assert run(*quiet).returncode == 0
    assert not [name for name, file in trace.items() if file.exists()]
    run("mcp", "list")
    run("tools")
    assert [name for name, file in trace.items() if file.exists()] == ["ready"]


@pytest.mark.requirement("CLI-1")
def test_the_json_of_a_list_has_stable_keys(desk: Desk) -> None:
    everything(desk)
    listed = documents("list")
    assert list(listed) == ["servers", "dropped", "problems"]
    servers = {server["name"]: server for server in listed["servers"]}
    keys = {"name", "scope", "source", "transport", "eligibility", "reason", "target", "entry", "warnings"}
    assert set(servers["good"]) == keys | {"health"}
    assert set(servers["waiting"]) - {"health"} == keys
    assert servers["good"]["source"] == str(desk.user_file)
    assert servers["good"]["health"]["status"] == "connected"
    assert servers["gone"]["health"]["status"] == "failed"
    assert set(servers["good"]["health"]) == {"status", "reason", "protocolVersion", "toolCount"}
    assert {(each["name"], each["why"]) for each in listed["dropped"]} == {
        ("twin", "duplicate"),
        ("both", "replaced"),
    }
    assert set(listed["dropped"][0]) == {"name", "scope", "source", "why", "text"}
    assert "health" not in documents("list", "--no-health")["servers"][0]


def test_colour_and_progress_are_for_terminals_only(desk: Desk) -> None:
    everything(desk)
    piped = run("mcp", "list")
    assert "\x1b" not in piped.stdout + piped.stderr
    assert "checked" not in piped.stdout + piped.stderr
    code, watched = in_terminal("mcp", "list")
    assert code == 0
    assert "\x1b[32m✓\x1b[0m" in watched
    assert "\x1b" not in plain(watched)


def test_lines_fit_the_terminal_and_are_complete_elsewhere(desk: Desk) -> None:
    desk.user({"wide": {"command": "p", "args": ["x" * 20 + " " for _ in range(12)]}})
    whole = run("mcp", "list", "--no-health", "--full").stdout
    assert whole.count("x" * 20) == 12
    _, shown = in_terminal("mcp", "list", "--no-health")
    assert max(len(line) for line in plain(shown).splitlines()) <= 100
    assert "…" in shown


@pytest.mark.requirement("CFG-5")
def test_the_type_of_a_server_follows_from_its_fields(desk: Desk) -> None:
    desk.user(
        {
            "plain": {"command": "p"},
            "bare": {"url": "https://example.com/"},
            "windsurf": {"serverUrl": "https://example.com/w"},
            "gemini": {"httpUrl": "https://example.com/g"},
            "streamable": {"type": "streamable-http", "url": "https://example.com/s"},
            "sse": {"type": "sse", "url": "https://example.com/sse"},
            "ws": {"type": "ws", "url": "wss://example.com/"},
            "unknown": {"command": "q", "frob": True},
        }
    )
    transports = {server["name"]: server for server in documents("list", "--no-health")["servers"]}
    assert {name: server["transport"] for name, server in transports.items()} == {
        "plain": "stdio", "bare": "http", "windsurf": "http", "gemini": "http", "streamable": "http",
        "sse": "sse", "ws": "ws", "unknown": "stdio",
    }  # fmt: skip
    assert {server["eligibility"] for server in transports.values()} == {"ready"}


# --- which scope wins, and which file ---


@pytest.mark.slow
@pytest.mark.requirement("CFG-1")
def test_a_higher_scope_replaces_a_server_of_the_same_name(desk: Desk) -> None:
    def effective(*words: str) -> tuple[str, list[str]]:
        listed = documents("list", "--no-health", *words)
        (server,) = listed["servers"]
        return server["scope"], [dropped["scope"] for dropped in listed["dropped"]]

    desk.write(desk.plugin_file("p"), {"it": {"command": "plugin"}})
    assert effective() == ("plugin", [])
    desk.user({"it": {"command": "user"}})
    assert effective() == ("user", ["plugin"])
    for scope, beaten in (("project", ["user", "plugin"]), ("local", ["project", "user", "plugin"])):
        assert run("mcp", "add", "-s", scope, "it", scope).returncode == 0
        assert effective() == (scope, beaten)
    given = ("--mcp-config", config(it={"command": "given"}))
    assert effective(*given) == ("dynamic", ["local", "project", "user", "plugin"])
    shown = run("mcp", "get", "it", "--no-health").stdout
    for path in (desk.local_file, desk.project_file, desk.user_file, desk.plugin_file("p")):
        assert str(path) in shown


@pytest.mark.requirement("CFG-1", "CFG-8")
def test_a_project_entry_without_approval_displaces_no_server(desk: Desk) -> None:
    desk.user({"it": WELL_BEHAVED})
    desk.in_project({"it": touches(desk.home / "started")})
    listed = documents("list")
    assert [(server["scope"], server["eligibility"]) for server in listed["servers"]] == [("user", "ready")]
    assert [dropped["why"] for dropped in listed["dropped"]] == ["not approved"]
    assert not (desk.home / "started").exists()


@pytest.mark.requirement("CFG-2")
def test_project_files_of_parent_folders_are_read_and_the_nearest_takes_precedence(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.in_project({"far": {"command": "far"}, "it": {"command": "far-it"}})
    deep = desk.project / "a" / "b"
    deep.mkdir(parents=True)
    desk.write(deep.parent / ".mcp.json", {"it": {"command": "near"}})
    monkeypatch.chdir(deep)
    listed = {server["name"]: server for server in documents("list", "--no-health")["servers"]}
    assert listed["it"]["entry"] == {"command": "near"}
    assert listed["it"]["source"] == str(deep.parent / ".mcp.json")
    assert listed["far"]["source"] == str(desk.project_file)


# --- what hostile names can do ---


@pytest.mark.parametrize(
    "words",
    [
        ("mcp", "list", "--no-health"),
        ("mcp", "get", EVIL),
        ("mcp", "disable", EVIL),
        ("mcp", "enable", EVIL),
        ("mcp", "approve", "--yes", EVIL),
        ("mcp", "remove", EVIL),
        ("mcp", "remove", "-s", "user", EVIL),
        ("mcp", "add", EVIL, "p"),
        ("config", "explain"),
        ("config", "explain", EVIL),
        ("config", "plan"),
    ],
    ids=lambda words: "-".join(words[:2]),
)
def test_a_hostile_entry_is_shown_without_terminal_sequences(desk: Desk, words: tuple[str, ...]) -> None:
    desk.in_project({EVIL: {"command": EVIL, "args": [EVIL], "env": {EVIL: EVIL}, EVIL: EVIL}})
    desk.user({}, **{EVIL: EVIL})
    _, output = in_terminal(*words)
    bare = plain(output)
    left = {hex(ord(char)) for char in bare if char != "\n" and unicodedata.category(char)[0] == "C"}
    assert not left, f"{left} reached the terminal in {output!r}"
    assert "evil" in output


# --- get ---


@pytest.mark.requirement("CLI-1")
def test_one_server_is_shown_with_its_file_entry_and_health(desk: Desk) -> None:
    desk.user(
        {"it": {**WELL_BEHAVED, "env": {"A": SECRET, "B": "${HOME}"}}, "other": touches(desk.home / "other")}
    )
    done = run("mcp", "get", "it")
    assert done.returncode == 0, done.stderr
    assert "✓ it" in done.stdout
    assert str(desk.user_file) in done.stdout
    assert "${HOME}" in done.stdout
    assert SECRET not in done.stdout
    assert not (desk.home / "other").exists(), "only the server that was asked for is started"
    document = documents("get", "it")
    assert document["health"]["toolCount"] == 1
    assert document["entry"]["env"] == {"A": "•••", "B": "${HOME}"}


@pytest.mark.requirement("CLI-1")
def test_an_unknown_name_is_reported_with_a_similar_one(desk: Desk) -> None:
    desk.user({"database": WELL_BEHAVED})
    for command in (("get", "databse"), ("disable", "databse"), ("enable", "databse")):
        done = run("mcp", *command)
        assert done.returncode == 5
        assert "no server 'databse'" in done.stderr
        assert "database?" in done.stderr
    assert json.loads(run("mcp", "get", "nothing", "--json").stdout)["error"]["code"] == "not-found"


def test_of_many_servers_those_that_are_not_named_are_counted(desk: Desk) -> None:
    desk.user({f"{letter}-server": WELL_BEHAVED for letter in "abcdefghijklmnopqrstuvwx"})
    hint = json.loads(run("mcp", "get", "nothing", "--json").stdout)["error"]["hint"]
    assert re.fullmatch(r"There are: a-server, b-server, .* and \d+ more\.", hint)


def test_the_reason_of_a_failure_is_shown_with_the_last_output(desk: Desk) -> None:
    desk.user({"it": entry("dies")})
    done = run("mcp", "get", "it")
    assert "✗ it" in done.stdout
    assert "code 3" in done.stdout


# --- enable and disable ---


@pytest.mark.requirement("CLI-1")
def test_disabling_is_stored(desk: Desk) -> None:
    desk.user({"it": WELL_BEHAVED, "stays": other_well_behaved()}, theme="dark")
    off = run("mcp", "disable", "it")
    assert off.returncode == 0
    assert str(desk.user_file) in off.stdout
    assert read(desk.user_file)["disabledMcpServers"] == ["it"]
    assert read(desk.user_file)["theme"] == "dark"
    assert eligibilities() == {"it": "disabled", "stays": "ready"}
    tools = run("tools")
    assert "mcp__it__echo" not in tools.stdout
    assert "mcp__stays__echo" in tools.stdout
    called = run("call", "mcp__it__echo")
    assert called.returncode == 4
    assert "disabled in" in called.stderr
    assert "hint: `dragoman mcp enable it` enables it." in called.stderr
    assert documents("enable", "it") == {"servers": [{"name": "it", "eligibility": "ready"}]}
    assert eligibilities() == {"it": "ready", "stays": "ready"}


@pytest.mark.requirement("CLI-1")
def test_a_projects_server_is_disabled_for_this_project_and_person_only(desk: Desk) -> None:
    assert run("mcp", "add", "-s", "project", "it", *CALM_WORDS).returncode == 0
    before = desk.project_file.read_text()
    assert run("mcp", "disable", "it").returncode == 0
    assert desk.project_file.read_text() == before
    assert not desk.user_file.exists()
    assert read(desk.local_file)["disabledMcpServers"] == ["it"]
    assert eligibilities() == {"it": "disabled"}
    assert run("mcp", "enable", "it").returncode == 0
    assert eligibilities() == {"it": "ready"}


@pytest.mark.requirement("CLI-1")
def test_all_servers_can_be_disabled_and_enabled(desk: Desk) -> None:
    desk.user({"a": {"command": "a"}, "b": {"command": "b"}})
    desk.in_project({"c": {"command": "c"}})
    assert run("mcp", "disable", "all").returncode == 0
    assert set(eligibilities().values()) == {"disabled"}
    done = run("mcp", "enable", "all")
    assert "dragoman mcp approve c" in done.stdout, "a switch is no approval"
    assert eligibilities() == {"a": "ready", "b": "ready", "c": "pending"}


def test_one_unknown_name_among_several_changes_nothing(desk: Desk) -> None:
    desk.user({"a": {"command": "a"}, "b": {"command": "b"}}, disabledMcpServers=["b"])
    before = desk.user_file.read_text()
    for command in ("disable", "enable"):
        assert run("mcp", command, "a", "b", "nothing").returncode == 5
        assert desk.user_file.read_text() == before


def test_a_server_disabled_by_the_administrator_stays_disabled(desk: Desk) -> None:
    desk.user({"a": {"command": "a"}})
    desk.managed(disabledMcpServers=["a"])
    done = run("mcp", "enable", "a")
    assert done.returncode == 3
    assert str(desk.managed_file) in done.stderr
    assert eligibilities() == {"a": "disabled"}


# --- approve ---


def answered(*keys: bytes, words: tuple[str, ...] = ("mcp", "approve")) -> tuple[int, str]:
    with Terminal(*words) as terminal:
        for key in keys:
            terminal.answer(key)
        output = terminal.finish()
        return terminal.process.returncode, plain(output)


@pytest.mark.requirement("CFG-8", "CLI-1")
@pytest.mark.parametrize(("keys", "eligibility"), [(b"y", "ready"), (b"n", "rejected"), (b"\x04", "pending")])
def test_the_approval_question_shows_the_complete_entry(desk: Desk, keys: bytes, eligibility: str) -> None:
    args = ["--flag", "x" * 300, "\u202eend", "\x1b[8mhidden"]
    desk.in_project(
        {"it": {"command": "p", "args": args, "env": {"LD_PRELOAD": "/x.so"}, "odd": {"deep": 1}}}
    )
    code, output = answered(keys)
    assert code == 0
    unwrapped = "".join(output.split())
    for part in ("x" * 300, "\\u202eend", "\\u001b[8mhidden", "/x.so", '{"deep":1}', ".mcp.json"):
        assert part in unwrapped
    assert "LD_PRELOAD,whichchangeshowprogramsrun" in unwrapped
    assert "\u202e" not in output
    assert eligibilities() == {"it": eligibility}
    assert json.loads(desk.project_file.read_text())["mcpServers"]["it"]["args"] == args


@pytest.mark.requirement("CFG-8", "CLI-1")
def test_without_a_terminal_no_question_is_asked(desk: Desk) -> None:
    desk.in_project({"it": touches(desk.home / "started")})
    done = run("mcp", "approve")
    assert done.returncode == 3
    assert "--yes" in done.stderr
    assert str(desk.home / "started") in done.stderr, "the entry is shown all the same"
    assert run("mcp", "approve", "--yes").returncode == 2, "a yes to everything is not taken"
    assert run("mcp", "approve", "--yes", "other").returncode == 5
    assert eligibilities() == {"it": "pending"}
    assert not desk.approvals_file.exists()
    run("tools")
    assert not (desk.home / "started").exists()


@pytest.mark.requirement("CFG-8", "CLI-1")
def test_an_approval_applies_to_exactly_the_shown_entry(desk: Desk) -> None:
    desk.in_project({"it": {"command": "p", "args": ["one"]}})
    shown = run("mcp", "approve", "--yes", "it", "--json")
    assert json.loads(shown.stdout) == {"servers": [{"name": "it", "approval": "approved"}]}
    assert eligibilities() == {"it": "ready"}
    assert desk.approvals_file.stat().st_mode & 0o777 == 0o600
    desk.in_project({"it": {"command": "p", "args": ["two"], "env": {"NEW": "x"}}})
    reason, step = reason_of(run("mcp", "list", "--no-health").stdout, "it")
    assert "changed" in reason
    assert step == "dragoman mcp approve it"
    code, output = answered(b"y")
    assert code == 0
    for line in ('- args: ["one"]', '+ args: ["two"]', '+ env: {"NEW":"x"}', '  command: "p"'):
        assert line in output
    assert eligibilities() == {"it": "ready"}


@pytest.mark.requirement("CFG-8")
def test_a_project_cannot_approve_itself(desk: Desk) -> None:
    yes = {"enabledMcpjsonServers": ["it"], "enableAllProjectMcpServers": True}
    desk.in_project({"it": {"command": "p"}}, **yes)
    desk.local({"too": {"command": "q"}}, **yes)
    assert eligibilities() == {"it": "pending", "too": "pending"}
    desk.user({}, enabledMcpjsonServers=["it"])
    assert eligibilities()["it"] == "ready"
    desk.user({}, disabledMcpjsonServers=["it"], enableAllProjectMcpServers=True)
    assert eligibilities()["it"] == "rejected"


@pytest.mark.requirement("CFG-8")
def test_the_first_command_in_a_terminal_asks_for_approval(desk: Desk) -> None:
    desk.in_project({"it": WELL_BEHAVED, "later": touches(desk.home / "started")})
    code, output = answered(b"y", b"\x04", words=("tools",))
    assert code == 0, output
    assert "mcp__it__echo" in output
    assert not (desk.home / "started").exists()
    assert eligibilities() == {"it": "ready", "later": "pending"}


def test_that_no_entry_needs_approval_is_reported() -> None:
    done = run("mcp", "approve")
    assert (done.returncode, done.stderr) == (0, "")
    assert "No server needs approval" in done.stdout


@pytest.mark.requirement("CFG-9")
def test_the_administrators_variables_are_confirmed_once(desk: Desk) -> None:
    desk.user({"it": {"command": "p", "args": ["${COMPANY}"]}})
    desk.managed(env={"COMPANY": "x", "MCP_TIMEOUT": "1234"})
    listed = run("mcp", "list", "--no-health")
    assert "dragoman mcp approve" in listed.stdout
    assert eligibilities() == {"it": "broken"}
    code, output = answered(b"y")
    assert code == 0
    assert "COMPANY" in output
    assert "MCP_TIMEOUT" not in output, "settings of the table need no yes"
    assert eligibilities() == {"it": "ready"}
    desk.managed(env={"COMPANY": "y", "MCP_TIMEOUT": "1234"})
    assert eligibilities() == {"it": "broken"}, "another value is asked again"


@pytest.mark.requirement("CFG-8", "CLI-1")
def test_choices_of_a_project_can_be_reset(desk: Desk) -> None:
    desk.in_project({"a": {"command": "a"}, "b": {"command": "b"}})
    assert run("mcp", "approve", "--yes", "a").returncode == 0
    assert run("mcp", "approve", "--no", "b").returncode == 0
    assert eligibilities() == {"a": "ready", "b": "rejected"}
    assert "2 decisions" in run("mcp", "reset-project-choices").stdout
    assert eligibilities() == {"a": "pending", "b": "pending"}
    assert documents("reset-project-choices") == {"forgotten": 0}


def test_choices_of_other_projects_are_kept(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.in_project({"a": {"command": "a"}})
    assert run("mcp", "approve", "--yes", "a").returncode == 0
    other = desk.home / "other"
    desk.write(other / ".mcp.json", {"a": {"command": "a"}})
    monkeypatch.chdir(other)
    assert eligibilities() == {"a": "pending"}, "an answer is about one file"
    assert documents("reset-project-choices") == {"forgotten": 0}
    monkeypatch.chdir(desk.project)
    assert eligibilities() == {"a": "ready"}


# --- remove ---


@pytest.mark.requirement("CLI-1")
def test_a_server_is_removed_from_its_file(desk: Desk) -> None:
    desk.user({"a": {"command": "a"}, "b": {"command": "b"}}, theme="dark")
    done = run("mcp", "remove", "a")
    assert done.returncode == 0
    assert str(desk.user_file) in done.stdout
    assert read(desk.user_file) == {"mcpServers": {"b": {"command": "b"}}, "theme": "dark"}
    assert run("mcp", "add", "-s", "project", "c", "c").returncode == 0
    removed = {"removed": "c", "scope": "project", "file": str(desk.project_file), "problem": None}
    assert documents("remove", "c") == removed
    desk.in_project({"c": {"command": "c", "args": []}})
    assert eligibilities()["c"] == "pending", "the answer went with the server"


@pytest.mark.requirement("CLI-1")
def test_a_name_in_several_scopes_needs_the_scope(desk: Desk) -> None:
    desk.user({"it": {"command": "a"}})
    desk.in_project({"it": {"command": "b"}})
    done = run("mcp", "remove", "it")
    assert done.returncode == 3
    assert "project, user" in done.stderr
    assert "-s" in done.stderr
    assert run("mcp", "remove", "it", "-s", "local").returncode == 5
    assert run("mcp", "remove", "it", "-s", "user").returncode == 0
    assert read(desk.user_file)["mcpServers"] == {}
    assert "it" in read(desk.project_file)["mcpServers"]


def test_entries_of_other_scopes_cannot_be_removed(desk: Desk) -> None:
    desk.write(desk.plugin_file("p"), {"it": {"command": "p"}})
    before = desk.plugin_file("p").read_text()
    for name in ("it", "nothing"):
        done = run("mcp", "remove", name)
        assert done.returncode == 5
        assert f"no server '{name}'" in done.stderr
    assert desk.plugin_file("p").read_text() == before


@pytest.mark.requirement("CLI-1")
def test_a_long_line_of_output_is_shown_with_the_advice_at_its_end(desk: Desk):
    said = f"Error: {'x' * 240}: set API_URL"
    desk.user({"it": {"command": "sh", "args": ["-c", f"echo '{said}' >&2; exit 1"]}})
    for command in (["list"], ["get", "it"]):
        done = run("mcp", *command)
        assert f"    {said}\n" in done.stdout
