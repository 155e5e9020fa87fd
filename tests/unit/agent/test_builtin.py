"""The agent's built-in tools: files, searching, the shell."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import CallOutcome, Host
from dragoman.agent.builtin import find
from dragoman.agent.builtin.files import file_tools
from dragoman.agent.builtin.find import find_tools, grep_command
from dragoman.agent.builtin.shell import Shell
from dragoman.agent.builtin.workspace import Workspace
from dragoman.content.blocks import ImageBlock
from dragoman.demo.picture import paint
from dragoman.processes import KILL, MARKER, read_process, signal_process
from dragoman.transports.orphans import watchdog

pytestmark = pytest.mark.requirement("AGT-3")


class Bench:
    """The tools in a folder, called like a model calls them."""

    def __init__(self, folder: Path, box: Any) -> None:
        self.folder = folder
        self._box = box

    async def call(self, tool: str, **arguments: Any) -> CallOutcome:
        return await self._box.call(tool, arguments)

    async def text(self, tool: str, **arguments: Any) -> str:
        outcome = await self.call(tool, **arguments)
        assert not outcome.is_error, outcome.text
        return outcome.text

    async def problem(self, tool: str, **arguments: Any) -> str:
        outcome = await self.call(tool, **arguments)
        assert outcome.is_error
        return outcome.text


@asynccontextmanager
async def benched(folder: Path, *, extra: tuple[Path, ...] = (), **options: Any) -> AsyncIterator[Bench]:
    workspace = Workspace(folder, extra)
    shell = Shell(workspace, watchdog)
    tools = [*file_tools(workspace), *find_tools(workspace, watchdog, lambda path: True), *shell.tools()]
    options.setdefault("permission_mode", "bypassPermissions")
    async with Host({}, **options) as host:
        try:
            yield Bench(folder, host.toolbox(tools))
        finally:
            await shell.close()


@pytest.fixture
def folder(home: Path) -> Path:
    return (home / "work").resolve()


async def test_a_file_is_read_with_line_numbers_and_in_parts(folder: Path):
    (folder / "poem.txt").write_text("".join(f"line {n}\n" for n in range(1, 6)))
    async with benched(folder) as bench:
        assert await bench.text("Read", file_path="poem.txt", offset=2, limit=2) == (
            "     2\tline 2\n     3\tline 3\n(The file has more lines: continue with offset=4.)"
        )
        assert (await bench.text("Read", file_path="poem.txt")).splitlines()[-1] == "     5\tline 5"
        assert await bench.text("Read", file_path="poem.txt", offset=9) == (
            f"{folder}/poem.txt has fewer than 9 lines."
        )


async def test_an_image_is_given_as_one(folder: Path):
    (folder / "dot.png").write_bytes(paint(8))
    async with benched(folder) as bench:
        (block,) = (await bench.call("Read", file_path="dot.png")).content
    assert isinstance(block, ImageBlock)
    assert block.mime_type == "image/png"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing", "{folder}/missing: No such file or directory"),
        (".", "{folder} is a folder. Use Glob or a command."),
        ("binary", "{folder}/binary is not a text file (5 bytes). Use a command to inspect it."),
        ("pipe", "{folder}/pipe is not a regular file"),
        ("a\0b", "file_path cannot be used: it contains a NUL character"),
    ],
)
async def test_a_file_that_cannot_be_read_is_reported_in_a_sentence(folder: Path, name: str, reason: str):
    (folder / "binary").write_bytes(b"\x7fE\0LF")
    os.mkfifo(folder / "pipe")
    async with benched(folder) as bench:
        assert reason.format(folder=folder) in await bench.problem("Read", file_path=name)


async def test_a_file_is_changed_only_after_the_model_has_read_its_current_content(folder: Path):
    path = folder / "code.py"
    path.write_text("a = 1\r\nb = 1\r\n")
    change = {"file_path": "code.py", "old_string": "a = 1\nb", "new_string": "a = 2\nb"}
    async with benched(folder) as bench:
        assert (
            await bench.problem("Edit", **change)
            == f"{path} exists, and you have not read it. Read it first."
        )
        await bench.text("Read", file_path="code.py")
        path.write_text("a = 1\r\nb = 1\r\nc = 1\r\n")
        assert "was changed after you read it" in await bench.problem("Edit", **change)
        assert "was changed after you read it" in await bench.problem(
            "Write", file_path="code.py", content=""
        )
        await bench.text("Read", file_path="code.py")
        assert "-a = 1\n+a = 2" in await bench.text("Edit", **change)
        assert path.read_bytes() == b"a = 2\r\nb = 1\r\nc = 1\r\n"
        again = {"file_path": "code.py", "old_string": " = 1", "new_string": " = 3"}
        assert "old_string occurs 2 times in the file" in await bench.problem("Edit", **again)
        await bench.text("Edit", **again, replace_all=True)
        assert path.read_bytes() == b"a = 2\r\nb = 3\r\nc = 3\r\n"
        assert "old_string is not in the file" in await bench.problem("Edit", **again)


async def test_a_new_file_is_written_with_its_folders(folder: Path):
    async with benched(folder) as bench:
        said = await bench.text("Write", file_path="deep/down/new.txt", content="one\ntwo")
    assert said == f"Created {folder}/deep/down/new.txt (2 lines)."
    assert (folder / "deep/down/new.txt").read_text() == "one\ntwo"


# --- Permission ---


async def test_reading_in_the_working_folder_needs_no_rule_and_everything_else_does(folder: Path, home: Path):
    (folder / "mine.txt").write_text("mine")
    (home / "other.txt").write_text("other")
    (folder / "link.txt").symlink_to(home / "other.txt")
    async with benched(folder, permission_mode="dontAsk") as bench:
        assert "mine" in await bench.text("Read", file_path="mine.txt")
        for elsewhere in ("../other.txt", str(home / "other.txt"), "link.txt"):
            assert "dontAsk" in await bench.problem("Read", file_path=elsewhere), elsewhere
        assert "dontAsk" in await bench.problem("Glob", pattern="*", path="..")
        assert "dontAsk" in await bench.problem("Write", file_path="mine.txt", content="")
        assert "dontAsk" in await bench.problem("Bash", command="true")
    async with benched(folder, extra=(home,), permission_mode="dontAsk") as bench:
        assert "other" in await bench.text("Read", file_path="link.txt")


async def test_a_rule_about_a_path_applies_to_every_spelling_of_it(folder: Path):
    (folder / ".env").write_text("secret")
    (folder / "alias").symlink_to(".env")
    async with benched(folder, rules={"deny": ["Read(file_path=*/.env)"]}) as bench:
        for spelling in (".env", "./x/../.env", str(folder / ".env"), "alias"):
            assert "deny rule" in await bench.problem("Read", file_path=spelling), spelling


# --- Searching ---


async def test_files_are_found_by_name_the_newest_first(folder: Path):
    for age, name in enumerate(("src/a.py", "src/deep/b.py", "c.txt", "node_modules/d.py")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
        os.utime(folder / name, (1000 - age, 1000 - age))
    async with benched(folder) as bench:
        assert await bench.text("Glob", pattern="*.py") == f"{folder}/src/a.py\n{folder}/src/deep/b.py"
        assert await bench.text("Glob", pattern="src/*.py") == f"{folder}/src/a.py"
        assert await bench.text("Glob", pattern="**/deep/**/*.py") == f"{folder}/src/deep/b.py"
        assert await bench.text("Glob", pattern="*.rs") == f"No file in {folder} matches the pattern."
        assert "must be relative" in await bench.problem("Glob", pattern="../*")


async def test_file_contents_are_searched(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(find.shutil, "which", lambda name, path: None)  # ripgrep may be there or not
    (folder / "a.py").write_text("one\nTwo\nthree\n")
    (folder / "b.txt").write_text("two\n")
    async with benched(folder) as bench:
        lines = (await bench.text("Grep", pattern="t(wo|hree)")).splitlines()
        assert sorted(lines) == ["a.py:3:three", "b.txt:1:two"]
        assert await bench.text("Grep", pattern="two", ignore_case=True, glob="*.py") == "a.py:2:Two"
        assert await bench.text("Grep", pattern="two", output="files", path="b.txt") == "b.txt"
        assert await bench.text("Grep", pattern="zero") == "Nothing matches."
        assert await bench.text("Grep", pattern="-e; touch hacked") == "Nothing matches."
        assert "the search failed" in await bench.problem("Grep", pattern="(")
    assert not (folder / "hacked").exists()


@pytest.mark.parametrize("has_ripgrep", [True, False])
def test_a_pattern_is_never_an_option(has_ripgrep: bool):
    command = grep_command({"pattern": "--pre=evil"}, has_ripgrep=has_ripgrep)
    assert command[-3:] == ["-e", "--pre=evil", "--"]


# --- The shell ---


async def test_a_file_that_cannot_be_replaced_is_written_in_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """As one that is mounted by itself in a container."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EBUSY, "it is mounted")

    path = folder / "mounted.txt"
    path.write_text("old")
    number = path.stat().st_ino
    async with benched(folder) as bench:
        await bench.text("Read", file_path="mounted.txt")
        monkeypatch.setattr(os, "replace", refuse)
        await bench.text("Write", file_path="mounted.txt", content="new")
        assert (await bench.problem("Write", file_path="other.txt", content="new")).endswith(
            "other.txt cannot be written: it is mounted. It was not created."
        )
    assert (path.read_text(), path.stat().st_ino) == ("new", number)
    assert [each.name for each in folder.iterdir()] == ["mounted.txt"]


