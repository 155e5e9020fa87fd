"""What several commands share: servers given on the command line alone, tools by the names people type."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click
import msgspec
from click.shell_completion import CompletionItem

from dragoman import paths
from dragoman.catalog.naming import LIMIT, prefix
from dragoman.cleaning import one_line
from dragoman.config.reading import read_bytes
from dragoman.errors import ConfigFileError, DragomanError, NotConnected, UnknownTool
from dragoman.names import RESERVED
from dragoman.wire.codec import DECODE_ERRORS

if TYPE_CHECKING:
    from dragoman.catalog.tools import ServerTool
    from dragoman.config.load import Configuration
    from dragoman.host import Host

F = TypeVar("F", bound=Callable[..., Any])

ADHOC: Final = "dragoman.adhoc"
"""Where the context keeps the server that was given as a URL or a command."""

_RUNNERS: Final = frozenset(
    {"bun", "bunx", "deno", "docker", "env", "node", "npm", "npx", "pipx", "pnpm", "python", "python3", "uv",
     "uvx", "exec", "run", "dlx", "x", "yarn", "sh", "bash"}
)  # fmt: skip
_ADDRESS: Final = re.compile(
    r"(localhost|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-fA-F:]+\])(:\d+)?(/\S*)?"
    r"|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*:\d{1,5}(/\S*)?"
    r"|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+/\S*"
)


class AdhocServer(NamedTuple):
    """A server that is in no file."""

    name: str
    entry: Mapping[str, Any]


def is_url(word: str) -> bool:
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", word) is not None


def url_meant(word: str) -> str | None:
    """The URL that a person may have meant by an address without a scheme, such as localhost:3000/mcp."""
    if is_url(word) or _ADDRESS.fullmatch(word) is None:
        return None
    host = re.split(r"[:/]", word, maxsplit=1)[0]
    is_local = word.startswith("[") or host == "localhost" or re.fullmatch(r"[\d.]+", host) is not None
    return f"{'http' if is_local else 'https'}://{word}"


def transport_in(url: str) -> str:
    """WebSocket by its scheme, HTTP+SSE by the path everybody uses for it, else streamable HTTP."""
    if url.lower().startswith("ws"):
        return "ws"
    return "sse" if url.partition("?")[0].rstrip("/").endswith("/sse") else "http"


def server_at(url: str) -> AdhocServer:
    """A remote server, named after its host."""
    rest = url.partition("://")[2]
    host = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    return AdhocServer(_as_name(host), {"type": transport_in(url), "url": url})


def server_of(command: str) -> AdhocServer:
    """A local server, named after the program or package that is run."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise click.UsageError(f"--stdio: the command cannot be read: {error}") from None
    if not words:
        raise click.UsageError("--stdio needs a command")
    if is_url(words[0]):
        raise click.UsageError(f"--stdio takes a command; give the URL without it: {one_line(words[0])}")
    telling = (word for word in words if not word.startswith("-") and "=" not in word)
    main = next((word for word in telling if _stem(word) not in _RUNNERS), words[0])
    return AdhocServer(_as_name(_stem(main)), {"command": words[0], "args": words[1:]})


def _stem(word: str) -> str:
    """`@scope/package@1.2` is `package`, `build/index.js` is `index`."""
    last = word.rstrip("/").rpartition("/")[2] or word
    return re.sub(r"(?<=.)(@.*|\.(py|js|mjs|cjs|ts|sh|exe))$", "", last)


def _as_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]+", "-", text).strip("-")[:40] or "server"


def stdio_option(function: F) -> F:
    def remember(context: click.Context, parameter: click.Parameter, command: str | None) -> None:
        if command is not None:
            context.meta[ADHOC] = server_of(command)

    return click.option(
        "--stdio",
        metavar="COMMAND",
        expose_value=False,
        is_eager=True,
        callback=remember,
        help="Only this server, without configuration: COMMAND is started for it.",
    )(function)


def adhoc_server() -> AdhocServer | None:
    """The server that was given as a URL or with --stdio."""
    return click.get_current_context().meta.get(ADHOC)


