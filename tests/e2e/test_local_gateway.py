"""`dragoman serve --local`: servers that stay connected for `dragoman call`."""

import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.cli import exit_codes
from dragoman.cli.local_gateway.client import plain_call
from dragoman.cli.local_gateway.endpoint import environment_digest, is_own_peer, socket_path
from tests.e2e.command import DRAGOMAN, LIMIT_SECONDS, ROOT, Terminal, run

pytestmark = pytest.mark.requirement("GWY-1")


def entry(script: str) -> dict[str, object]:
    return {"command": sys.executable, "args": [str(ROOT / "tests" / "servers" / script)]}


@pytest.fixture
def settings(home: Path) -> Path:
    file = home / ".dragoman" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    servers = {"works": entry("works.py"), "asks": entry("asks_for_a_name.py")}
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


@contextlib.contextmanager
def local_gateway(*options: str, ready: bool = True) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [str(DRAGOMAN), "serve", "--local", *options],
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    try:
        if ready:
            assert process.stderr.readline() == f"2 servers connected for `dragoman call` in {Path.cwd()}.\n"
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=LIMIT_SECONDS)


def pid(*words: str, **options: object) -> str:
    done = run("call", "pid", *words, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_calls_use_connected_servers(settings: Path) -> None:
    with local_gateway():
        first = pid()
        assert pid() == first
        assert json.loads(pid("--json"))["text"] == first.strip()
        assert run("call", "works", "pid").stdout == first
        path = socket_path(str(Path.cwd()))
        assert [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)] == [0o600, 0o700]
    assert not path.exists()
    assert pid() != first


def test_a_server_that_is_not_connected_is_named(settings: Path) -> None:
    servers = {"works": entry("works.py"), "broken": {"command": "/nonexistent/server"}}
    settings.write_text(json.dumps({"mcpServers": servers}))
    with local_gateway(ready=False) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(2)]
        process.terminate()
        assert process.wait(LIMIT_SECONDS) == 0
    assert lines[0].startswith("1 server connected")
    assert lines[1] == "  broken: start failed: there is no program '/nonexistent/server'\n"


@pytest.mark.slow
def test_the_output_equals_that_of_the_command_without_the_gateway(settings: Path) -> None:
    calls = [
        ("call", "work"),
        ("call", "work", "--timeout", "0.001"),
        ("call", "burn"),
        ("call", "burn", "--yes"),
        ("call", "burn", "--json"),
        ("call", "nothing"),
        ("call", "works", "work", "no-argument"),
    ]
    alone = [run(*words) for words in calls]
    with local_gateway():
        warm = [run(*words) for words in calls]
    assert [_said(done) for done in warm] == [_said(done) for done in alone]
    assert [done.returncode for done in alone] == [0, exit_codes.TIMEOUT, 6, 0, 6, 5, 2]


def _said(done: subprocess.CompletedProcess[str]) -> tuple[int, list[str], str]:
    lines = [line for line in done.stdout.splitlines() if "durationSeconds" not in line]
    return done.returncode, lines, done.stderr


