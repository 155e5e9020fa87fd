"""The tool Bash, with BashOutput and BashStop for commands in the background.

Each command runs in its own process group, without a terminal and without input. The whole group is killed
when the command has ended, at its time limit, when the call is cancelled, and when the host ends. Processes
that have left the group are found by a marker in their environment, and killed when the conversation ends.
The working directory is kept from one command to the next as long as it is inside the person's folders.
Permission rules judge the command as it is written; see `permissions/shell`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

from dragoman.agent.builtin.workspace import BuiltinToolError, Workspace
from dragoman.agent.models import SECRET_VARIABLES
from dragoman.calls.requests import object_schema
from dragoman.catalog.tools import BuiltinTool
from dragoman.processes import KILL, MARKER, signal_group, start_of
from dragoman.programs import search_path
from dragoman.transports.orphans import ProcessWatchdog

TIMEOUT_SECONDS: Final = 120.0
"""The time limit of a command if the call sets none."""
LONGEST_TIMEOUT_SECONDS: Final = 600.0
HEAD_BYTES: Final = 1024 * 1024
TAIL_BYTES: Final = 1024 * 1024
"""The most bytes of the beginning and of the end of the output that are kept. Output that is too large for a
model is saved like every large result."""
BACKGROUND_LIMIT: Final = 8
OUTPUT_END_SECONDS: Final = 0.25
"""How long the output may stay open after the command has ended: a child process may hold it open."""

_OWN_SECRETS: Final = (
    *("DRAGOMAN_SECRETS_PASSPHRASE", "MCP_CLIENT_SECRET"),
    *("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"),
)
_SECRETS: Final = SECRET_VARIABLES.union(_OWN_SECRETS)
"""Environment variables that commands of a model do not get."""
_SCRIPT: Final = """read -r _ || exit 1\nexec </dev/null\ntrap 'pwd -P > "$2"' EXIT\neval "$1\""""
"""Waits for a line on stdin, which is sent when the watchdog watches the command: if the host is killed
before that, the command is not run. Then it runs the command, and writes the final working directory to a
file."""


class Shell:
    """Runs the commands of one conversation."""

    def __init__(self, workspace: Workspace, watchdog: ProcessWatchdog) -> None:
        self._workspace = workspace
        self._watchdog = watchdog
        self._marker = ""
        """The marker in the environment of all commands; empty before the first one."""
        self._background: dict[str, RunningCommand] = {}
        self._numbers = itertools.count(1)

    def tools(self) -> list[BuiltinTool]:
        job = {"id": {"type": "string", "description": "The id that Bash returned"}}
        return [
            BuiltinTool(
                "Bash",
                self._run,
                description=(
                    "Runs a command in bash. The working directory is kept for the next command, variables "
                    "are not. There is no terminal and no input. The command is ended after "
                    f"timeout_seconds ({TIMEOUT_SECONDS:g} if left out). With background=true the call "
                    "returns at once, and BashOutput shows what the command prints."
                ),
                input_schema=object_schema(
                    {
                        "command": {"type": "string", "minLength": 1},
                        "timeout_seconds": {
                            "type": "number",
                            "exclusiveMinimum": 0,
                            "maximum": LONGEST_TIMEOUT_SECONDS,
                        },
                        "background": {"type": "boolean", "description": "false if left out"},
                    },
                    "command",
                ),
                annotations={"destructiveHint": True, "openWorldHint": True},
                shell_argument="command",
                shell_folder=self._other_folder,
            ),
            BuiltinTool(
                "BashOutput",
                self._show,
                description="Shows what a command in the background has printed since the last time.",
                input_schema=object_schema(job, "id"),
                annotations={"readOnlyHint": True, "openWorldHint": False},
                needs_permission=False,
            ),
            BuiltinTool(
                "BashStop",
                self._stop,
                description="Ends a command in the background.",
                input_schema=object_schema(job, "id"),
                annotations={"destructiveHint": True, "openWorldHint": False},
                needs_permission=False,
            ),
        ]

    async def close(self) -> None:
        """Ends all commands in the background, and all processes that commands have left running."""
        await asyncio.gather(*(command.end() for command in self._background.values()))
        self._background.clear()
        marker, self._marker = self._marker, ""
        if marker:
            await asyncio.to_thread(self._watchdog.end_held, marker)

    async def _run(self, arguments: Mapping[str, Any]) -> str:
        if arguments.get("background") is True:
            return await self._start_in_background(str(arguments["command"]))
        seconds = float(arguments.get("timeout_seconds", TIMEOUT_SECONDS))
        command = await self._start(str(arguments["command"]))
        try:
            async with asyncio.timeout(seconds):
                await command.wait()
        except TimeoutError:
            await command.end()
            return f"{command.output.take()}\n(The command was ended after {seconds:g} s, its time limit.)"
        finally:
            await command.end()
        return self._result(command)

    def _result(self, command: RunningCommand) -> str:
        text = command.output.take()
        parts = [text] if text else []
        if command.exit_code:
            parts.append(f"(exit code {command.exit_code})")
        if (moved := self._move(command.folder)) is not None:
            parts.append(moved)
        return "\n".join(parts) or "(no output)"

    def _other_folder(self) -> str:
        """The folder in which the next command runs, if it is not the person's working directory."""
        folder = self._folder
        return "" if folder == self._workspace.folder else str(folder)

    @property
    def _folder(self) -> Path:
        return self._workspace.cwd if self._workspace.cwd.is_dir() else self._workspace.folder

    def _move(self, folder: str) -> str | None:
        """Makes the final folder of a command the working directory, if it is inside the person's folders."""
        path = Path(folder)
        if not folder or path == self._workspace.cwd:
            return None
        if not self._workspace.contains(path):
            self._workspace.cwd = self._workspace.folder
            return (
                f"(The working directory is {self._workspace.folder} again, because {path} is outside the "
                "user's folders.)"
            )
        self._workspace.cwd = path
        return None

    async def _start(self, text: str) -> RunningCommand:
        self._marker = self._marker or self._watchdog.hold_marker()
        return await RunningCommand.start(text, self._folder, self._marker, self._watchdog)

    async def _start_in_background(self, text: str) -> str:
        ended = [name for name, command in self._background.items() if not command.is_running]
        if len(self._background) - len(ended) >= BACKGROUND_LIMIT:
            raise BuiltinToolError(
                f"{BACKGROUND_LIMIT} commands run in the background already. End one of them with BashStop."
            )
        for name in ended[:-BACKGROUND_LIMIT]:  # the output of the last commands is kept
            await self._background.pop(name).end()
        name = f"bash-{next(self._numbers)}"
        self._background[name] = await self._start(text)
        return f"Started in the background as {name}."

    async def _show(self, arguments: Mapping[str, Any]) -> str:
        command = self._find_command(arguments)
        text = command.output.take()
        state = "still running" if command.is_running else f"exit code {command.exit_code}"
        return f"{text or '(no new output)'}\n({state})"

    async def _stop(self, arguments: Mapping[str, Any]) -> str:
        command = self._find_command(arguments)
        del self._background[str(arguments["id"])]
        await command.end()
        return f"{command.output.take() or '(no new output)'}\n(ended)"

    def _find_command(self, arguments: Mapping[str, Any]) -> RunningCommand:
        command = self._background.get(str(arguments["id"]))
        if command is None:
            known = ", ".join(self._background) or "none"
            raise BuiltinToolError(f"no command in the background has this id; the ids are: {known}")
        return command


