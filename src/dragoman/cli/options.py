"""Options that several commands share, and the values they become.

Reads `--mcp-config` and `key=value` arguments, and runs a host for one command. The host is imported only by
commands that connect.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from dragoman.cleaning import one_line
from dragoman.cli.common import adhoc_server, complete_server, is_url, server_at, stdio_option, url_meant
from dragoman.cli.main import JSON_WANTED
from dragoman.config import jsonc
from dragoman.config.merge import EXCLUSIVE
from dragoman.config.model import parse_servers
from dragoman.config.reading import parse_object, read_text
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigError, ConfigFileError

if TYPE_CHECKING:
    from dragoman.config.load import Configuration
    from dragoman.host import Host
    from dragoman.interaction import Interaction

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

DEMO = "demo"
MCP_CONFIG = "--mcp-config"
IGNORE_BROKEN_SETTINGS = "--ignore-broken-settings"
IGNORE_BROKEN = "dragoman.ignore_broken_settings"
"""Where that option is kept in the context."""


def ignore_broken_settings_option(function: F) -> F:
    """For commands that start servers; `sources_of` and `run_with_host` see to it."""

    def remember(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
        context.meta[IGNORE_BROKEN] = wanted

    return click.option(
        IGNORE_BROKEN_SETTINGS,
        is_flag=True,
        expose_value=False,
        callback=remember,
        help="For this run, ignore settings files that cannot be read, including their deny rules.",
    )(function)


def mcp_config_option(function: F) -> F:
    function = stdio_option(ignore_broken_settings_option(function))
    function = click.option(
        "--strict-mcp-config", "strict", is_flag=True, help="Only the servers of --mcp-config."
    )(function)
    return click.option(
        MCP_CONFIG,
        "given",
        multiple=True,
        metavar="FILE|JSON|URL",
        help='More servers: a file, JSON text with "mcpServers", a URL, or the word demo. Repeatable.',
    )(function)


def json_option(function: F) -> F:
    def remember(context: click.Context, parameter: click.Parameter, wanted: bool) -> bool:
        context.meta[JSON_WANTED] = wanted
        return wanted

    help_text = "Print JSON for programs."
    return click.option("--json", "as_json", is_flag=True, callback=remember, help=help_text)(function)


def server_option(function: F) -> F:
    return click.option("--server", metavar="NAME", shell_complete=complete_server, help="Only this server.")(
        function
    )


def frozen_option(function: F) -> F:
    """`frozen`: the lock file, if tools that differ from it are to be left out."""

    def found(context: click.Context, parameter: click.Parameter, wanted: bool) -> Path | None:
        if not wanted:
            return None
        from dragoman.catalog.lock import LOCK_FILE

        return Sources.here().project_root / LOCK_FILE

    help_text = "Omit tools that differ from .mcp.lock."
    return click.option("--frozen", is_flag=True, callback=found, help=help_text)(function)


def scope_option(function: F) -> F:
    return click.option(
        "-s",
        "--scope",
        type=click.Choice(["local", "user", "project"]),
        help="local: you, in this project. user: you, everywhere. project: everybody, in .mcp.json.",
    )(function)


def sources_of(given: tuple[str, ...], strict: bool = False) -> Sources:
    """The usual places and what the command line adds; a later source replaces a server of the same name."""
    servers: dict[str, Any] = {}
    for source in given:
        servers.update(_read_source(source))
    if (adhoc := adhoc_server()) is not None:
        servers[adhoc.name], strict = adhoc.entry, True
    ignores = bool(click.get_current_context().meta.get(IGNORE_BROKEN))
    return Sources.here(
        given=servers, given_source=MCP_CONFIG, only_given=strict, ignore_broken_settings=ignores
    )


def _read_source(source: str) -> Mapping[str, Any]:
    if source == DEMO:
        from dragoman.demo.server import demo_server

        return {DEMO: demo_server()}
    if is_url(source):
        return dict([server_at(source)])
    if (meant := url_meant(source)) and not Path(source).exists():
        raise ConfigFileError(source, "there is no such file", hint=f"Did you mean {meant}?")
    if source.lstrip().startswith("{"):
        return parse_servers(_parse(source), MCP_CONFIG)
    return read_config_file(Path(source).expanduser())


def read_config_file(path: Path) -> Mapping[str, Any]:
    """The servers of a file: our own form, or another host's that can be told from it."""
    text = read_text(path)
    if text is None:
        raise ConfigFileError(str(path), "there is no such file", hint="Give a file, or JSON text.")
    if path.suffix == ".toml":
        return _foreign("codex", path, text)
    document = parse_object(path, text, comments=True)
    if "servers" in document and "mcpServers" not in document:
        return _foreign("vscode", path, text)
    return parse_servers(document, str(path))