def without_url(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words without a URL that stands first. It is the only server of this command then."""
    if not words:
        return words
    context = click.get_current_context()
    if is_url(words[0]):
        if ADHOC in context.meta:
            raise click.UsageError("give a URL or --stdio, not both")
        context.meta[ADHOC] = server_at(words[0])
        return words[1:]
    if meant := url_meant(words[0]):
        raise click.UsageError(f"{words[0]} has no scheme; did you mean {meant}?")
    return words


def chosen_server(named: str | None) -> str | None:
    """The one server that a command is about: given ad hoc, or by its name."""
    given = adhoc_server()
    if given is not None and named not in (None, given.name):
        raise click.UsageError("--server chooses among configured servers; a URL or --stdio is one by itself")
    return given.name if given is not None else named


def named_server(words: tuple[str, ...], server: str | None) -> str | None:
    """For commands that take at most one server, by `--server` or as their only word."""
    words = without_url(words)
    if len(words) + (server is not None) > 1:
        raise click.UsageError("expected at most one server")
    return words[0] if words else server


def full_option(function: F) -> F:
    return click.option("--full", is_flag=True, help="Do not cut lines.")(function)


# Names for shells to complete. Nothing is started for them.


def complete_server(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The names of configured servers, as the files have them."""
    return _items(_configured(), incomplete)


def complete_tool(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """For the first word of a call: tools as they were last seen, and servers."""
    if context.params.get(parameter.name or ""):
        return []
    servers = _configured()
    known = _remembered()
    tools = (tool for server in servers for tool in known.get(server, ()))
    return _items([*tools, *servers], incomplete)


def _items(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    # A name that a shell, a terminal or a command could take for something else (an option) is not proposed.
    safe = (name for name in names if re.fullmatch(r"[\w.@:+][\w.@:+-]*", name, re.ASCII))
    return [CompletionItem(name) for name in dict.fromkeys(safe) if name.startswith(incomplete)]


def _configured() -> list[str]:
    from dragoman.config.load import load
    from dragoman.config.scopes import Sources

    try:
        return list(load(Sources.here()).servers)
    except (DragomanError, OSError):
        return []


def _remembered() -> dict[str, list[str]]:
    try:
        return msgspec.json.decode(read_bytes(_names_file()) or b"{}", type=dict[str, list[str]])
    except (ConfigFileError, *DECODE_ERRORS):
        return {}


def remember_tools(host: Host) -> None:
    """Keeps the names of tools for completion. Servers of the command line alone are not kept."""
    seen = {
        view.name: [str(tool.name) for tool in all_tools(host) if tool.server == view.name]
        for view in host.servers.values()
        if view.status == "connected" and view.scope != "dynamic"
    }
    known = _remembered()
    if not seen or all(known.get(name) == names for name, names in seen.items()):
        return
    path = _names_file()
    with contextlib.suppress(OSError):  # a convenience: it may be lost
        paths.make_private(path.parent)
        temporary = path.with_name(f".{path.name}-{os.getpid()}")
        temporary.write_bytes(msgspec.json.encode({**known, **seen}))
        os.replace(temporary, path)


def _names_file() -> Path:
    return paths.state_dir() / "tool-names.json"


# Tools by the names that people type.


def all_tools(host: Host) -> list[ServerTool]:
    """Every tool, also those for apps only and those that a rule denies: people are told why a call fails."""
    return host.tools(include_app_tools=True, include_denied=True)


def servers_with(tool: str, configuration: Configuration) -> list[str] | None:
    """The servers that can have the tool, by its name; None for all of them, if it is a server's own name."""
    fitting = [name for name in configuration.servers if tool.startswith(prefix(name))]
    if not fitting and tool.startswith(RESERVED) and len(tool) < LIMIT and configuration.connectors is None:
        server = tool.removeprefix(RESERVED).partition("__")[0]
        near = difflib.get_close_matches(server, configuration.servers, 1)
        raise UnknownTool(tool, near=tuple(tool.replace(server, name, 1) for name in near))
    return fitting or None


def find_tool(host: Host, name: str) -> ServerTool | None:
    """The tool of that name, or the only one that its server calls so. `UsageError` if there are several."""
    known = all_tools(host)
    own = [tool for tool in known if tool.wire_name == name]
    found = [tool for tool in known if tool.name == name] or own
    if len(found) > 1:
        names = ", ".join(tool.name for tool in found)
        raise click.UsageError(f"several servers have a tool {name!r}; give its full name: {names}")
    return found[0] if found else None


def unknown_tool(host: Host, name: str) -> UnknownTool:
    """With the names that may have been meant."""
    names = {str(spelled): tool.name for tool in all_tools(host) for spelled in (tool.wire_name, tool.name)}
    near = difflib.get_close_matches(name, names, n=3)
    return UnknownTool(name, near=tuple(dict.fromkeys(names[each] for each in near)))


def raise_if_failed(host: Host) -> None:
    """A tool may be missing only because its server is; then that is the error to tell."""
    for view in host.servers.values():
        if view.error is not None:
            raise view.error
        if view.status in ("pending", "disabled"):
            hint = "`dragoman mcp approve` shows it and asks." if view.status == "pending" else None
            raise NotConnected(view.name, view.status, view.reason, hint=hint)


def has_unread_files(configuration: Configuration) -> bool:
    """Whether a file cannot be read, and the person did not say that this is to be ignored."""
    return bool(configuration.reading.failed) and not configuration.sources.ignore_broken_settings
