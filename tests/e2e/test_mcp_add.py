"""`dragoman mcp add` and `add-json`: one line, one entry in the right file, and nothing else changed."""

import json
import os
import re
import select
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman import paths
from tests.e2e.command import LIMIT_SECONDS, config, entry
from tests.e2e.forked import Terminal, run
from tests.integration.desk import WELL_BEHAVED, Desk, other_well_behaved
from tests.servers import SERVER_PROGRAMS, stdio_server

pytestmark = pytest.mark.slow

CALM_WORDS = (WELL_BEHAVED["command"], *WELL_BEHAVED["args"])
SECRET = "hunter2-very-secret"


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


def added(desk: Desk, name: str, *, scope: str = "local") -> Any:
    return read(file_of(desk, scope))["mcpServers"][name]


def file_of(desk: Desk, scope: str) -> Path:
    return {"local": desk.local_file, "user": desk.user_file, "project": desk.project_file}[scope]


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def assert_nothing_written(desk: Desk) -> None:
    there = [file_of(desk, scope) for scope in ("local", "user", "project")]
    assert not [path for path in there if path.exists()]


# --- what is written ---


@pytest.mark.requirement("CLI-1")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("it", "npx", "-y", "srv", "/tmp"), {"command": "npx", "args": ["-y", "srv", "/tmp"]}),
        (("it", "--", "npx", "-y", "srv", "/tmp"), {"command": "npx", "args": ["-y", "srv", "/tmp"]}),
        (("it", "-e", "A=1", "npx", "-y"), {"command": "npx", "args": ["-y"], "env": {"A": "1"}}),
        (("it", "-e", "A=1", "--", "npx", "-y"), {"command": "npx", "args": ["-y"], "env": {"A": "1"}}),
        (("--env=A=", "it", "-eB=x=y", "p"), {"command": "p", "args": [], "env": {"A": "", "B": "x=y"}}),
        (("it", "p", "--json", "--", "-s", "user"), {"command": "p", "args": ["--json", "--", "-s", "user"]}),
        (("it", "p", "", " a b ", "https://x/"), {"command": "p", "args": ["", " a b ", "https://x/"]}),
    ],
)
def test_a_command_is_written_as_typed(desk: Desk, words: tuple[str, ...], expected: Any) -> None:
    done = run("mcp", "add", *words)
    assert done.returncode == 0, done.stderr
    assert added(desk, "it") == expected


@pytest.mark.requirement("CLI-1")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("https://example.com/mcp",), {"type": "http", "url": "https://example.com/mcp"}),
        (("https://example.com/a/sse/?b=1",), {"type": "sse", "url": "https://example.com/a/sse/?b=1"}),
        (("https://example.com/not-sse-x",), {"type": "http", "url": "https://example.com/not-sse-x"}),
        (("ws://localhost:9/x",), {"type": "ws", "url": "ws://localhost:9/x"}),
        (("wss://example.com/sse",), {"type": "ws", "url": "wss://example.com/sse"}),
        (("-t", "sse", "https://example.com/"), {"type": "sse", "url": "https://example.com/"}),
        (("https://example.com/sse", "-t", "http"), {"type": "http", "url": "https://example.com/sse"}),
        (("https://${HOME_HOST}/mcp",), {"type": "http", "url": "https://${HOME_HOST}/mcp"}),
        (
            ("https://example.com/mcp", "-H", "Authorization: Bearer ${T}", "--header", "X-Time:12:30"),
            {
                "type": "http",
                "url": "https://example.com/mcp",
                "headers": {"Authorization": "Bearer ${T}", "X-Time": "12:30"},
            },
        ),
    ],
)
def test_a_url_sets_the_transport_and_accepts_later_options(
    desk: Desk, words: tuple[str, ...], expected: Any
) -> None:
    done = run("mcp", "add", "api", *words)
    assert done.returncode == 0, done.stderr
    assert added(desk, "api") == expected