@pytest.mark.slow
def test_another_folder_or_environment_or_changed_files_do_not_use_it(
    settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with local_gateway():
        warm = pid()
        assert pid(cwd=tmp_path) != warm
        assert pid(env={**os.environ, "API_KEY": "another"}) != warm
        assert pid(env={**os.environ, "TERM": "another"}) == warm
        settings.write_text(
            settings.read_text().replace("{", '{"permissions": {"deny": ["mcp__works__work"]}, ', 1)
        )
        assert pid() != warm
        assert "deny rule" in run("call", "work").stderr
        deadline = time.monotonic() + LIMIT_SECONDS
        while pid() != warm:  # it reads the files again
            assert time.monotonic() < deadline
        denied = run("call", "work")
        assert (denied.returncode, "deny rule mcp__works__work" in denied.stderr) == (
            exit_codes.REFUSED,
            True,
        )


@pytest.mark.slow
@pytest.mark.parametrize(("key", "code", "shown"), [(b"y", 0, "burnt\n"), (b"n", exit_codes.REFUSED, "")])
def test_a_question_is_asked_in_the_calling_terminal(
    settings: Path, key: bytes, code: int, shown: str
) -> None:
    with local_gateway():
        with Terminal("call", "burn") as terminal:
            terminal.answer(key)
            output = terminal.finish()
        assert terminal.process.returncode == code
        assert "mcp__works__burn" in output
        assert "servers checked" not in output, "the command has started no server"
        assert output.endswith(shown) if shown else "burnt" not in output


@pytest.mark.slow
def test_a_form_of_a_server_is_completed_in_the_calling_terminal(settings: Path) -> None:
    with local_gateway(), Terminal("call", "greet") as terminal:
        terminal.type(b"")
        while "Your name?" not in terminal._output.decode():  # pyright: ignore[reportPrivateUsage]
            assert terminal._take(time.monotonic() + LIMIT_SECONDS)  # pyright: ignore[reportPrivateUsage]
        terminal.type(b"Ada\r")
        output = terminal.finish(answering=b"y")
        assert '"Ada"' in output
        assert "servers checked" not in output


@pytest.mark.slow
def test_the_gateway_ends_when_idle_and_only_one_runs_in_a_folder(settings: Path) -> None:
    with local_gateway("--idle", "0.05") as process:
        second = run("serve", "--local")
        assert second.returncode == exit_codes.CONFIG
        assert "is running already" in second.stderr
        assert process.wait(LIMIT_SECONDS) == 0


@pytest.mark.slow
def test_a_killed_gateway_does_not_block_a_new_one(settings: Path) -> None:
    with local_gateway() as process:
        warm = pid()
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert socket_path(str(Path.cwd())).exists()
        assert pid() != warm
        with local_gateway():
            first = pid()
            assert pid() == first


@pytest.mark.slow
def test_a_gateway_that_is_lost_during_a_call_is_a_named_error(settings: Path) -> None:
    with local_gateway() as process, Terminal("call", "burn") as terminal:
        terminal.wait_for("mcp__works__burn")
        process.send_signal(signal.SIGKILL)
        process.wait()
        terminal.answer(b"y")
        output = terminal.finish()
        assert "the local gateway ended during the call, which may have run" in output
        assert terminal.process.returncode == exit_codes.NOT_CONNECTED


def test_options_that_change_what_is_served_are_refused(settings: Path) -> None:
    for words in (("--mcp-config", "demo"), ("works",), ("--permission-mode", "bypassPermissions")):
        assert run("serve", "--local", *words).returncode == exit_codes.USAGE


def test_a_warm_call_loads_no_large_library(settings: Path) -> None:
    code = """
import sys
from dragoman.cli.entry import main
sys.argv = ["dragoman", "call", "pid"]
try:
    main()
except SystemExit as end:
    large = {"click", "msgspec", "asyncio", "aiohttp", "rich"}.intersection(sys.modules)
    print(end.code, sorted(large))
"""
    with local_gateway():
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "0 []"


def test_a_process_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert is_own_peer(ours)
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        assert not is_own_peer(ours)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["x", "a=1"], (["x", "a=1"], False, False, None)),
        (["x", "--json", "-y", "--timeout", "2"], (["x"], True, True, 2.0)),
        (["x", "--timeout", "nan"], None),
        (["x", "--timeout", "-1"], None),
        (["x", "--timeout"], None),
        (["x", "-o", "f"], None),
        (["x", "--mcp-config", "demo"], None),
        (["x", "@file"], None),
        (["x", "-"], None),
        (["--help"], None),
        ([], None),
    ],
)
def test_only_plain_calls_use_the_gateway(words: list[str], expected: tuple[object, ...] | None) -> None:
    found = plain_call(words)
    assert (None if found is None else tuple(found.values())) == expected


def test_terminal_variables_are_not_compared() -> None:
    one = environment_digest("s", {"A": "1", "TERM": "x", "ITERM_SESSION": "1"})
    assert one == environment_digest("s", {"A": "1", "TERM": "y"})
    assert one != environment_digest("s", {"A": "2"})
    assert one != environment_digest("t", {"A": "1"})
