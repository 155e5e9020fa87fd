"""Options that several commands share, and what they are turned into.

I own: reading `--mcp-config`, `key=value` arguments, and running a host for one command.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from dragoman.cli.main import JSON_WANTED
from dragoman.config.model import parse_servers
from dragoman.errors import ConfigError
from dragoman.host import Host

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

DEMO = "demo"


def mcp_config_option(function: F) -> F:
    return click.option(
        "--mcp-config",
        "sources",
        multiple=True,
        metavar="FILE|JSON",
        help='Servers to use: a file, JSON text with "mcpServers", or the word demo. May be repeated.',
    )(function)


def json_option(function: F) -> F:
    def remember(context: click.Context, parameter: click.Parameter, wanted: bool) -> bool:
        context.meta[JSON_WANTED] = wanted
        return wanted

    help_text = "Print JSON for programs."
    return click.option("--json", "as_json", is_flag=True, callback=remember, help=help_text)(function)


def read_servers(sources: tuple[str, ...]) -> dict[str, Any]:
    """The servers of all sources; a later source replaces a server of the same name."""
    if not sources:
        raise ConfigError(
            "no servers are configured",
            hint="Give --mcp-config FILE, or try it with --mcp-config demo.",
        )
    servers: dict[str, Any] = {}
    for source in sources:
        servers.update(_read_source(source))
    return servers


def _read_source(source: str) -> Mapping[str, Any]:
    if source == DEMO:
        from dragoman.demo.server import demo_server

        return {DEMO: demo_server()}
    if source.lstrip().startswith("{"):
        return parse_servers(_decode(source.encode(), "--mcp-config"), "--mcp-config")
    path = Path(source).expanduser()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{source}: {error.strerror}", hint="Give a file, or JSON text.") from None
    return parse_servers(_decode(data, source), source)


def _decode(data: bytes, source: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{source}: {_place(data, str(error))}", hint="Correct the JSON.") from None


def _place(data: bytes, message: str) -> str:
    """The decoder's message with the place as line and column; the end, where the text breaks off."""
    what, _, digits = message.partition(" (byte ")
    number = digits.rstrip(")")
    before = data[: int(number)] if number.isdigit() else data
    lines = before.decode("utf-8", "replace").split("\n")
    return f"line {len(lines)}, column {len(lines[-1]) + 1}: {what}"


def parse_arguments(words: tuple[str, ...], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments from one JSON object or from `key=value` words.

    A value is taken as JSON where it is JSON, unless the schema wants a string there.
    """
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            value: Any = msgspec.json.decode(words[0].encode())
        except (msgspec.DecodeError, RecursionError) as error:
            raise click.UsageError(f"the arguments are not valid JSON: {error}") from None
        return value
    arguments: dict[str, Any] = {}
    properties: Mapping[str, Any] = schema.get("properties") or {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise click.UsageError(f"expected key=value or a JSON object, not {word!r}")
        wanted: Any = properties.get(key)
        kind = wanted.get("type") if isinstance(wanted, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        arguments[key] = text if kind == "string" else _json_or_text(text)
    return arguments


def _json_or_text(text: str) -> Any:
    try:
        return msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, RecursionError):
        return text


def run_with_host(servers: Mapping[str, Any], work: Callable[[Host], Awaitable[T]]) -> T:
    """Runs one command's work in an open host. A polite signal closes the host before the end."""

    async def main() -> T:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        if task is not None:
            for number in (signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, task.cancel)
        async with Host(servers, permission_mode="bypassPermissions") as host:
            return await work(host)

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
