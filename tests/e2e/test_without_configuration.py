"""Servers given on the command line alone, tools by short names, arguments from files, results into files."""

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import exit_codes
from tests.e2e.command import DRAGOMAN, LIMIT_SECONDS, config
from tests.e2e.forked import run
from tests.e2e.person import Person, settings
from tests.servers import stdio_server

DEMO = ("--mcp-config", "demo")
STDIO = ("--stdio", shlex.join([sys.executable, "-m", "dragoman.demo"]))
SUM = {
    "name": "get-sum",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}, "note": {"type": "string"}},
        "required": ["a", "b"],
    },
}


class Answers(BaseHTTPRequestHandler):
    """A small MCP server of revision 2025-06-18."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        match asked["method"]:
            case "initialize":
                result: Any = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "sums", "version": "1"},
                }
            case "tools/list":
                result = {"tools": [SUM]}
            case "tools/call":
                given = asked["params"]["arguments"]
                result = {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}
            case _:
                result = None
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": asked.get("id")}
        body |= {"result": result} if result is not None else {"error": {"code": -32601, "message": "no"}}
        data = json.dumps(body).encode() if "id" in asked else b""
        self.send_response(200 if data else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.send_error(405)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/mcp"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_url_is_used_as_a_server(url: str) -> None:
    called = run("call", url, "get-sum", "a=1", "b=2")
    assert (called.returncode, called.stdout) == (exit_codes.OK, "3\n"), called.stderr
    listed = run("tools", url)
    assert listed.returncode == exit_codes.OK
    assert "get-sum(a: number, b: number, note?: string)" in listed.stdout
    assert run("tools", "--mcp-config", url).stdout == listed.stdout


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("call", *STDIO, "add", "a=1", "b=2"), '3\n{\n  "sum": 3\n}\n'),
        (("call", "add", "a=1", "b=2", *STDIO), '3\n{\n  "sum": 3\n}\n'),
        (("read", *STDIO, "demo://services"), "api\nbilling\nmail\nsearch\nweb\nworker"),
        (
            ("prompt", *STDIO, "release_notes", "2.0"),
            "user: Write short release notes for version 2.0.\n",
        ),
    ],
)
def test_a_command_is_used_as_a_server(words: tuple[str, ...], shown: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (exit_codes.OK, shown), done.stderr


@pytest.mark.parametrize("noun", ["tools", "resources", "prompts"])
def test_only_the_given_server_is_started_and_no_approval_is_asked(noun: str, home: Path) -> None:
    (home / "work" / ".mcp.json").write_text(json.dumps({"mcpServers": {"stranger": {"command": "x"}}}))
    done = run(noun, *STDIO)
    assert (done.returncode, done.stderr) == (exit_codes.OK, "")
    assert "stranger" not in done.stdout
    assert "dragoman-demo" in done.stdout


def test_deny_rules_of_the_person_apply_to_given_servers_too(home: Path) -> None:
    settings(home, deny=["mcp__dragoman-demo"])
    done = run("call", *STDIO, "add", "a=1", "b=2")
    assert (done.returncode, done.stdout) == (exit_codes.REFUSED, "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("call", "localhost:3000/mcp", "x"), "did you mean http://localhost:3000/mcp?"),
        (("tools", "example.com/mcp"), "did you mean https://example.com/mcp?"),
        (("tools", "http://127.0.0.1:9/mcp", "--stdio", "x"), "not both"),
        (("call", "http://127.0.0.1:9/mcp"), "give the name of a tool"),
        (("tools", "--stdio", "'"), "cannot be read"),
        (("mcp", "add", "x", "localhost:3000/mcp"), "write http://localhost:3000/mcp if it is a URL"),
        (("mcp", "add", "x", "python -m x"), "dragoman mcp add x -- python -m x"),
        (("mcp", "add", "--client-id", "7", "x", "prog"), "OAuth options apply to URLs only"),
        (("mcp", "add", "--xaa", "x", "prog"), "OAuth options apply to URLs only"),
    ],
)
def test_an_invalid_combination_is_a_usage_error_with_the_correct_form(
    words: tuple[str, ...], told: str
) -> None:
    done = run(*words)
    assert done.returncode == exit_codes.USAGE
    assert told in done.stderr.replace("\n", " ")


def test_a_url_without_a_scheme_is_asked_about_in_a_terminal(home: Path) -> None:
    with Person("mcp", "add", "x", "localhost:3000/mcp") as person:
        shown = person.answers("y/n", "y")
        code, _ = person.ends()
    assert code == exit_codes.OK
    assert "Is it the URL http://localhost:3000/mcp?" in shown
    kept = json.loads((home / "work" / ".dragoman" / "settings.local.json").read_text())
    assert kept["mcpServers"]["x"] == {"type": "http", "url": "http://localhost:3000/mcp"}


def test_a_command_with_blanks_gets_the_hint_to_use_args() -> None:
    done = run("tools", "--mcp-config", config(x={"command": "python -m x"}))
    assert done.returncode == exit_codes.NOT_CONNECTED
    assert "Write only the program as `command`, and the other words as `args`." in done.stderr


# --- short names ---


def test_a_short_tool_name_is_enough_if_one_server_has_it() -> None:
    for words in (("add",), ("demo", "add"), ("mcp__demo__add",)):
        assert run("call", *words, "a=1", "b=2", *DEMO).stdout.startswith("3\n"), words


def test_an_ambiguous_tool_names_both_servers_and_is_not_called() -> None:
    done = run("call", "add", "a=1", "b=2", *DEMO, "--mcp-config", config(other=_demo()))
    assert (done.returncode, done.stdout) == (exit_codes.USAGE, "")
    assert "mcp__demo__add, mcp__other__add" in done.stderr.replace("\n", " ")


def test_a_similar_name_is_suggested() -> None:
    done = run("call", "pictur", *DEMO)
    assert done.returncode == exit_codes.NOT_FOUND
    assert "Did you mean mcp__demo__picture?" in done.stderr


def test_tools_of_one_server_start_only_that_server(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    other = config(other=stdio_server("exits_soon.py", str(diary), "3600000"))
    done = run("tools", "demo", *DEMO, "--mcp-config", other)
    assert done.returncode == exit_codes.OK
    assert not diary.exists()


def _demo() -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-m", "dragoman.demo"]}


# --- arguments and results ---


def test_arguments_are_read_from_a_file_or_from_stdin(tmp_path: Path) -> None:
    file = tmp_path / "sum.json"
    file.write_text('{"a": 1, "b": 2}')
    assert run("call", "add", f"@{file}", *DEMO).stdout.startswith("3\n")
    piped = subprocess.run(
        [DRAGOMAN, "call", "add", "-", *DEMO],
        input='{"a": 4, "b": 2}',
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert piped.stdout.startswith("6\n")
    for wrong in ("@no-such-file", "@/"):
        assert run("call", "add", wrong, *DEMO).returncode == exit_codes.USAGE


def test_an_image_is_written_to_a_file_or_a_folder(tmp_path: Path) -> None:
    done = run("call", "picture", *DEMO, "-o", tmp_path / "p.png")
    assert (done.returncode, done.stdout) == (exit_codes.OK, "A sunset over water.\n")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert run("call", "picture", *DEMO, "-o", tmp_path).returncode == exit_codes.OK
    assert (tmp_path / "image.png").read_bytes() == (tmp_path / "p.png").read_bytes()


def test_a_result_of_text_is_written_to_the_file(tmp_path: Path) -> None:
    done = run("call", "count", "to=1", "seconds=0", *DEMO, "-o", tmp_path / "out.txt")
    assert (done.returncode, done.stdout) == (exit_codes.OK, "")
    assert (tmp_path / "out.txt").read_text() == "counted to 1"


def test_an_empty_result_is_reported() -> None:
    said = json.dumps({"content": []})
    tools = json.dumps([{"tools": [{"name": "quiet", "inputSchema": {"type": "object"}}]}])
    done = run("call", "quiet", "--mcp-config", config(s=stdio_server("lists_given_pages.py", tools, said)))
    assert done.returncode == exit_codes.OK
    assert "(the result is empty)" in done.stderr or done.stdout


# --- terminals ---


@pytest.mark.slow
@pytest.mark.parametrize("setting", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "TERM=dumb"])
@pytest.mark.parametrize(
    "words",
    [("tools", *DEMO), ("demo",), ("tools", "--server", "none", *DEMO)],
    ids=["list", "demo", "error"],
)
def test_no_color_disables_colours(words: tuple[str, ...], setting: dict[str, str]) -> None:
    with Person(*words, env=setting) as person:
        output = person.finish()
    styles = [found for found in output.split("\x1b[")[1:] if found.split("m")[0].replace(";", "").isdigit()]
    assert styles == [] or (setting.get("TERM") is None and all(s[0] in "012" for s in styles)), styles[:3]
    assert "38;2" not in output


def test_lists_are_cut_in_a_pipe_unless_full_is_given() -> None:
    cut = run("tools", *DEMO, env={**os.environ, "COLUMNS": "60"})
    assert max(map(len, cut.stdout.splitlines())) <= 60
    assert "…" in cut.stdout
    full = run("tools", *DEMO, "--full", env={**os.environ, "COLUMNS": "60"})
    assert "Lists deployments of six services as CSV, with as many rows as requested." in full.stdout


@pytest.mark.slow
def test_the_demo_leaves_no_files_and_processes(home: Path) -> None:
    before = sorted(home.rglob("*"))
    assert run("demo").returncode == exit_codes.OK
    assert sorted(home.rglob("*")) == before


# --- completion ---


def test_shells_complete_servers_and_tools_that_were_seen(home: Path) -> None:
    (home / ".dragoman").mkdir(mode=0o700)
    (home / ".dragoman" / "settings.json").write_text(json.dumps({"mcpServers": {"mine": _demo()}}))
    assert run("tools").returncode == exit_codes.OK

    def completed(*words: str) -> list[str]:
        asked = {"COMP_WORDS": " ".join(("dragoman", *words)), "COMP_CWORD": str(len(words))}
        env = {**os.environ, "_DRAGOMAN_COMPLETE": "bash_complete", **asked}
        return [line.partition(",")[2] for line in run(env=env).stdout.splitlines()]

    assert completed("mcp", "get", "m") == ["mine"]
    assert completed("call", "mcp__mine__a") == ["mcp__mine__add"]
    assert "_DRAGOMAN_COMPLETE" in run("completion", "bash").stdout