@pytest.mark.requirement("CFG-4", "CLI-1")
def test_a_url_may_begin_with_a_variable_if_the_transport_is_given(desk: Desk) -> None:
    url = "${API_BASE:-https://example.com}/mcp"
    done = run("mcp", "add", "-t", "http", "api", url)
    assert done.returncode == 0, done.stderr
    assert added(desk, "api") == {"type": "http", "url": url}


@pytest.mark.requirement("CFG-2", "CLI-1")
@pytest.mark.parametrize(
    ("words", "scope", "mode"),
    [
        ((), "local", 0o600),
        (("--scope=user",), "user", 0o600),
        (("-sproject",), "project", 0o644),
    ],
)
def test_each_scope_has_its_file_and_its_mode(
    desk: Desk, words: tuple[str, ...], scope: str, mode: int
) -> None:
    done = run("mcp", "add", *words, "it", "p", umask=0o022)
    assert done.returncode == 0, done.stderr
    path = file_of(desk, scope)
    assert str(path) in done.stdout
    assert path.stat().st_mode & 0o777 == mode
    others = {"local", "user", "project"} - {scope}
    assert not [other for other in others if file_of(desk, other).exists()]


@pytest.mark.requirement("CFG-2")
def test_the_configuration_folder_can_be_moved(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_CONFIG_DIR", str(home / "elsewhere"))
    assert run("mcp", "add", "-s", "user", "it", "p").returncode == 0
    assert read(home / "elsewhere" / "settings.json")["mcpServers"] == {"it": {"command": "p", "args": []}}
    assert (home / "elsewhere").stat().st_mode & 0o777 == 0o700
    assert not (home / ".dragoman").exists()


# --- git ---


def git(*words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", *identity, *words], capture_output=True, text=True, timeout=30, check=True
    ).stdout


@pytest.mark.requirement("CFG-2", "CLI-1")
def test_a_local_server_is_kept_out_of_git(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    git("init", "-q")
    (desk.project / "deep" / "down").mkdir(parents=True)
    monkeypatch.chdir(desk.project / "deep" / "down")
    assert run("mcp", "add", "it", *CALM_WORDS).returncode == 0
    assert git("status", "--porcelain", "--untracked-files=all") == ""
    assert added(desk, "it") == WELL_BEHAVED, "it belongs to the whole project, not to the folder below"
    assert run("call", "mcp__it__echo", "message=hello").stdout == "hello\n"


@pytest.mark.requirement("CFG-2")
def test_a_local_server_is_kept_out_of_git_even_if_the_project_ignores_other_things_there(desk: Desk) -> None:
    git("init", "-q")
    desk.local_file.parent.mkdir()
    (desk.local_file.parent / ".gitignore").write_text("cache/\n")
    git("add", ".")
    git("commit", "-qm", "first")
    assert run("mcp", "add", "-e", f"TOKEN={SECRET}", "it", "p").returncode == 0
    assert "settings.local.json" not in git("status", "--porcelain", "--untracked-files=all")


# --- what is refused ---


@pytest.mark.requirement("CLI-1")
@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "NAME"),
        (("x",), "COMMAND_OR_URL"),
        (("--frob", "x", "p"), "--frob"),
        (("-s", "team", "x", "p"), "team"),
        (("-t", "pigeon", "x", "https://example.com"), "pigeon"),
        (("-t", "http", "x", "p"), "URL"),
        (("-t", "http", "x", "ws://example.com/"), "http://"),
        (("x", "https://"), "host"),
        (("x", "https://exa mple.com"), "whitespace"),
        (("x", "https://example.com:99999/"), "port"),
        (("x", f"https://me:{SECRET}@example.com/"), "password"),
        (("x", "ftp://example.com/mcp"), "http"),
        (("x", "https://example.com", "more"), "no further arguments"),
        (("x", "https://example.com", "-H", "nocolon"), "Key: Value"),
        (("x", "https://example.com", "-H", ": value"), "Key: Value"),
        (("x", "https://example.com", "-H", "two words: value"), "header"),
        (("x", "https://example.com", "-H", f"A: one\n{SECRET}"), "header"),
        (("x", "https://example.com", "-e", "A=b"), "--env"),
        (("x", "https://example.com", "--callback-port", "70000"), "65535"),
        (("x", "https://example.com", "--client-secret"), "--client-id"),
        (("x", "https://example.com", "--client-id", "me", "--client-secret"), "MCP_CLIENT_SECRET"),
        (("-H", "A: b", "x", "p"), "URL"),
        (("--client-id", "me", "x", "p"), "URLs only"),
        (("--callback-port", "8123", "x", "p"), "URLs only"),
        (("-e", "nothing", "x", "p"), "KEY=VALUE"),
        (("-e", f"={SECRET}", "x", "p"), "KEY=VALUE"),
    ],
)
def test_invalid_input_is_named_and_nothing_is_written(
    desk: Desk, words: tuple[str, ...], named: str
) -> None:
    done = run("mcp", "add", *words)
    assert done.returncode in (2, 3), (done.stdout, done.stderr)
    assert named in done.stderr
    assert SECRET not in done.stderr
    assert "('" not in done.stderr, "no Python in a message"
    assert done.stdout == ""
    assert_nothing_written(desk)


