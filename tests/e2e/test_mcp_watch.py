"""`dragoman mcp list --watch`: every change as it happens, until somebody has seen enough."""

import json
import os
import queue
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from dragoman.cli import exit_codes
from dragoman.cli.render.live_servers import age, table
from dragoman.servers.status import ServerStatus
from tests.e2e.command import DRAGOMAN, LIMIT_SECONDS, config, is_alive
from tests.e2e.forked import Terminal, run
from tests.servers import stdio_server

NEVER_MS = "3600000"
QUICK = {"DRAGOMAN_RECONNECT_WAIT_MS": "50", "DRAGOMAN_RECONNECT_LONGEST_WAIT_MS": "50"}


class ResourceSubscriptions:
    """The command at work, with its output line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.seen: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def until(self, pattern: str) -> str:
        """Reads on to the first line that matches."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while (line := self._lines.get(timeout=max(0.1, deadline - time.monotonic()))) is not None:
            self.seen.append(line)
            if re.search(pattern, line):
                return line
        raise AssertionError(f"ended before {pattern!r}: {self.seen}")

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=LIMIT_SECONDS)


@contextmanager
def watching(*words: str) -> Iterator[ResourceSubscriptions]:
    command = [str(DRAGOMAN), "mcp", "list", "--watch", *words]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **QUICK},
    ) as process:
        try:
            yield ResourceSubscriptions(process)
        finally:
            if process.poll() is None:
                process.kill()


@pytest.fixture
def diary(tmp_path: Path) -> Path:
    return tmp_path / "starts"


def servers(diary: Path) -> tuple[str, str]:
    return "--mcp-config", config(mortal=stdio_server("exits_soon.py", str(diary), NEVER_MS))


@pytest.mark.slow
@pytest.mark.requirement("LIF-1")
def test_each_change_is_a_line_of_json_while_a_server_exits_and_restarts(diary: Path) -> None:
    with watching("--json", *servers(diary)) as watch:
        watch.until('"status": "connected"')
        first = int(diary.read_text())
        os.kill(first, signal.SIGKILL)
        lost = json.loads(watch.until('"phase": "reconnecting"'))
        watch.until('"status": "connected"')
        second = int(diary.read_text().split()[-1])
        assert watch.stop() == exit_codes.OK
        assert watch.process.stderr is not None
        assert watch.process.stderr.read() == ""
    assert (lost["event"], lost["server"], lost["status"]) == ("ServerStateChanged", "mortal", "pending")
    assert "SIGKILL" in lost["reason"]
    events = [json.loads(line) for line in watch.seen]
    assert all(abs(event["at"] - time.time()) < 2 * LIMIT_SECONDS for event in events)
    assert {event["event"] for event in events} == {"ServerStateChanged", "ToolsChanged"}
    states = [event["phase"] or event["status"] for event in events if event["event"] == "ServerStateChanged"]
    assert states[0] in ("connecting", "handshaking")
    assert states[-1] == "connected"
    assert not is_alive(first)
    assert not is_alive(second)


@pytest.mark.slow
@pytest.mark.requirement("LIF-1")
def test_in_a_pipe_each_change_is_a_line_of_text(diary: Path) -> None:
    with watching(*servers(diary)) as watch:
        watch.until("^mortal: connected$")
        os.kill(int(diary.read_text()), signal.SIGKILL)
        assert "SIGKILL" in watch.until(r"^mortal: reconnecting \(")
        watch.until("^mortal: connected$")
        assert watch.stop() == exit_codes.OK
    assert "mortal: 1 tool" in watch.seen
    assert not any("\x1b" in line for line in watch.seen)


@pytest.mark.slow
def test_a_server_added_to_the_files_is_shown(home: Path, diary: Path) -> None:
    settings = home / ".dragoman" / "settings.json"
    settings.parent.mkdir(mode=0o700)
    settings.write_text(json.dumps({"mcpServers": {"old": stdio_server("well_behaved.py")}}))
    with watching("--json") as watch:
        watch.until('"old".*"connected"')
        entry = stdio_server("exits_soon.py", str(diary), NEVER_MS)
        settings.write_text(
            json.dumps({"mcpServers": {"old": stdio_server("well_behaved.py"), "new": entry}})
        )
        watch.until('"new".*"connected"')
        assert watch.stop(signal.SIGTERM) == exit_codes.OK


