"""The local gateway: keeps the servers of one folder connected, and makes the calls of `dragoman call`.

Only its user can connect: the socket has mode 0600, in a folder of mode 0700, and the user of the peer is
checked with the kernel. The gateway ends when it was not used for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import secrets
from collections.abc import AsyncGenerator, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from filelock import FileLock, Timeout
from msgspec import Struct

from dragoman import paths
from dragoman.calls.tool_call import new_call_id
from dragoman.catalog.tools import ServerTool
from dragoman.cli import exit_codes
from dragoman.cli.commands.call import call_parts, exit_code_of, show_result
from dragoman.cli.common import find_tool
from dragoman.cli.local_gateway.endpoint import (
    PATH_LIMIT_BYTES,
    Stamp,
    environment_digest,
    has_sockets,
    is_own_peer,
    socket_path,
    stamps,
)
from dragoman.cli.local_gateway.questions import CallingTerminals, Relay
from dragoman.cli.options import is_url, parse_arguments, suggested_url
from dragoman.cli.render.columns import COLUMNS
from dragoman.cli.render.text import report_error
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigError, DragomanError
from dragoman.host import Host
from dragoman.version import VERSION
from dragoman.wire.peer import Progress


class CallerTerminal(Struct, frozen=True):
    """The properties of the terminal of a command, as the command reports them."""

    terminals: tuple[bool, bool] = (False, False)
    """Whether stdout and stderr are terminals."""
    columns: int = 80
    plain: bool = False
    """Whether colours are left out."""
    animated: bool = False
    """Whether progress can be shown."""


Output = list[tuple[bool, str]]
"""Texts in their order; True marks those for stderr."""


class _Stream(io.StringIO):
    def __init__(self, output: Output, *, is_error: bool, is_terminal: bool) -> None:
        super().__init__()
        self._output = output
        self._is_error = is_error
        self._is_terminal = is_terminal

    def write(self, text: str, /) -> int:
        super().write(text)  # raises for bytes: click uses that to detect a text stream
        self._output.append((self._is_error, text))
        return len(text)

    def isatty(self) -> bool:
        return self._is_terminal


def rendered(terminal: CallerTerminal, show: Callable[[], Any]) -> Output:
    """The output of a function. The function must not wait, because the streams of this process are replaced
    until it returns."""
    output: Output = []
    out, err = (
        _Stream(output, is_error=is_error, is_terminal=terminal.terminals[is_error])
        for is_error in (False, True)
    )
    token = COLUMNS.set(terminal.columns)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            click.Context(click.Command("call"), color=False if terminal.plain else None),
        ):
            show()
    finally:
        COLUMNS.reset(token)
    return output


LINE_LIMIT_BYTES: Final = 16 * 1024 * 1024
UNREAD_BYTES: Final = 256 * 1024
"""If more bytes wait for a command that does not read them, progress is not sent to it."""


class RequestedCall(CallerTerminal, frozen=True):
    """A call that a command requests."""

    words: tuple[str, ...] = ()
    json: bool = False
    yes: bool = False
    timeout: float | None = None
    outdated: bool = False
    """Whether the command makes the call itself, because the configuration files have changed."""


class _Declined(Exception):
    """The command has to make the call itself, because it can ask for approval and report problems."""


def files_of(sources: Sources) -> dict[str, Stamp]:
    """The configuration files with their stamps."""
    return stamps(map(str, (*sources.watched_files(), sources.plugins_dir)))


class LocalGateway:
    def __init__(
        self, host: Host, sources: Sources, terminals: CallingTerminals, files: dict[str, Stamp]
    ) -> None:
        """`terminals`: the host's interaction. `files`: their stamps from before the host read them."""
        self._host = host
        self._sources = sources
        self._terminals = terminals
        self._files = files
        self._salt = secrets.token_hex(16)
        self._environment = environment_digest(self._salt)
        self._reloading = asyncio.Lock()
        self._connected = 0
        """The number of connected commands."""
        self._used = asyncio.Event()

    async def run(self, idle_seconds: float) -> None:
        """Serves commands until none has connected for this time."""
        while True:
            self._used.clear()
            try:
                async with asyncio.timeout(idle_seconds):
                    await self._used.wait()
            except TimeoutError:
                if not self._connected:
                    return

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connected += 1
        self._used.set()
        try:
            if is_own_peer(writer.get_extra_info("socket")):
                await self._serve(reader, writer)
        except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
            pass  # the command has ended, or is another program
        finally:
            self._connected -= 1
            self._used.set()
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def send(message: dict[str, Any]) -> None:
            writer.write(json.dumps(message).encode() + b"\n")

        send(
            {
                "version": VERSION,
                "cwd": str(self._sources.cwd),
                "salt": self._salt,
                "environment": self._environment,
                "files": self._files,
            }
        )
        asked = msgspec.json.decode(await reader.readline(), type=RequestedCall, strict=False)
        if asked.outdated:
            await self._reload()
            return
        try:
            tool, arguments = self._find_tool(asked)
        except (_Declined, DragomanError, click.ClickException):
            send({"declined": True})
            return
        send({"accepted": True})
        if not await reader.readline():  # the command stopped waiting, and makes the call itself
            return

        def progressed(progress: Progress) -> None:
            if asked.animated and writer.transport.get_write_buffer_size() < UNREAD_BYTES:
                send({"progress": [progress.progress, progress.total, progress.message]})

        relay = Relay(send)
        calling = asyncio.create_task(self._make_call(asked, tool, arguments, relay, progressed))
        answering = asyncio.create_task(_take_answers(reader, relay))
        try:
            await asyncio.wait([calling, answering], return_when=asyncio.FIRST_COMPLETED)
            if calling.done():
                send(calling.result())
                await writer.drain()
        finally:  # the end of the command cancels its call
            for task in (calling, answering):
                task.cancel()
            await asyncio.gather(calling, answering, return_exceptions=True)

    async def _reload(self) -> None:
        """Reads the configuration files again, if they have changed."""
        async with self._reloading:
            files = files_of(self._sources)
            if files != self._files:
                await self._host.reload()
                self._files = files

    def _find_tool(self, asked: RequestedCall) -> tuple[ServerTool, dict[str, Any]]:
        """The tool and its arguments. After an error the command makes the call itself, and reports it."""
        if not asked.words or is_url(asked.words[0]) or suggested_url(asked.words[0]):
            raise _Declined
        only, name, words = call_parts(asked.words, self._host.configuration)
        tool = find_tool(self._host, name, only)
        if tool is None or self._host.servers[tool.server].status != "connected" or words == ("-",):
            raise _Declined
        return tool, parse_arguments(words, tool.input_schema)

    async def _make_call(
        self,
        asked: RequestedCall,
        tool: ServerTool,
        arguments: dict[str, Any],
        relay: Relay,
        on_progress: Callable[[Progress], None],
    ) -> dict[str, Any]:
        call_id = new_call_id()
        self._terminals.add(call_id, relay.ask, yes=asked.yes)
        try:
            outcome = await self._host.call(
                tool.name,
                arguments,
                timeout_seconds=asked.timeout,
                on_progress=on_progress,
                raw=True,
                moves_tasks_only=True,
                call_id=call_id,
            )
        except DragomanError as error:
            output = rendered(asked, partial(report_error, error, as_json=asked.json))
            return {"exit": exit_codes.for_error(error), "output": output}
        finally:
            self._terminals.remove(call_id)
        output = rendered(asked, lambda: show_result(outcome, as_json=asked.json, output=None))
        return {"exit": exit_code_of(outcome), "output": output}