@pytest.mark.requirement("CLI-1")
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("-e", "TOKEN", "x", "p"), "-e/--env TOKEN: expected KEY=VALUE"),
        (("--env=A=1", "--env", "API_KEY", "x", "p"), "-e/--env API_KEY: expected KEY=VALUE"),
        (("-e", SECRET, "x", "p"), "-e/--env: expected KEY=VALUE"),
        (("-e", "nothing", "x", "p"), "-e/--env: expected KEY=VALUE"),
        (("-e", "AKIA0123456789ABCDEF", "x", "p"), "-e/--env: expected KEY=VALUE"),
        (("x", "https://example.com", "-H", "NoColon"), '-H/--header NoColon: expected "Key: Value"'),
        (("x", "https://example.com", "-H", "X-Api-Key"), '-H/--header X-Api-Key: expected "Key: Value"'),
        (("x", "https://example.com", "-H", f"Bearer {SECRET}"), '-H/--header: expected "Key: Value"'),
    ],
)
def test_an_option_without_a_value_is_named_without_a_possible_secret(
    desk: Desk, words: tuple[str, ...], complaint: str
) -> None:
    done = run("mcp", "add", *words)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"Error: {complaint}"
    assert_nothing_written(desk)


@pytest.mark.requirement("CLI-1")
@pytest.mark.parametrize("scope", ["local", "project"])
def test_a_command_path_without_a_program_is_reported(desk: Desk, scope: str) -> None:
    done = run("mcp", "add", "-s", scope, "it", "./nothere.py")
    assert done.returncode == 0, done.stderr
    place = f"in {desk.project}, where it starts"
    assert flat(done.stderr) == f"! there is no program './nothere.py' {place}"
    (desk.project / "there.py").write_text("")
    done = run("mcp", "add", "-s", scope, "other", "./there.py")
    assert flat(done.stderr) == f"! there is no program that can be executed './there.py' {place}"
    (desk.project / "there.py").chmod(0o755)
    done = run("mcp", "add", "-s", scope, "third", "./there.py")
    assert flat(done.stderr) == "! it is the same server as 'other' in the same file; both are used"


@pytest.mark.requirement("CLI-1")
def test_a_command_path_without_a_program_is_reported_with_the_folder_of_its_scope(desk: Desk) -> None:
    (desk.project / "there.py").write_text("")
    (desk.project / "there.py").chmod(0o755)
    done = run("mcp", "add", "-s", "user", "it", "./there.py")
    own = paths.server_folder("it")
    assert flat(done.stderr) == f"! there is no program './there.py' in {own}, where it starts"
    done = run("mcp", "add", "-s", "user", "other", str(desk.project / "there.py"))
    assert done.stderr == ""
    done = run("mcp", "add", "--json", "-s", "user", "third", "/nowhere/at/all")
    assert json.loads(done.stdout)["notes"] == ["there is no program '/nowhere/at/all'"]


def flat(text: str) -> str:
    """The text without the line ends and indentation of wrapped lines."""
    return " ".join(text.split())


