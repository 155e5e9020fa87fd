"""`dragoman tools` and `dragoman call`: what goes in, what comes out, and where."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import exit_codes
from dragoman.version import VERSION
from tests.e2e.command import DRAGOMAN, config, entry
from tests.e2e.forked import in_terminal, run
from tests.servers import stdio_server

ADD = ("call", "mcp__demo__add")
DEMO = ("--mcp-config", "demo")


def test_version_and_help() -> None:
    assert VERSION in run("--version").stdout
    overview = run("--help").stdout
    for command in ("call", "demo", "tools"):
        assert command in overview
        helped = run(command, "--help")
        assert helped.returncode == 0
        assert helped.stdout.startswith(f"Usage: dragoman {command}")
        assert helped.stdout == run(command, "-h").stdout


def test_the_version_is_printed_without_loading_other_modules() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "dragoman", "--version"],
        capture_output=True,
        text=True,
        timeout=40,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "dragoman.cli.main" in loaded
    assert not loaded & {"asyncio", "jsonschema_rs", "msgspec", "dragoman.host", "pydantic", "aiohttp"}


def test_servers_are_read_from_a_file_a_text_or_the_word_demo(tmp_path: Path) -> None:
    text = config(files=entry("serves"))
    file = tmp_path / "servers.json"
    file.write_text(text)
    from_file = run("tools", "--mcp-config", file, "--json")
    from_text = run("tools", "--mcp-config", text, "--json")
    assert from_file.returncode == from_text.returncode == 0
    assert from_file.stdout == from_text.stdout
    several = json.loads(run("tools", "--mcp-config", file, *DEMO, "--json").stdout)
    assert [server["name"] for server in several["servers"]] == ["files", "demo"]
    only = json.loads(run("tools", "--mcp-config", file, *DEMO, "--server", "demo", "--json").stdout)
    assert [server["name"] for server in only["servers"]] == ["demo"]


def test_a_later_source_replaces_a_server_of_the_same_name() -> None:
    broken = config(demo={"command": "no-such-program"})
    assert run(*ADD, "a=1", "b=2", "--mcp-config", broken, *DEMO).stdout == '3\n{\n  "sum": 3\n}\n'
    assert run(*ADD, "a=1", "b=2", *DEMO, "--mcp-config", broken).returncode == 4


def test_tools_are_listed_with_what_they_do() -> None:
    done = run("tools", *DEMO)
    assert (done.returncode, done.stderr) == (0, "")
    assert "demo  5 tools, 2026-07-28" in done.stdout
    assert "mcp__demo__add" in done.stdout
    assert "Adds two numbers." in done.stdout


def test_the_json_of_tools_has_stable_keys() -> None:
    document = json.loads(run("tools", *DEMO, "--json").stdout)
    assert list(document) == ["servers", "tools"]
    (server,) = document["servers"]
    assert set(server) == {
        "name", "scope", "source", "transport", "status", "reason", "protocolVersion", "serverInfo",
        "toolCount", "problems", "error",
    }  # fmt: skip
    assert (server["status"], server["toolCount"], server["error"]) == ("connected", 5, None)
    assert set(document["tools"][0]) == {
        "name", "server", "tool", "title", "description", "inputSchema", "annotations",
    }  # fmt: skip


def test_the_json_of_a_call_has_stable_keys() -> None:
    outcome = json.loads(run(*ADD, "a=1", "b=2", *DEMO, "--json").stdout)
    assert set(outcome) == {
        "server", "tool", "isError", "error", "text", "content", "structured", "meta", "durationSeconds",
    }  # fmt: skip
    assert (outcome["text"], outcome["structured"], outcome["isError"]) == ("3", {"sum": 3}, False)
    assert outcome["content"] == [{"type": "text", "text": "3"}]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("call", "mcp__gone__x", "--mcp-config", config(gone={"command": "no-such-program"})), 4),
        (("call", "mcp__demo__x", *DEMO), 5),
        (("call", "mcp__demo__count", "to=9", "seconds=50", "--timeout", "0.1", *DEMO), 7),
        (("call", "mcp__demo__add", "a=1", *DEMO), 2),
        (("call", "mcp__demo__add", "--mcp-config", "{]"), 3),
        (("tools", "--mcp-config", "{]"), 3),
    ],
    ids=["not-connected", "unknown-tool", "timeout", "invalid-arguments", "call-config", "tools-config"],
)
def test_with_json_an_error_too_is_a_document(words: tuple[str, ...], code: int) -> None:
    done = run(*words, "--json")
    assert done.returncode == code
    error = json.loads(done.stdout)["error"]
    assert {"code", "message", "hint"} <= set(error)
    if code == 4:
        assert {"phase", "cause", "exitCode", "stderrTail"} <= set(error)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("word=42", {"word": "42"}),
        ("word=true", {"word": "true"}),
        ('word={"a": 1}', {"word": '{"a": 1}'}),
        ("word=a=b", {"word": "a=b"}),
        ("word=", {"word": ""}),
        ("count=42", {"count": 42}),
        ("share=0.5", {"share": 0.5}),
        ("flag=true", {"flag": True}),
        ("list=[1, 2]", {"list": [1, 2]}),
        ("free=42", {"free": 42}),
        ("free=plain words", {"free": "plain words"}),
        ("new=null", {"new": None}),
        ('{"word": "whole", "count": 1}', {"word": "whole", "count": 1}),
    ],
)
def test_values_are_typed_by_the_tools_schema(word: str, value: dict[str, Any]) -> None:
    done = run("call", "mcp__e2e__echo", word, "--mcp-config", config(e2e=entry("serves")), "--json")
    assert json.loads(done.stdout)["structured"] == value


def test_results_go_to_stdout_and_errors_to_stderr() -> None:
    good = run(*ADD, "a=1", "b=2", *DEMO)
    assert (good.stdout, good.stderr) == ('3\n{\n  "sum": 3\n}\n', "")
    failed = run("call", "mcp__demo__fail", *DEMO)
    assert failed.stdout == ""
    assert "the deployment was rejected" in failed.stderr
    mixed = run("tools", *DEMO, "--mcp-config", config(gone={"command": "no-such-program"}))
    assert "mcp__demo__add" in mixed.stdout
    assert "no-such-program" not in mixed.stdout
    assert "no-such-program" in mixed.stderr
    assert "hint:" in mixed.stderr


def test_progress_is_shown_to_people_only() -> None:
    count = ("call", "mcp__demo__count", "to=3", "seconds=0.1", *DEMO)
    piped = run(*count)
    assert (piped.stdout, piped.stderr) == ("counted to 3\n", "")
    _, output = in_terminal(*count)
    assert "━" in output
    assert "3 of 3" in output


def test_a_failed_server_is_shown_with_reason_last_output_and_next_step() -> None:
    done = run("tools", "--mcp-config", config(doomed=entry("dies")))
    assert done.returncode == 4
    assert "code 3" in done.stderr
    assert "last words" in done.stderr
    assert "hint:" in done.stderr


def test_a_pipe_closed_early_causes_no_error_output(tmp_path: Path) -> None:
    command = [DRAGOMAN, "call", "mcp__demo__table", "rows=100000", *DEMO]
    with (
        (tmp_path / "stderr").open("wb") as stderr,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == b"number,service,region,seconds\n"
        process.stdout.close()
        process.wait(timeout=40)
    assert (tmp_path / "stderr").read_text() == ""


@pytest.mark.parametrize("reader", ["true", "head -c 1"])
def test_a_closed_pipe_causes_no_traceback(reader: str) -> None:
    line = f"{shlex.quote(str(DRAGOMAN))} tools --json --mcp-config demo | {reader}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_is_reported_in_one_sentence() -> None:
    line = f"{shlex.quote(str(DRAGOMAN))} tools --json --mcp-config demo > /dev/full"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "could not be written" in done.stderr


def test_a_server_that_exits_during_a_call_is_reported_with_its_last_stderr_output():
    done = run("call", "mcp__s__act", "--mcp-config", config(s=stdio_server("exits.py", "call", "7")))

    assert (done.returncode, done.stdout) == (exit_codes.NOT_CONNECTED, "")
    assert done.stderr == (
        "error: the connection to s was lost: it exited with code 7; the request may have run\n"
        "  last output:\n"
        "    opening the database\n"
        "    \\x1b[31mdisk is \ufffd full\\x1b[0m\n"
    )


def test_a_call_shows_which_servers_it_waits_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MCP_TIMEOUT", "1000")
    code, shown = in_terminal("call", "act", "--mcp-config", config(s={"command": "sleep", "args": ["60"]}))

    assert code == exit_codes.NOT_FOUND
    assert "0 of 1 servers checked, waiting for s" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mpc", "list"), "No such command 'mpc'. Did you mean 'mcp'?"),
        (("mcp", "lst"), "No such command 'lst'. Did you mean 'list'?"),
        (("mcp", "tools"), "No such command 'tools'. Did you mean 'dragoman tools'?"),
        (("mcp", "zzz"), "No such command 'zzz'.\n"),
    ],
)
def test_a_misspelt_command_is_answered_with_the_nearest_one(words: tuple[str, ...], said: str):
    done = run(*words)
    assert done.returncode == exit_codes.USAGE
    assert said in done.stderr


def test_one_server_that_needs_approval_cannot_be_listed_and_the_next_step_is_named(home: Path):
    (home / "work" / ".mcp.json").write_text(json.dumps({"mcpServers": {"box": {"command": "true"}}}))
    done = run("tools", "box")
    assert done.returncode == exit_codes.NOT_CONNECTED
    assert "    dragoman mcp approve box\n" in done.stdout
    assert run("tools").returncode == exit_codes.OK


def test_a_program_missing_from_the_path_is_reported_when_it_is_added():
    assert "! there is no program 'npxx' on PATH\n" in run("mcp", "add", "box", "npxx", "-y", "x").stderr
    assert run("mcp", "add", "sound", "sh").stderr == ""