class Screen(Terminal):
    """A terminal whose output can be followed while the command runs."""

    def until(self, pattern: str) -> None:
        """Reads on until the words since the last look match."""
        seen = ""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not re.search(pattern, seen):
            assert select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))[0], seen
            data = os.read(self._master, 65536)
            self._output += data
            seen += re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", data.decode(errors="replace"))


@pytest.mark.slow
@pytest.mark.requirement("LIF-1")
def test_in_a_terminal_a_table_is_updated_until_ctrl_c(diary: Path) -> None:
    with Screen("mcp", "list", "--watch", *servers(diary), env=QUICK) as terminal:
        terminal.until(r"✓ mortal +stdio +connected")
        os.kill(int(diary.read_text()), signal.SIGKILL)
        terminal.until(r"◐ mortal +stdio +reconnecting")
        terminal.until(r"✓ mortal +stdio +connected")
        terminal.type(b"\x03")
        output = terminal.finish()
    assert terminal.process.returncode == exit_codes.OK, output
    assert "Traceback" not in output


def test_watch_with_no_health_is_a_usage_error() -> None:
    done = run("mcp", "list", "--watch", "--no-health")
    assert done.returncode == exit_codes.USAGE
    assert "--no-health" in done.stderr


# The table by itself.


def view(name: str, status: str = "connected", **more: Any) -> ServerStatus:
    facts: dict[str, Any] = {
        "scope": "user",
        "source": "code",
        "transport": "stdio",
        "phase": None,
        "reason": None,
        "since": 1000.0,
        "attempt": 0,
        "error": None,
        "protocol_version": "2026-07-28",
        "server_info": {},
        "capabilities": {},
        "instructions": None,
        "tool_count": 2,
        "problems": (),
        "pid": None,
        "exit_code": None,
        "stderr_tail": "",
        "ignored": {},
    }
    return ServerStatus(name=name, status=status, **{**facts, **more})


def lines(*views: ServerStatus, width: int = 100, now: float = 1090.0) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(table(views, now, width))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_the_table_is_sorted_and_shows_each_state() -> None:
    shown = lines(
        view("b", "failed", reason="b: start failed: no such program", transport="http"),
        view("a"),
        view("c", "pending", phase="reconnecting", attempt=3, reason="it was ended by SIGKILL"),
        view("d", "needs-auth", reason="HTTP 401"),
        view("e", "disabled", reason="disabled by the person"),
        view("f", "pending", phase="connecting"),
    )
    assert [line.split()[1] for line in shown] == list("abcdef")
    assert re.match(r"✓ a +stdio +connected +1m +2 tools, 2026-07-28$", shown[0])
    assert re.match(r"✗ b +http +failed +1m +start failed: no such program$", shown[1])
    assert re.match(r"◐ c +stdio +reconnecting \(3\) +1m +it was ended by SIGKILL$", shown[2])
    assert re.match(r"! d +stdio +needs-auth +1m +HTTP 401$", shown[3])
    assert re.match(r"– e +stdio +disabled +1m +disabled by the person$", shown[4])
    assert re.match(r"◐ f +stdio +connecting +1m$", shown[5])


def test_an_empty_table_gives_the_next_step() -> None:
    assert lines() == ["No servers are configured. Add one with `dragoman mcp add`."]


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
def test_only_the_reason_is_cut_and_leaves_room_for_an_echoed_ctrl_c(width: int) -> None:
    shown = lines(view("name", "failed", reason="why " * 200), view("much-longer"), width=width)
    between = " {2,}" if width < 60 else " {2,}stdio  "
    assert re.match(rf"✓ much-longer{between}connected {{2,}}", shown[0])
    assert re.match(rf"✗ name{between}failed {{2,}}.*…$", shown[1])
    assert len(shown[1]) == max(width - len("^C") - 1, 30)


def test_columns_are_aligned_and_texts_of_servers_are_cleaned() -> None:
    shown = lines(
        view("x"), view("a-much-longer-name", "failed", reason="\x1b[2J\nowned\r"), view("n" * 500), width=200
    )
    places = {re.search(r"stdio", line).start() for line in shown}  # type: ignore[union-attr]
    assert len(places) == 1
    assert not any(char in line for line in shown for char in "\x1b\n\r")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "0s"),
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (3599, "59m"),
        (3600, "1h"),
        (86_399, "23h"),
        (2e5, "2d"),
    ],
)
def test_ages_are_shown_in_the_largest_suitable_unit(seconds: float, said: str) -> None:
    assert age(seconds) == said