@pytest.mark.requirement("CLI-1")
@pytest.mark.parametrize("name", ["", "two words", "../x", "é", "x" * 65])
def test_a_name_must_be_plain(desk: Desk, name: str) -> None:
    done = run("mcp", "add", name, "p")
    assert done.returncode == 3
    assert "cannot be a server's name" in done.stderr
    assert "64" in done.stderr
    assert_nothing_written(desk)


def test_a_name_of_64_characters_is_accepted(desk: Desk) -> None:
    assert run("mcp", "add", "x" * 60 + "-_9Z", "p").returncode == 0
    assert list(read(desk.local_file)["mcpServers"]) == ["x" * 60 + "-_9Z"]


@pytest.mark.requirement("CLI-1")
def test_an_existing_server_is_replaced_only_by_force(desk: Desk) -> None:
    desk.user({"a": {"command": "one"}, "b": {"command": "two"}})
    before = desk.user_file.read_text()
    done = run("mcp", "add", "-s", "user", "a", "other")
    assert done.returncode == 3
    assert "already" in done.stderr
    assert "--force" in done.stderr
    assert desk.user_file.read_text() == before
    assert run("mcp", "add", "-s", "user", "--force", "a", "other").returncode == 0
    servers = read(desk.user_file)["mcpServers"]
    assert list(servers.items()) == [("a", {"command": "other", "args": []}), ("b", {"command": "two"})]


def test_the_same_name_in_another_scope_is_accepted_and_reported(desk: Desk) -> None:
    desk.user({"a": {"command": "one"}})
    done = run("mcp", "add", "a", "other")
    assert done.returncode == 0
    assert "replaces the entry of" in done.stderr
    assert str(desk.user_file) in done.stderr
    higher = run("mcp", "add", "-s", "user", "--force", "a", "third")
    assert "is used instead" in higher.stderr
    assert str(desk.local_file) in higher.stderr


@pytest.mark.requirement("CFG-7", "CLI-1")
@pytest.mark.parametrize("scope", ["local", "user", "project"])
def test_an_entry_refused_by_policy_is_not_written(desk: Desk, scope: str) -> None:
    desk.managed(deniedMcpServers=[{"serverCommand": ["npx", "*"]}])
    done = run("mcp", "add", "--json", "-s", scope, "it", "npx", "srv")
    assert done.returncode == 3
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "policy"
    assert str(desk.managed_file) in error["message"]
    forced = run("mcp", "add-json", "-s", scope, "--force", "it", '{"command": "npx", "args": ["srv"]}')
    assert forced.returncode == 3
    assert_nothing_written(desk)


@pytest.mark.requirement("CFG-7")
def test_policy_judges_the_written_entry_even_if_a_variable_is_not_set(desk: Desk) -> None:
    words = ("mcp", "add", "api", "https://wiki.company.com/mcp", "-H", "Authorization: Bearer ${NOT_SET}")
    desk.managed(deniedMcpServers=[{"serverUrl": "https://wiki.company.com/*"}])
    assert run(*words).returncode == 3
    assert_nothing_written(desk)
    desk.managed(allowedMcpServers=[{"serverUrl": "https://*.company.com/*"}])
    done = run(*words)
    assert done.returncode == 0, done.stderr


def test_a_client_secret_is_stored_and_the_file_refers_to_it(desk: Desk) -> None:
    words = ("mcp", "add-json", "-s", "project", "api")
    entry = '{"url": "https://example.com/", "oauth": {"clientId": "me", "clientSecret": "%s"}}'
    done = run(*words, entry % SECRET)
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    written = json.loads(desk.project_file.read_text())["mcpServers"]["api"]["oauth"]["clientSecret"]
    assert re.fullmatch(r"secret-store:[0-9a-f]{16}", written)
    shown = run("mcp", "get", "api", "--no-health")
    assert SECRET not in shown.stdout + shown.stderr
    assert run(*words, "--force", entry % "${S}").returncode == 0


def test_options_passed_to_the_server_are_reported(desk: Desk) -> None:
    done = run("mcp", "add", "it", "p", "-s", "user")
    assert done.returncode == 0
    assert "-s is passed to the server" in done.stderr
    assert added(desk, "it")["args"] == ["-s", "user"]