async def test_a_command_returns_output_and_exit_code_and_changes_the_folder(folder: Path):
    (folder / "sub").mkdir()
    async with benched(folder) as bench:
        assert await bench.text("Bash", command="echo out; echo err >&2; exit 3") == "out\nerr\n(exit code 3)"
        assert await bench.text("Bash", command="cd sub && true") == "(no output)"
        assert await bench.text("Bash", command="pwd") == f"{folder}/sub"
        said = await bench.text("Bash", command="cd / && true")
        note = f"(The working directory is {folder} again, because / is outside the user's folders.)"
        assert said == note
        assert await bench.text("Bash", command="pwd") == str(folder)


async def test_a_command_is_not_given_the_keys_of_model_providers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    monkeypatch.setenv("PLAIN", "there")
    async with benched(folder) as bench:
        assert await bench.text("Bash", command="echo $PLAIN $ANTHROPIC_API_KEY") == "there"


async def test_a_command_that_takes_too_long_is_ended_with_its_children(folder: Path):
    async with benched(folder) as bench:
        command = "echo begun; sleep 300 & echo $! > child; sleep 300"
        said = await bench.text("Bash", command=command, timeout_seconds=0.5)
    assert said == "begun\n(The command was ended after 0.5 s, its time limit.)"
    await _is_gone(int((folder / "child").read_text()))


