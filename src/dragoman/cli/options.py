"""Options and arguments that several commands share, and how their values are parsed.

Reads `--mcp-config`, servers given as a URL or with `--stdio`, and `key=value` arguments.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click
import msgspec

from dragoman.cleaning import one_line
from dragoman.cli.agent.options import (
    ADD_DIR_KEY,
    MCP_CONFIG,
    MCP_CONFIG_KEY,
    MCP_CONFIG_OPTIONS,
    STRICT_KEY,
    remember,
)
from dragoman.cli.commands.completion import complete_server
from dragoman.cli.main import JSON_KEY
from dragoman.config import jsonc
from dragoman.config.file_reading import misread, parse_object, read_text
from dragoman.config.model import parse_servers
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigFileError

F = TypeVar("F", bound=Callable[..., Any])
ADHOC_KEY: Final = "dragoman.adhoc"
"""The key of the context for the server that was given as a URL or a command."""
_RUNNERS: Final = frozenset(
    {"bun", "bunx", "deno", "docker", "env", "node", "npm", "npx", "pipx", "pnpm", "python", "python3", "uv",
     "uvx", "exec", "run", "dlx", "x", "yarn", "sh", "bash"}
)  # fmt: skip
_ADDRESS: Final = re.compile(
    r"(localhost|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-fA-F:]+\])(:\d+)?(/\S*)?"
    r"|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*:\d{1,5}(/\S*)?"
    r"|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+/\S*"
)
DEMO = "demo"
IGNORE_BROKEN_SETTINGS = "--ignore-broken-settings"
IGNORE_BROKEN_KEY = "dragoman.ignore_broken_settings"
"""The key of the context that holds the value of the option."""


full_option = click.option("--full", is_flag=True, help="Do not cut lines.")
json_option = click.option(
    "--json", "as_json", is_flag=True, callback=remember(JSON_KEY), help="Print JSON for programs."
)
server_option = click.option(
    "--server", metavar="NAME", shell_complete=complete_server, help="Only this server."
)
scope_option = click.option(
    "-s",
    "--scope",
    type=click.Choice(["local", "user", "project"]),
    help="local: you, in this project. user: you, everywhere. project: everyone, in .mcp.json.",
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask; deny rules still apply.")
_ADDED_SERVERS: Final = (
    click.option(
        IGNORE_BROKEN_SETTINGS,
        is_flag=True,
        expose_value=False,
        callback=remember(IGNORE_BROKEN_KEY),
        help="For this run, ignore settings files that cannot be read, including their deny rules.",
    ),
    click.option(
        "--add-dir",
        multiple=True,
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        expose_value=False,
        callback=remember(ADD_DIR_KEY),
        help="Another folder that servers get as a root. Repeatable.",
    ),
    *MCP_CONFIG_OPTIONS,
)


def mcp_config_option(function: F) -> F:
    """The options that add servers; their values are stored in the context, for `sources_of`."""
    return added_servers_option(stdio_option(function))


def added_servers_option(function: F) -> F:
    """The options that add servers, without --stdio."""
    for option in _ADDED_SERVERS:
        function = option(function)
    return function


def added_folders() -> tuple[Path, ...]:
    """The folders of --add-dir."""
    context = click.get_current_context(silent=True)
    return () if context is None else context.meta.get(ADD_DIR_KEY, ())


def frozen_option(function: F) -> F:
    """Adds the parameter `frozen`: the lock file, if tools that differ from it are to be left out."""

    def found(context: click.Context, parameter: click.Parameter, wanted: bool) -> Path | None:
        if not wanted:
            return None
        from dragoman.catalog.lock import LOCK_FILE

        return Sources.here().project_root / LOCK_FILE

    help_text = "Omit tools that differ from .mcp.lock."
    return click.option("--frozen", is_flag=True, callback=found, help=help_text)(function)


def list_options(function: F) -> F:
    """The options and arguments of the lists of resources and prompts."""
    for option in (yes_option, full_option, server_option, json_option, mcp_config_option):
        function = option(function)
    return click.argument("words", nargs=-1, metavar="[SERVER|URL]", shell_complete=complete_server)(function)


# Servers that are given on the command line.


class AdhocServer(NamedTuple):
    """A server that is given on the command line and defined in no file."""

    name: str
    entry: Mapping[str, Any]


def is_url(word: str) -> bool:
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", word) is not None


def suggested_url(word: str) -> str | None:
    """The URL that a person may have meant by an address without a scheme, such as localhost:3000/mcp."""
    if is_url(word) or _ADDRESS.fullmatch(word) is None:
        return None
    host = re.split(r"[:/]", word, maxsplit=1)[0]
    is_local = word.startswith("[") or host == "localhost" or re.fullmatch(r"[\d.]+", host) is not None
    return f"{'http' if is_local else 'https'}://{word}"


def transport_of_url(url: str) -> str:
    """The type: WebSocket by the scheme, HTTP+SSE by its usual path, otherwise streamable HTTP."""
    if url.lower().startswith("ws"):
        return "ws"
    return "sse" if url.partition("?")[0].rstrip("/").endswith("/sse") else "http"


def server_from_url(url: str) -> AdhocServer:
    """A remote server, named after its host."""
    rest = url.partition("://")[2]
    host = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    return AdhocServer(_as_name(host), {"type": transport_of_url(url), "url": url})


def server_from_command(command: str) -> AdhocServer:
    """A local server, named after the program or package that is run."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise click.UsageError(f"--stdio: the command cannot be read: {error}") from None
    if not words:
        raise click.UsageError("--stdio needs a command")
    if is_url(words[0]):
        raise click.UsageError(f"--stdio takes a command; give the URL without it: {one_line(words[0])}")
    candidates = (word for word in words if not word.startswith("-") and "=" not in word)
    main = next((word for word in candidates if _program_name(word) not in _RUNNERS), words[0])
    return AdhocServer(_as_name(_program_name(main)), {"command": words[0], "args": words[1:]})