# --- variables and secrets ---


@pytest.mark.requirement("CFG-4", "CLI-1")
def test_variables_are_kept_as_written_and_unset_ones_reported(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IS_SET", SECRET)
    words = ("-e", "A=${IS_SET}", "-e", "B=${NOT_SET}", "-e", "C=${HAS_DEFAULT:-x}")
    done = run("mcp", "add", *words, "it", "p", "--key=${IS_SET}")
    assert done.returncode == 0
    assert "NOT_SET" in done.stderr
    assert "IS_SET" not in done.stderr.replace("NOT_SET", "")
    assert "HAS_DEFAULT" not in done.stderr
    env = {"A": "${IS_SET}", "B": "${NOT_SET}", "C": "${HAS_DEFAULT:-x}"}
    assert added(desk, "it") == {"command": "p", "args": ["--key=${IS_SET}"], "env": env}
    assert SECRET not in desk.local_file.read_text()


@pytest.mark.requirement("CFG-4")
def test_variables_of_the_persons_own_file_count_as_set(desk: Desk) -> None:
    desk.user(env={"MINE": "value"})
    done = run("mcp", "add", "--check", "-e", "A=${MINE}", "it", *CALM_WORDS)
    assert done.returncode == 0, done.stderr
    assert "MINE" not in done.stderr


SECRETIVE = (
    ("-e", f"TOKEN={SECRET}", "it", "p", "--api-key", SECRET, f"--password={SECRET}"),
    ("it", f"https://example.com/mcp?token={SECRET}", "-H", f"A: Bearer {SECRET}"),
)


@pytest.mark.slow
@pytest.mark.parametrize("words", SECRETIVE, ids=["command", "url"])
def test_secrets_are_written_but_never_shown(desk: Desk, words: tuple[str, ...]) -> None:
    shown = [run("mcp", "add", "--json", *words)]
    assert SECRET in desk.local_file.read_text()
    for command in (
        ("mcp", "list", "--no-health"),
        ("mcp", "get", "it", "--no-health"),
        ("mcp", "get", "it", "--no-health", "--json"),
        ("config", "explain"),
        ("config", "explain", "it", "--json"),
    ):
        shown.append(run(*command))
    for done in shown:
        assert "Traceback" not in done.stderr
        assert SECRET not in done.stdout + done.stderr


class Prompting(Terminal):
    def wait_for(self, text: bytes) -> None:
        """What is typed before the terminal has stopped showing keys is thrown away."""
        while text not in self._output:
            assert select.select([self._master], [], [], LIMIT_SECONDS)[0], self._output
            self._output += os.read(self._master, 65536)


# --- the file around it ---

ODD_FILE = """{
\t"theme" : "dark",   "$schema": "https://example.com/x.json",
\t"mcpServers": {
\t\t"first": { "command":"one", "args":[ "a","b" ], "frob": {"x": 1.50} }
\t},
\t"permissions": {"allow": ["mcp__first"]}, "z": null
}
"""


def without_servers(document: dict[str, Any]) -> list[tuple[str, Any]]:
    """The other keys, in their order."""
    return [(key, value) for key, value in document.items() if key != "mcpServers"]


@pytest.mark.requirement("CLI-1")
@pytest.mark.parametrize("text", [ODD_FILE, ODD_FILE.replace("\n", "\r\n"), '{"theme":"dark"}'])
def test_other_content_of_the_file_is_unchanged(desk: Desk, text: str) -> None:
    desk.user_file.parent.mkdir()
    desk.user_file.write_bytes(text.encode())
    assert run("mcp", "add", "-s", "user", "new", "p").returncode == 0
    after = desk.user_file.read_bytes().decode()
    assert json.loads(after)["mcpServers"]["new"] == {"command": "p", "args": []}
    assert without_servers(json.loads(after)) == without_servers(json.loads(text))
    for line in text.splitlines():
        assert line.strip("{}") in after
    assert run("mcp", "remove", "new").returncode == 0
    assert "first" not in text or desk.user_file.read_bytes() == text.encode()


@pytest.mark.parametrize("text", ['{"mcpServers": {', "// hello\n{}", '{"mcpServers": []}'])
def test_an_unreadable_file_is_never_overwritten(desk: Desk, text: str) -> None:
    desk.project_file.write_text(text)
    done = run("mcp", "add", "-s", "project", "it", "p")
    assert done.returncode == 3
    assert f"{desk.project_file}, line 1" in done.stderr or f"{desk.project_file}, line 2" in done.stderr
    assert desk.project_file.read_text() == text


@pytest.mark.slow
def test_concurrent_adds_are_all_stored(desk: Desk) -> None:
    names = [f"server-{number}" for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        adding = [pool.submit(run, "mcp", "add", "-s", "user", name, "p", name) for name in names]
    done = [each.result() for each in adding]
    assert [each.returncode for each in done] == [0] * 8
    assert sorted(read(desk.user_file)["mcpServers"]) == names


# --- trying it first ---


@pytest.mark.requirement("CLI-1")
def test_a_server_that_works_is_checked_and_added(desk: Desk) -> None:
    done = run("mcp", "add", "--check", "it", *CALM_WORDS)
    assert done.returncode == 0, done.stderr
    assert "; connected, 1 tool\n" in done.stdout
    assert added(desk, "it") == WELL_BEHAVED
    document = json.loads(run("mcp", "add", "--check", "--json", "--force", "it", *CALM_WORDS).stdout)
    assert document["toolCount"] == 1


@pytest.mark.requirement("CLI-1")
@pytest.mark.parametrize(
    ("server", "code", "reason"),
    [
        ({"command": "no-such-program", "args": []}, 4, "no-such-program"),
        (entry("dies"), 4, "last words"),
        (entry("refuses"), 4, "refuses"),
        (stdio_server("silent.py"), 4, "0.5"),
    ],
    ids=["missing", "dies", "refuses", "silent"],
)
def test_a_server_that_fails_the_check_is_not_added(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, server: dict[str, Any], code: int, reason: str
) -> None:
    monkeypatch.setenv("MCP_TIMEOUT", "500")
    done = run("mcp", "add", "--check", "refuses", server["command"], *server["args"])
    assert done.returncode == code, done.stderr
    assert reason in done.stderr
    assert done.stdout == ""
    assert_nothing_written(desk)


# --- what programs read, and what comes of it ---


@pytest.mark.requirement("CLI-1")
def test_the_json_of_add_has_stable_keys(desk: Desk) -> None:
    done = run("mcp", "add", "--json", "-e", "A=${NOT_SET}", "-e", "B=plain", "it", "p")
    assert json.loads(done.stdout) == {
        "added": {
            "name": "it",
            "scope": "local",
            "file": str(desk.local_file),
            "entry": {"command": "p", "args": [], "env": {"A": "${NOT_SET}", "B": "•••"}},
        },
        "unsetVariables": ["NOT_SET"],
        "toolCount": None,
        "notes": [],
    }
    again = run("mcp", "add", "--json", "it", "p")
    assert again.returncode == 3
    assert set(json.loads(again.stdout)["error"]) >= {"code", "message", "hint"}


@pytest.mark.requirement("CLI-1")
@pytest.mark.parametrize("scope", ["local", "user", "project"])
def test_an_added_server_is_used_without_options(scope: str) -> None:
    assert run("mcp", "add", "-s", scope, "it", *CALM_WORDS).returncode == 0
    tools = run("tools")
    assert tools.returncode == 0, tools.stderr
    assert "mcp__it__echo" in tools.stdout
    called = run("call", "mcp__it__echo", "message=hello")
    assert (called.returncode, called.stdout) == (0, "hello\n")


def test_the_variables_of_an_entry_reach_the_server_expanded(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npx(desk.home, monkeypatch)
    monkeypatch.setenv("TOKEN", SECRET)
    words = ("-e", "GOT=${TOKEN}", "-e", "DEFAULT=${NOT_SET:-fallback}", "it", "npx", "${NOT_SET:-arg}")
    assert run("mcp", "add", *words).returncode == 0
    assert run("tools").returncode == 0
    seen = read(desk.home / "npx.json")
    assert seen["args"] == ["arg"]
    assert (seen["env"]["GOT"], seen["env"]["DEFAULT"]) == (SECRET, "fallback")
    assert "TOKEN" not in seen["env"], "only what the entry names is passed on"


# --- add-json ---


@pytest.mark.requirement("CLI-1")
@pytest.mark.parametrize(
    "text",
    [
        '{"type":"http","url":"https://example.com/mcp"}',
        '{"url": "https://example.com/mcp", "timeout": 5000, "oauth": {"scopes": ["a", "b"]}}',
        '{"command": "p", "cwd": "/tmp", "disabledTools": ["x"], "protocol": "legacy"}',
        '{"command": "p", "somethingNew": {"deep": [1, 2.5, null, "é"]}}',
    ],
)
def test_a_json_entry_is_written_unchanged(desk: Desk, text: str) -> None:
    done = run("mcp", "add-json", "my-server", text)
    assert done.returncode == 0, done.stderr
    assert added(desk, "my-server") == json.loads(text)
    assert "Added my-server to local" in done.stdout


@pytest.mark.requirement("CLI-1")
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{]", "column"),
        ("[]", "object"),
        ("{}", "command"),
        ('{"type": "pigeon", "url": "https://example.com"}', "pigeon"),
        ('{"command": 5}', "command"),
        ('{"url": "nonsense"}', "url"),
        ('{"command": "p", "protocol": "1999-01-01"}', "1999-01-01"),
        ('{"mcpServers": {"x": {"command": "p"}}}', "command"),
    ],
)
def test_a_json_entry_that_cannot_be_used_is_not_written(desk: Desk, text: str, named: str) -> None:
    done = run("mcp", "add-json", "it", text)
    assert done.returncode in (2, 3)
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert_nothing_written(desk)


def test_add_json_takes_the_options_of_add(desk: Desk) -> None:
    text = json.dumps(WELL_BEHAVED)
    first = run("mcp", "add-json", "it", text, "-s", "user", "--check", "--json")
    assert json.loads(first.stdout)["toolCount"] == 1
    assert run("mcp", "add-json", "it", text, "-s", "user").returncode == 3
    other = json.dumps(other_well_behaved())
    assert run("mcp", "add-json", "it", other, "-s", "user", "--force").returncode == 0
    assert added(desk, "it", scope="user") == other_well_behaved()


# --- the examples everybody copies ---

PROJECT_EXAMPLE = """{
  "mcpServers": {
    "github": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-github"],
      "env": { "GITHUB_TOKEN": "${GITHUB_TOKEN}" }
    },
    "my-api": {
      "type": "sse",
      "url": "https://example.com/mcp/sse",
      "headers": { "Authorization": "Bearer ${API_TOKEN}" }
    }
  }
}
"""
SETTINGS_EXAMPLE = """{
"mcpServers": {
"my-database": {
"command": "npx",
"args": ["@my-org/db-mcp-server"],
"env": { "DB_URL": "postgres://..." }
},
"remote-api": {
"type": "http",
"url": "https://api.example.com/mcp"
}
}
}
"""
POLICY_EXAMPLE = """{
  "allowedMcpServers": [
    { "serverName": "github" },
    { "serverUrl": "https://*.company.com/*" },
    { "serverCommand": ["npx", "-y", "@company/mcp-*"] }
  ],
  "deniedMcpServers": [
    { "serverName": "untrusted" }
  ]
}
"""


def fake_npx(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An `npx` that notes what it was given in `npx.json`, and serves."""
    folder = home / "bin"
    folder.mkdir()
    note, program = home / "npx.json", str(SERVER_PROGRAMS / "well_behaved.py")
    (folder / "npx").write_text(
        f"#!{sys.executable} -SE\n"
        "import json, os, sys\n"
        f"json.dump({{'args': sys.argv[1:], 'env': dict(os.environ)}}, open({str(note)!r}, 'w'))\n"
        f"os.execv({sys.executable!r}, ['python', '-S', '-E', {program!r}])\n"
    )
    (folder / "npx").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


@pytest.mark.requirement("CFG-2", "CFG-4", "CFG-5", "CFG-8")
def test_the_project_example_works_unchanged(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_npx(desk.home, monkeypatch)
    desk.project_file.write_text(PROJECT_EXAMPLE)
    waiting = {
        server["name"]: (server["transport"], server["eligibility"])
        for server in json.loads(run("mcp", "list", "--json").stdout)["servers"]
    }
    assert waiting == {"github": ("stdio", "pending"), "my-api": ("sse", "pending")}
    assert not (desk.home / "npx.json").exists(), "nothing is started before a yes"
    assert run("mcp", "approve", "--yes", "github").returncode == 0
    unset = run("tools")
    assert unset.returncode == 3
    assert "GITHUB_TOKEN" in unset.stderr
    monkeypatch.setenv("GITHUB_TOKEN", SECRET)
    tools = run("tools")
    assert "mcp__github__echo" in tools.stdout
    assert SECRET not in tools.stdout + tools.stderr
    seen = read(desk.home / "npx.json")
    assert seen["args"] == ["-y", "@modelcontextprotocol/server-github"]
    assert seen["env"]["GITHUB_TOKEN"] == SECRET
    assert desk.project_file.read_text() == PROJECT_EXAMPLE


@pytest.mark.requirement("CFG-2", "CFG-5")
def test_the_settings_example_works_unchanged(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_npx(desk.home, monkeypatch)
    desk.user_file.parent.mkdir()
    desk.user_file.write_text(SETTINGS_EXAMPLE)
    servers = json.loads(run("mcp", "list", "--no-health", "--json").stdout)["servers"]
    assert {each["name"]: (each["transport"], each["eligibility"]) for each in servers} == {
        "my-database": ("stdio", "ready"),
        "remote-api": ("http", "ready"),
    }
    assert run("call", "mcp__my-database__echo", "message=rows").stdout == "rows\n"
    seen = read(desk.home / "npx.json")
    assert (seen["args"], seen["env"]["DB_URL"]) == (["@my-org/db-mcp-server"], "postgres://...")


def npx(*args: str) -> dict[str, Any]:
    return {"command": "npx", "args": list(args)}


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(
    ("admitted", "servers"),
    [
        (
            True,
            {
                "wiki": {"url": "https://wiki.company.com/mcp"},
                "deep": {"type": "sse", "url": "https://a.b.company.com:443/x/y"},
                "tools": npx("-y", "@company/mcp-tools"),
                "github": npx("-y", "@company/mcp-github"),
            },
        ),
        (
            False,
            {
                "untrusted": npx("-y", "@company/mcp-tools"),
                "plain": {"url": "http://wiki.company.com/mcp"},
                "suffix": {"url": "https://company.com.evil.example/mcp"},
                "path": {"url": "https://evil.example/x.company.com/"},
                "short": npx("@company/mcp-tools"),
                "long": npx("-y", "@company/mcp-tools", "--call", "sh"),
                "shell": {"command": "sh", "args": ["-c", "npx -y @company/mcp-tools"]},
                # A name proves nothing: where commands are listed, they decide.
                "github": npx("-y", "@modelcontextprotocol/server-github"),
            },
        ),
        (
            False,
            {
                "untrusted": {"url": "https://wiki.company.com/mcp"},
                "github": {"url": "https://evil.example/mcp"},
            },
        ),
    ],
)
def test_the_policy_example_has_its_documented_effect(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, admitted: bool, servers: dict[str, Any]
) -> None:
    fake_npx(desk.home, monkeypatch)
    desk.managed_file.parent.mkdir()
    desk.managed_file.write_text(POLICY_EXAMPLE)
    done = run("mcp", "list", "--no-health", "--json", "--mcp-config", config(**servers))
    eligibilities = {server["name"]: server["eligibility"] for server in json.loads(done.stdout)["servers"]}
    assert eligibilities == dict.fromkeys(servers, "ready" if admitted else "refused")
    name, first = next(iter(servers.items()))
    assert run("mcp", "add-json", name, json.dumps(first)).returncode == (0 if admitted else 3)
    assert desk.local_file.exists() == admitted