async def test_cancelling_a_call_ends_the_command(folder: Path):
    async with benched(folder) as bench:
        calling = asyncio.create_task(bench.call("Bash", command="echo $$ > pid; sleep 300"))
        async with asyncio.timeout(10):
            while not (folder / "pid").exists() or not (folder / "pid").read_text():
                await asyncio.sleep(0.01)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
    await _is_gone(int((folder / "pid").read_text()))


async def test_the_beginning_and_the_end_of_very_long_output_are_kept(folder: Path):
    async with benched(folder) as bench:
        outcome = await bench.call("Bash", command="seq 1000000")
    assert outcome.text.startswith("1\n2\n3\n")
    assert outcome.text.endswith("999999\n1000000")
    (saved,) = outcome.saved
    kept = Path(saved.path).read_text()
    assert "\n… 4791744 bytes left out …\n" in kept
    assert len(kept) < 2 * 1024 * 1024 + 100


async def test_a_command_in_the_background_can_be_read_and_ended(folder: Path):
    async with benched(folder) as bench:
        assert await bench.text("Bash", command="echo $$ > pid; echo hi; sleep 300", background=True) == (
            "Started in the background as bash-1."
        )
        async with asyncio.timeout(10):
            while not (said := await bench.text("BashOutput", id="bash-1")).startswith("hi"):
                await asyncio.sleep(0.01)
        assert said == "hi\n(still running)"
        assert await bench.text("BashStop", id="bash-1") == "(no new output)\n(ended)"
        assert "no command in the background has this id" in await bench.problem("BashOutput", id="bash-1")
        pid = int((folder / "pid").read_text())
        await _is_gone(pid)