async def _take_answers(reader: asyncio.StreamReader, relay: Relay) -> None:
    """Receives answers until the command ends."""
    while line := await reader.readline():
        relay.take(json.loads(line))


@contextlib.asynccontextmanager
async def listening(gateway: LocalGateway, cwd: Path) -> AsyncGenerator[None]:
    """Accepts commands while the context is open. Raises `ConfigError` if another gateway does so."""
    if not has_sockets():
        raise ConfigError(
            "--local needs unix sockets, which this system does not have",
            hint="`dragoman call` works without it.",
        )
    path = socket_path(str(cwd))
    if len(str(path).encode()) > PATH_LIMIT_BYTES:
        raise ConfigError(f"the path of the socket is too long: {path}", hint="Set DRAGOMAN_CONFIG_DIR.")
    paths.make_private(path.parent)
    lock = FileLock(f"{path}.lock", mode=0o600)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ConfigError(
            f"a local gateway for {cwd} is running already",
            hint="`dragoman call` uses it. Ctrl-C in its terminal ends it.",
        ) from None
    try:
        path.unlink(missing_ok=True)  # left by a gateway that was killed
        server = await asyncio.start_unix_server(gateway.handle, path, limit=LINE_LIMIT_BYTES)
        path.chmod(0o600)
        try:
            yield
        finally:
            server.close()
            path.unlink(missing_ok=True)
    finally:
        lock.release()