def _foreign(format_key: str, path: Path, text: str) -> Mapping[str, Any]:
    from dragoman.config.interchange.formats import read

    return read(format_key, text, source=str(path)).servers


def _parse(text: str) -> Any:
    try:
        return jsonc.parse(text)
    except jsonc.SyntaxProblem as problem:
        raise ConfigFileError(
            MCP_CONFIG, problem.reason, line=problem.line, column=problem.column, hint="Correct the JSON."
        ) from None


yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask; deny rules still apply.")


def read_arguments(words: tuple[str, ...]) -> tuple[str, ...]:
    """`@FILE` is the JSON object in that file, `-` the one that comes from stdin; other words stay."""
    if len(words) != 1 or not (words[0] == "-" or words[0].startswith("@")):
        return words
    if words[0] == "-":
        text = sys.stdin.read()
    else:
        try:
            text = Path(words[0][1:]).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise click.UsageError(f"{words[0][1:]!r} cannot be read: {reason}") from None
    text = text.lstrip("\ufeff").strip()
    if not text.startswith("{"):
        where = "stdin" if words[0] == "-" else one_line(words[0][1:])
        raise click.UsageError(f"expected one JSON object with the arguments in {where}")
    return (text,)


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


def pairs(words: tuple[str, ...]) -> dict[str, str]:
    """`name=value` words."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise click.UsageError(f"expected name=value, not {word!r}")
        found[name] = value
    return found


def one_pair(word: str) -> tuple[str, str]:
    """One `name=value` word."""
    ((name, value),) = pairs((word,)).items()
    return name, value


def _json_or_text(text: str) -> Any:
    try:
        return msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, RecursionError):
        return text


def is_watched() -> bool:
    """Whether a person sits there who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def run_with_host(
    sources: Sources | Mapping[str, Any],
    work: Callable[[Host], Awaitable[T]],
    *,
    only: Collection[str] | None = None,
    watch: bool = False,
    tool_lock: Path | None = None,
    interaction: Interaction | None = None,
    audit: bool | None = None,
) -> T:
    """Runs one command's work in an open host. A polite signal closes the host before the end.

    `interaction`: who is asked about calls. Without one the command makes none. `audit`: see `Host`.
    """
    import asyncio

    from dragoman.cli.interrupts import cancel_on_signals
    from dragoman.cli.render.servers import show_problem
    from dragoman.host import Host

    async def main() -> T:
        task = asyncio.current_task()
        if task is not None:
            cancel_on_signals(task)
        async with Host(
            sources,
            permission_mode="default",
            interaction=interaction,
            only=only,
            watch=watch,
            tool_lock=tool_lock,
            audit=audit,
        ) as host:
            for problem in host.problems:
                show_problem(problem)
            telling = asyncio.create_task(_tell(host)) if interaction is not None else None
            try:
                return await work(host)
            finally:
                if telling is not None:
                    await asyncio.sleep(0.01)  # what was just told is shown
                    telling.cancel()

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _tell(host: Host) -> None:
    """Shows what hooks have to say, and why one failed."""
    from dragoman.cli.render.progress import StatusLine
    from dragoman.cli.render.servers import show_problem
    from dragoman.events import HookReported

    async for event in host.events():
        if isinstance(event, HookReported):
            StatusLine.hide_current()
            show_problem(f"hook {event.hook} ({event.event}): {event.text}")


def check_readable(configuration: Configuration) -> None:
    """Raises `ConfigError` if nothing may be started or called because a file cannot be read."""
    if configuration.policy.broken is not None:
        raise ConfigError(
            f"nothing is started or called: {configuration.policy.broken}",
            hint="`dragoman mcp list`, `config explain` and `permissions list` still work.",
        )


def no_servers(configuration: Configuration) -> ConfigError:
    if configuration.is_exclusive:
        return ConfigError("no servers are configured", hint=f"{EXCLUSIVE[0].upper()}{EXCLUSIVE[1:]}.")
    return ConfigError(
        "no servers are configured",
        hint="Add one with `dragoman mcp add`, give a URL or --stdio COMMAND, or try --mcp-config demo.",
    )