async def test_closing_ends_commands_in_the_background(folder: Path):
    async with benched(folder) as bench:
        await bench.text("Bash", command="echo $$ > pid; sleep 300", background=True)
        async with asyncio.timeout(10):
            while not (folder / "pid").exists() or not (folder / "pid").read_text():
                await asyncio.sleep(0.01)
    await _is_gone(int((folder / "pid").read_text()))


ESCAPES = {
    "setsid": "setsid sh -c 'echo $$ > pid; exec sleep 300' > /dev/null 2>&1 &",
    "forked twice": "(setsid sh -c 'echo $$ > pid; exec sleep 300' > /dev/null 2>&1 &) &",
}
"""Commands that leave the process group."""
_HAS_STARTED = "until [ -s pid ]; do sleep 0.01; done"


@pytest.mark.parametrize("command", ESCAPES.values(), ids=ESCAPES)
async def test_processes_left_by_a_command_in_another_session_end_with_the_conversation(
    folder: Path, command: str
):
    async with benched(folder) as bench:
        await bench.text("Bash", command=f"{command}\n{_HAS_STARTED}")
        pid = int((folder / "pid").read_text())
        assert await bench.text("Bash", command=f"kill -0 {pid} && echo alive") == "alive"
    facts = read_process(pid)
    assert facts is None or not facts.is_alive


async def test_a_call_does_not_wait_for_processes_left_by_its_command(folder: Path):
    async with asyncio.timeout(20), benched(folder) as bench:
        assert await bench.text("Bash", command="setsid sleep 300 & echo started") == "started"
        assert await bench.text("Bash", command="setsid sleep 300 & exec sleep 300", timeout_seconds=0.2) == (
            "\n(The command was ended after 0.2 s, its time limit.)"
        )


async def test_a_process_without_the_marker_is_not_ended(folder: Path):
    async with benched(folder) as bench:
        await bench.text("Bash", command=f"env -u {MARKER} {ESCAPES['setsid']}\n{_HAS_STARTED}")
    facts = read_process(int((folder / "pid").read_text()))
    assert facts is not None
    assert facts.is_alive
    assert signal_process(facts.pid, facts.started, KILL)


def test_processes_left_by_a_command_end_when_the_host_is_killed(tmp_path: Path) -> None:
    command = f"{ESCAPES['setsid']}\n{_HAS_STARTED}"
    program = f"""
import asyncio, os, signal
from pathlib import Path
from dragoman.agent.builtin.shell import Shell
from dragoman.agent.builtin.workspace import Workspace
from dragoman.transports.orphans import watchdog

async def main():
    bash = Shell(Workspace(Path({str(tmp_path)!r})), watchdog).tools()[0]
    await bash.run({{"command": {command!r}}})
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    deadline = time.monotonic() + 20
    while (facts := read_process(int((tmp_path / "pid").read_text()))) is not None and facts.is_alive:
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def _is_gone(pid: int) -> None:
    async with asyncio.timeout(10):
        while Path(f"/proc/{pid}").exists() and "Z" not in _state(pid):
            await asyncio.sleep(0.01)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_a_command_is_not_run_before_the_watchdog_has_its_pid(tmp_path: Path) -> None:
    """The host is killed in that moment."""
    ran = tmp_path / "ran"
    program = f"""
import asyncio, os, signal
from pathlib import Path
from dragoman.agent.builtin.shell import RunningCommand

class Killed:
    def watch(self, pid):
        print(pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(RunningCommand.start("touch {ran}", Path({str(tmp_path)!r}), "marker", Killed()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    deadline = time.monotonic() + 20
    while (facts := read_process(int(done.stdout))) is not None and facts.is_alive:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not ran.exists()