class RunningCommand:
    def __init__(
        self,
        process: asyncio.subprocess.Process,
        pipe: IO[bytes],
        folder_file: Path,
        watchdog: ProcessWatchdog,
    ) -> None:
        """`pipe`: the output of the command. It is not a pipe of the process object, because `wait` of that
        object would wait for every process that holds the pipe open."""
        self._process = process
        self._pipe = pipe
        self._started = start_of(process.pid)
        self._folder_file = folder_file
        self._watchdog = watchdog
        self._has_ended = False
        self.output = CommandOutput()
        self.folder = ""
        """The final working directory; empty if it is not known."""
        self._collecting = asyncio.create_task(self._collect(), name="dragoman command output")

    @staticmethod
    async def start(text: str, cwd: Path, marker: str, watchdog: ProcessWatchdog) -> RunningCommand:
        """Starts the command. Raises `OSError`."""
        reading, writing = os.pipe()
        pipe, folder_file = os.fdopen(reading, "rb", 0), ""
        program = shutil.which("bash", path=search_path()) or "/bin/sh"
        environment = {name: value for name, value in os.environ.items() if name not in _SECRETS}
        try:
            descriptor, folder_file = tempfile.mkstemp(prefix="dragoman-cwd-")
            os.close(descriptor)
            process = await asyncio.create_subprocess_exec(
                *(program, "-c", _SCRIPT, "bash", text, folder_file),
                stdin=asyncio.subprocess.PIPE,
                stdout=writing,
                stderr=asyncio.subprocess.STDOUT,
                cwd=cwd,
                env={**environment, MARKER: marker},
                start_new_session=True,
            )
        except BaseException:
            pipe.close()
            if folder_file:
                os.unlink(folder_file)
            raise
        finally:
            os.close(writing)
        watchdog.watch(process.pid)
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.close()
        return RunningCommand(process, pipe, Path(folder_file), watchdog)

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    @property
    def exit_code(self) -> int:
        return self._process.returncode or 0

    async def wait(self) -> None:
        await self._process.wait()
        await asyncio.wait([self._collecting], timeout=OUTPUT_END_SECONDS)

    async def end(self) -> None:
        """Kills every process of the group."""
        if self._has_ended:
            return
        self._has_ended = True
        signal_group(self._process.pid, self._started, KILL)
        with contextlib.suppress(OSError):
            self.folder = os.fsdecode(self._folder_file.read_bytes()).rstrip("\n")
            self._folder_file.unlink()
        self._collecting.cancel()
        try:
            await asyncio.wait([self._collecting])
            await self._process.wait()
        finally:
            self._pipe.close()
            self._watchdog.release(self._process.pid)

    async def _collect(self) -> None:
        reader, loop = asyncio.StreamReader(), asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self._pipe)
        try:
            while data := await reader.read(65536):
                self.output.add(data)
        finally:
            transport.close()


class CommandOutput:
    """The output of a command; only its beginning and its end, if it is too large."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > TAIL_BYTES:
            self._dropped += len(self._tail) - TAIL_BYTES
            del self._tail[: len(self._tail) - TAIL_BYTES]

    def take(self) -> str:
        """The output since the last call of this method."""
        middle = f"\n… {self._dropped} bytes left out …\n".encode() if self._dropped else b""
        text = bytes(self._head + middle + self._tail).decode("utf-8", "replace").rstrip("\n")
        self._head, self._tail, self._dropped = bytearray(), bytearray(), 0
        return text