def _program_name(word: str) -> str:
    """`@scope/package@1.2` is `package`, `build/index.js` is `index`."""
    last = word.rstrip("/").rpartition("/")[2] or word
    return re.sub(r"(?<=.)(@.*|\.(py|js|mjs|cjs|ts|sh|exe))$", "", last)


def _as_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]+", "-", text).strip("-")[:40] or "server"


def stdio_option(function: F) -> F:
    def take(context: click.Context, parameter: click.Parameter, command: str | None) -> None:
        if command is not None:
            context.meta[ADHOC_KEY] = server_from_command(command)

    return click.option(
        "--stdio",
        metavar="COMMAND",
        expose_value=False,
        is_eager=True,
        callback=take,
        help="Use only the server that COMMAND starts. It needs no configuration.",
    )(function)


def adhoc_server() -> AdhocServer | None:
    """The server that was given as a URL or with --stdio; None if there is none."""
    return click.get_current_context().meta.get(ADHOC_KEY)


def change_adhoc_server(entry: Mapping[str, Any]) -> None:
    """Replaces the entry of the server that was given on the command line."""
    meta = click.get_current_context().meta
    meta[ADHOC_KEY] = meta[ADHOC_KEY]._replace(entry=entry)


def take_url(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words without a URL at the beginning, which becomes the only server of this command."""
    if not words:
        return words
    context = click.get_current_context()
    if is_url(words[0]):
        if ADHOC_KEY in context.meta:
            raise click.UsageError("give a URL or --stdio, not both")
        context.meta[ADHOC_KEY] = server_from_url(words[0])
        return words[1:]
    if meant := suggested_url(words[0]):
        raise click.UsageError(f"{words[0]} has no scheme; did you mean {meant}?")
    return words


def chosen_server(named: str | None) -> str | None:
    """The only server that a command uses: given on the command line, or by its name."""
    given = adhoc_server()
    if given is not None and named not in (None, given.name):
        raise click.UsageError(
            "--server names a configured server: it cannot be combined with a URL or --stdio"
        )
    return given.name if given is not None else named


def named_server(words: tuple[str, ...], server: str | None) -> str | None:
    """The server that is given with `--server` or as the only word, for commands that take at most one."""
    words = take_url(words)
    if len(words) + (server is not None) > 1:
        raise click.UsageError("expected at most one server")
    return words[0] if words else server


def sources_of() -> Sources:
    """The configuration files, and the servers of the command line, which have precedence."""
    servers: dict[str, Any] = {}
    options = click.get_current_context().meta
    strict = bool(options.get(STRICT_KEY))
    for source in options.get(MCP_CONFIG_KEY, ()):
        servers.update(_read_source(source))
    if (adhoc := adhoc_server()) is not None:
        servers[adhoc.name], strict = adhoc.entry, True
    ignores = bool(options.get(IGNORE_BROKEN_KEY))
    return Sources.here(
        given=servers, given_source=MCP_CONFIG, only_given=strict, ignore_broken_settings=ignores
    )


def _read_source(source: str) -> Mapping[str, Any]:
    if source == DEMO:
        from dragoman.demo.server import demo_server

        return {DEMO: demo_server()}
    if is_url(source):
        return dict([server_from_url(source)])
    if (meant := suggested_url(source)) and not Path(source).exists():
        raise ConfigFileError(source, "there is no such file", hint=f"Did you mean {meant}?")
    if source.lstrip().startswith("{"):
        return parse_servers(_parse(source), MCP_CONFIG)
    return read_config_file(Path(source).expanduser())


def read_config_file(path: Path) -> Mapping[str, Any]:
    """The servers of a file in Dragoman's format or in that of another host."""
    text = read_text(path)
    if text is None:
        raise ConfigFileError(str(path), "there is no such file", hint="Give a file, or JSON text.")
    if path.suffix == ".toml":
        return _servers_of_other_host("codex", path, text)
    document = parse_object(path, text, comments=True)
    if "servers" in document and "mcpServers" not in document:
        return _servers_of_other_host("vscode", path, text)
    return parse_servers(document, str(path))


def _servers_of_other_host(format_key: str, path: Path, text: str) -> Mapping[str, Any]:
    from dragoman.config.interchange.formats import read

    return read(format_key, text, source=str(path)).servers


def _parse(text: str) -> Any:
    try:
        return jsonc.parse(text)
    except jsonc.SyntaxProblem as problem:
        raise misread(MCP_CONFIG, problem, "Correct the JSON.") from None


def read_arguments(words: tuple[str, ...]) -> tuple[str, ...]:
    """Replaces `@FILE` by the JSON object in that file and `-` by the one on stdin; other words stay."""
    if len(words) != 1 or not (words[0] == "-" or words[0].startswith("@")):
        return words
    path = None if words[0] == "-" else words[0][1:]
    try:
        data = sys.stdin.buffer.read() if path is None else Path(path).expanduser().read_bytes()
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise click.UsageError(
            f"{'stdin' if path is None else repr(path)} cannot be read: {reason}"
        ) from None
    text = text.lstrip("\ufeff").strip()
    if not text.startswith("{"):
        where = "stdin" if path is None else one_line(path)
        raise click.UsageError(f"expected one JSON object with the arguments in {where}")
    return (text,)


def parse_arguments(words: tuple[str, ...], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Parses arguments from one JSON object or from `key=value` words.

    A value that is valid JSON is parsed as JSON, unless the schema requires a string.
    """
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            value: Any = msgspec.json.decode(words[0].encode())
        except UnicodeEncodeError:
            raise click.UsageError("the arguments contain bytes that are not UTF-8 text") from None
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
    """Parses `name=value` words."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise click.UsageError(f"expected name=value, not {word!r}")
        found[name] = value
    return found


def one_pair(word: str) -> tuple[str, str]:
    ((name, value),) = pairs((word,)).items()
    return name, value


def _json_or_text(text: str) -> Any:
    try:
        return msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
