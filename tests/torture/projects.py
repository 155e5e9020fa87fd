"""Untrusted project folders, and the detection of anything in them that was started.

A `Canary` creates entries that write a file when they are started, a `Listener` counts connections, and
`invocations` finds every command of the program, with arguments that fit its parameters.
"""

import json
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import click

from dragoman.cli.main import cli
from dragoman.config import approval
from dragoman.config.load import Configuration, load
from dragoman.config.scopes import Sources
from tests.servers import SERVER_PROGRAMS

LIMIT_SECONDS = 40.0


class Canary:
    """Entries of working servers that write a file as soon as they are started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def entry(self, name: str, **fields: Any) -> dict[str, Any]:
        serve = shlex.join([sys.executable, "-S", "-E", str(SERVER_PROGRAMS / "well_behaved.py")])
        script = f"{self.script(name)}; exec {serve}"
        return {"command": "/bin/sh", "args": ["-c", script], **fields}

    def script(self, name: str) -> str:
        """A shell command that writes the file and does nothing else."""
        return f"echo x >> {shlex.quote(str(self._folder / name))}"

    @property
    def started(self) -> set[str]:
        return {path.name for path in self._folder.iterdir()}

    def forget(self) -> None:
        """Removes every file written so far."""
        for path in self._folder.iterdir():
            path.unlink()


class Listener:
    """A port of this machine.

    No connection is answered; connections wait in the backlog until they are counted.
    """

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self._count = 0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    @property
    def connections(self) -> int:
        while True:
            try:
                self._socket.accept()[0].close()
            except BlockingIOError:
                return self._count
            self._count += 1


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path


def servers(**entries: Any) -> dict[str, Any]:
    return {"mcpServers": entries}


def managed(home: Path, document: Mapping[str, Any]) -> Path:
    return write(home / "managed" / "managed-mcp.json", document)


def user(home: Path, document: Mapping[str, Any]) -> Path:
    return write(home / ".dragoman" / "settings.json", document)


def seen(cwd: Path | None = None, **options: Any) -> Configuration:
    return load(Sources.here(cwd, **options))


def eligibilities(cwd: Path | None = None, **options: Any) -> dict[str, str]:
    return {name: server.eligibility for name, server in seen(cwd, **options).servers.items()}


def approve(file: Path, name: str) -> None:
    """Approves the entry as it is now."""
    entry = json.loads(file.read_text())["mcpServers"][name]
    approval.remember(Sources.here().approvals_file, file, name, entry, "approved")


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=n@example.com", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, timeout=LIMIT_SECONDS)


def committed(folder: Path) -> Path:
    """The folder as a repository with everything in it committed, including ignored files."""
    git(folder, "init")
    git(folder, "add", "--force", "--all")
    git(folder, "commit", "-m", "x")
    return folder


# --- every command of the program ---


def leaves(group: click.Command = cli, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The words of each command, and the command."""
    if not isinstance(group, click.Group):
        yield words, group
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        yield from leaves(cast("click.Command", group.get_command(context, name)), (*words, name))


COMMANDS: dict[str, click.Command] = {" ".join(words): command for words, command in leaves()}

NEVER = ("--yes", "--watch")
"""An explicit `--yes` is an approval: a test that needs it adds it. And `--watch` does not end by itself."""


def invocations(command: str, names: Sequence[str]) -> Iterator[list[str]]:
    """The command with every combination that its parameters allow, one flag at a time, for every
    server's name."""
    words = command.split()
    if command == "serve":
        words.append("--stdio")  # which ends with its input
    yield [*words, "--help"]
    parameters = COMMANDS[command].get_params(click.Context(COMMANDS[command]))
    arguments = [each for each in parameters if isinstance(each, click.Argument)]
    plain = [*words, *_values(arguments, names, names[0])]
    if any(argument.name in ("name", "tool") or _is_for_one(argument) for argument in arguments):
        for name in names:
            yield [*words, *_values(arguments, names, name)]
    else:
        yield plain
    if any(not argument.required for argument in arguments):
        yield words
    for option in parameters:
        if isinstance(option, click.Option) and option.is_flag and option.opts[-1] not in ("--help", *NEVER):
            # Options are first: after its command, `mcp add` passes words to the server.
            yield [*words, option.opts[-1], *plain[len(words) :]]


def _is_for_one(argument: click.Argument) -> bool:
    """Words that name one server's tool or resource."""
    return argument.required and any(word in (argument.metavar or "") for word in ("TOOL", "URI"))


def _values(arguments: Iterable[click.Argument], names: Sequence[str], name: str) -> Iterator[str]:
    for argument in arguments:
        if isinstance(argument.type, click.Choice):
            yield str(argument.type.choices[0])
        elif argument.name == "tool":
            yield f"mcp__{name}__echo"
        elif _is_for_one(argument):
            yield from (
                (f"mcp__{name}__echo",) if "TOOL" in (argument.metavar or "") else (name, "book://divan")
            )
        elif argument.name == "entry":
            yield json.dumps({"command": "/bin/true"})
        elif argument.name == "command_or_url":
            yield "/bin/true"
        elif argument.name == "names":
            yield from names
        elif argument.required or argument.name == "name":
            yield name
