"""`dragoman serve` as a person starts it."""

import asyncio
import json
import os
import re
import signal
from pathlib import Path
from typing import Any, Self

import pytest

from dragoman.cli.commands.serve import Address, options_to_repeat
from tests.e2e.command import DRAGOMAN, Terminal
from tests.e2e.forked import Forked, run
from tests.gateway import Client

pytestmark = pytest.mark.requirement("GWY-1")
OPEN = ["--permission-mode", "bypassPermissions"]


class Serving:
    """`async with Serving(…) as served`: a gateway that runs until the end of the block."""

    def __init__(self, *words: str) -> None:
        self._words = words
        self.lines: list[str] = []

    async def __aenter__(self) -> Self:
        stderr = await self._start([str(DRAGOMAN), "serve", "--http", "127.0.0.1:0", *self._words])
        async with asyncio.timeout(30):
            while not self.lines or not self.lines[-1].endswith("Stop: Ctrl-C."):
                line = await stderr.readline()
                assert line, self.lines
                self.lines.append(line.decode().rstrip())
        found = re.search(r"at (http://127\.0\.0\.1:\d+/mcp)$", "\n".join(self.lines), re.MULTILINE)
        assert found is not None, self.lines
        self.url = found[1]
        return self

    async def _start(self, words: list[str]) -> asyncio.StreamReader:
        said, theirs = os.pipe()
        with open(os.devnull, "r+b") as nothing, open(theirs, "wb") as stderr:
            self.process = Forked(words, [nothing.fileno(), nothing.fileno(), stderr.fileno()])
        self.stderr = asyncio.StreamReader()
        self._pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self.stderr), os.fdopen(said, "rb")
        )
        return self.stderr

    async def __aexit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        await self.stderr.read()
        await asyncio.to_thread(self.process.wait)
        self._pipe.close()


class InstalledServing(Serving):
    """The same with the command as it is installed: it loads modules when it needs them."""

    process: Any

    async def _start(self, words: list[str]) -> asyncio.StreamReader:
        self.process = await asyncio.create_subprocess_exec(*words, stderr=asyncio.subprocess.PIPE)
        return self.process.stderr

    async def __aexit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        await self.process.communicate()


def token(home: Path) -> str:
    return (home / ".dragoman" / "state" / "gateway-token").read_text().strip()


async def test_serve_prints_tools_callers_and_how_to_connect(home: Path):
    broken = json.dumps({"mcpServers": {"broken": {"command": "/nonexistent/server"}}})
    async with Serving("--mcp-config", "demo", "--mcp-config", broken) as served:
        assert served.lines[0] == f"Serving 5 tools of 1 server at {served.url}"
        address = served.url.removeprefix("http://").removesuffix("/mcp")
        assert served.lines[1] == "  broken: start failed: there is no program '/nonexistent/server'"
        assert served.lines[2:] == [
            "Callers: local. Each request needs a token.",
            "Connect a client (claude-code, codex, cursor or vscode):",
            f"  dragoman serve --http {address} --print-config claude-code",
            "Calls, and why they were allowed or denied: dragoman logs --audit. Stop: Ctrl-C.",
        ]
        file = home / ".dragoman" / "state" / "gateway-token"
        assert file.stat().st_mode & 0o777 == 0o600
        async with Client(served.url, token(home)) as client:
            assert len((await client.modern("tools/list")).last["result"]["tools"]) == 5


async def test_an_address_in_use_is_named_with_the_option_that_changes_it(home: Path):
    async with Serving("--mcp-config", "demo") as served:
        address = served.url.removeprefix("http://").removesuffix("/mcp")
        second = await asyncio.to_thread(run, "serve", "--http", address, "--mcp-config", "demo")
    assert (second.returncode, second.stdout) == (3, "")
    assert second.stderr == (
        f"error: the gateway cannot listen on {address}: address already in use\n"
        "  hint: Is another gateway running there? Choose another address with --http HOST:PORT.\n"
    )
    log = (home / ".dragoman" / "logs" / "gateway.jsonl").read_text()
    assert f'"problem","text":"the gateway cannot listen on {address}: address already in use"' in log


async def test_a_refusal_suggests_no_empty_rule(home: Path):
    """With `--strict-mcp-config` there is no rule that could be kept for the tool."""
    words = ("--mcp-config", "demo", "--strict-mcp-config")
    async with Serving(*words) as served, Client(served.url, token(home)) as client:
        called = await client.modern("tools/call", {"name": "demo__add", "arguments": {"a": 1, "b": 2}})
    text = "mcp__demo__add was not allowed: no rule allows it; the client cannot be asked"
    assert called.last["result"]["content"] == [{"type": "text", "text": text}]


@pytest.mark.parametrize("only_given", [[], ["--strict-mcp-config"]])
async def test_calls_are_in_the_audit_log_with_their_caller(home: Path, only_given: list[str]):
    settings = home / "gateway.json"
    settings.write_text(json.dumps({"callers": {"ada": {"token": "0123456789abcdefghij"}}}))
    settings.chmod(0o600)
    serving = Serving("--mcp-config", "demo", "--config", str(settings), *only_given, *OPEN)
    async with serving as served, Client(served.url, "0123456789abcdefghij") as client:
        called = await client.modern("tools/call", {"name": "demo__add", "arguments": {"a": 2, "b": 3}})
        assert called.last["result"]["structuredContent"] == {"sum": 5}
    shown = await asyncio.to_thread(run, "logs", "--audit", "--json")
    entry = json.loads(shown.stdout.splitlines()[-1])
    assert (entry["tool"], entry["caller"], entry["outcome"]) == ("mcp__demo__add", "ada", "ok")


async def test_sigterm_lets_a_running_call_finish_and_exits_with_0(home: Path):
    async with Serving("--mcp-config", "demo", *OPEN) as served, Client(served.url, token(home)) as client:
        await client.initialize()
        params = {"name": "demo__count", "arguments": {"to": 3, "seconds": 1}, "_meta": {"progressToken": 1}}
        calling = asyncio.create_task(client.legacy("tools/call", params))
        metrics = served.url.replace("/mcp", "/metrics")
        while True:  # until the call is with the server
            async with client.http.get(metrics, headers=client.headers) as response:
                if "dragoman_requests_open 2" in await response.text():
                    break
        served.process.send_signal(signal.SIGTERM)
        reply = await calling
        assert reply.last["result"]["content"][0]["text"].startswith("counted to 3")
        assert await asyncio.to_thread(served.process.wait) == 0
        assert (await served.stderr.read()).decode() == "The gateway has ended.\n"


@pytest.mark.parametrize(
    ("address", "file", "options"),
    [
        (Address("127.0.0.1", 8931), None, ""),
        (Address("::1", 9000), None, "--http '[::1]:9000' "),
        (Address("127.0.0.1", 8931), Path("my gate.json"), "--config 'my gate.json' "),
    ],
)
def test_the_next_step_names_the_options_that_the_entry_depends_on(
    address: Address, file: Path | None, options: str
):
    assert options_to_repeat(address, file) == options


@pytest.mark.parametrize("client", ["claude-code", "codex", "cursor", "vscode"])
def test_the_entry_for_a_client_names_address_and_token(home: Path, client: str):
    done = run("serve", "--http", "127.0.0.1:9000", "--print-config", client)
    assert done.returncode == 0
    shown = done.stdout
    assert "http://127.0.0.1:9000/mcp" in shown
    assert f"Bearer {token(home)}" in shown


def test_the_entry_with_own_callers_names_the_token_to_insert(home: Path):
    settings = home / "gateway.json"
    settings.write_text("{}")
    done = run("serve", "--config", str(settings), "--print-config", "claude-code")
    assert "Bearer TOKEN" in done.stdout
    assert done.stderr == f"Replace TOKEN with the token of a caller in {settings}.\n"


def test_serve_over_stdio_in_a_terminal_explains_that_it_waits_for_a_client(home: Path):
    with Terminal("serve", "--stdio", "--mcp-config", "demo") as terminal:
        terminal.wait_for("Waiting for MCP messages on standard input: a client starts this command.")
        terminal.wait_for("--stdio --print-config claude-code")
        terminal.type(b"\x03")
        assert terminal.finish().rstrip().endswith("The gateway has ended.")
    assert terminal.process.returncode == 0


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (("--stdio", "--print-config", "cursor"), ["--stdio"]),
        (
            ("files", "--print-config=cursor", "--stdio", "--tool-search"),
            ["files", "--stdio", "--tool-search"],
        ),
        (
            ("--print-config", "cursor", "--mcp-config", "demo", "--stdio"),
            ["--mcp-config", "demo", "--stdio"],
        ),
    ],
)
def test_the_entry_for_a_client_that_starts_the_gateway_has_the_same_options(
    home: Path, words: tuple[str, ...], kept: list[str]
):
    """The program is named by its path, unless a client finds it by its name: not if only the PATH of an
    active virtual environment has it."""
    linked = home / "bin" / "dragoman"  # as pipx does
    linked.parent.mkdir()
    linked.symlink_to(DRAGOMAN)
    folders = os.environ["PATH"]
    places = {folders: str(DRAGOMAN), f"{DRAGOMAN.parent}:{folders}": str(DRAGOMAN)}
    for path, named in {**places, f"{linked.parent}:{folders}": "dragoman"}.items():
        done = run("serve", *words, env={**os.environ, "PATH": path})
        assert done.returncode == 0
        shown = done.stdout
        assert json.loads(shown) == {"mcpServers": {"dragoman": {"command": named, "args": ["serve", *kept]}}}


async def test_the_steps_of_the_start_are_logged_and_what_happens_later(home: Path):
    async with Serving("--mcp-config", "demo") as served:
        pass
    lines = (home / ".dragoman" / "logs" / "gateway.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    assert [each["event"] for each in entries] == [
        "configuration",
        "logging",
        "transport",
        "accept",
        "handle",
        "end",
    ]
    assert entries[0]["servers"] == 1
    assert entries[2]["text"] == f"listening at {served.url}"
    assert entries[4]["tools"] == 5
    assert {each["pid"] for each in entries} == {served.process.pid}


async def test_a_store_that_does_not_answer_is_reported_at_the_start(home: Path):
    file = home / "gateway.json"
    store = {"redis": "redis://127.0.0.1:1/0", "key": "k" * 40}
    file.write_text(json.dumps({"callers": {"ci": {"token": "t" * 20}}, "store": store}))
    file.chmod(0o600)
    async with Serving("--mcp-config", "demo", "--config", str(file)) as served:
        async with asyncio.timeout(30):
            said = (await served.stderr.readline()).decode()
    assert said.startswith("! the gateway's store does not answer (Redis at 127.0.0.1: ConnectionError): ")


def test_without_accounts_of_callers_logout_reports_that_there_are_none(home: Path):
    done = run("serve", "--mcp-config", "demo", "--forget-caller", "ada")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines()[0] == (
        "error: callers have no accounts of their own, so there are none to delete"
    )


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("--stdio", "--http", "127.0.0.1:9000"), "--stdio and --http exclude each other"),
        (("--idle", "5"), "--idle is for --local only"),
        (("--stdio", "--idle", "5"), "--idle is for --local only"),
    ],
)
def test_options_that_would_have_no_effect_are_a_usage_error(home: Path, words: tuple[str, ...], cause: str):
    done = run("serve", "--mcp-config", "demo", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == f"Error: {cause}"


def test_without_servers_the_hint_names_only_supported_options(home: Path):
    done = run("serve")
    assert (done.returncode, done.stderr.splitlines()) == (
        3,
        [
            "error: no servers are configured",
            "  hint: Add one with `dragoman mcp add`, or try --mcp-config demo.",
        ],
    )


async def test_servers_and_tools_of_callers_and_views_that_do_not_exist_are_reported_at_the_start(home: Path):
    file = home / "gateway.json"
    callers = {"ci": {"token": "t" * 20, "servers": ["demo", "dmo"]}}
    view = {"servers": ["files"], "arguments": {"demo__add": {"a": 1}, "demo__ad": {"a": 1}}}
    file.write_text(json.dumps({"callers": callers, "views": {"v": view}}))
    file.chmod(0o600)
    async with Serving("--mcp-config", "demo", "--config", str(file)) as served:
        pass
    rest = "which is not configured; until it is, it has no effect"
    no_tool = "but no server has this tool; they have no effect"
    assert served.lines[:3] == [
        f"! caller 'ci' names the server 'dmo', {rest}",
        f"! view 'v' names the server 'files', {rest}",
        f"! view 'v' fixes arguments of 'demo__ad', {no_tool}",
    ]


async def test_no_line_of_the_start_is_longer_than_a_terminal(home: Path):
    file = home / "g.json"
    file.write_text(json.dumps({"callers": {"ci": {"token": "t" * 20}}}))
    file.chmod(0o600)
    async with Serving("--mcp-config", "demo", "--config", str(file)) as served:
        lines = [line.replace(str(file), "gateway.json") for line in served.lines]
    assert [line for line in lines if len(line) > 100] == []
