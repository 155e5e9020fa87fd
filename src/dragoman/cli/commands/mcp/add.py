"""`dragoman mcp add` and `add-json`: add a server given by a command, a URL or its JSON entry."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from typing import Any, Final, cast

import click

from dragoman.cli.commands.mcp.common import add_server, check_option, force_option
from dragoman.cli.options import is_url, json_option, scope_option, suggested_url, transport_of_url
from dragoman.cli.render.columns import echo_wrapped
from dragoman.cli.terminal_input import confirm, is_interactive
from dragoman.config import jsonc
from dragoman.transport_types import SELF_CONTAINED, transport_type


class OptionsBeforeCommand(click.Command):
    """Accepts options anywhere before the server's command. All words after the command are its arguments.

    After a URL, options may follow as well.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options: list[str] = []
        words: list[str] = []
        rest = list(args)
        while rest and not self._is_complete(words, options):
            word = rest.pop(0)
            if word == "--":
                words, rest = [*words, *rest], []
            elif word.startswith("-") and len(word) > 1:
                options.append(word)
                if rest and self._wants_value(ctx, word):
                    options.append(rest.pop(0))
            else:
                words.append(word)
        if rest[:1] == ["--"]:
            rest.pop(0)
        return super().parse_args(ctx, [*options, "--", *words, *rest])

    @staticmethod
    def _is_complete(words: list[str], options: list[str]) -> bool:
        names_transport = any(option in ("-t", "--transport") for option in options) and not any(
            map(_is_command, options)
        )
        return len(words) >= 2 and not names_transport and not is_url(words[1])

    def _wants_value(self, ctx: click.Context, word: str) -> bool:
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and word in parameter.opts:
                return not parameter.is_flag
        return False


SECRET_VARIABLE: Final = "MCP_CLIENT_SECRET"
"""The environment variable with the client secret; Claude Code uses the same name."""


@click.command("add", cls=OptionsBeforeCommand)
@click.argument("name")
@click.argument("command_or_url")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@scope_option
@click.option(
    "-e",
    "--env",
    multiple=True,
    metavar="KEY=VALUE",
    help="Environment variable for the command. Repeatable.",
)
@click.option(
    "-t",
    "--transport",
    type=click.Choice(SELF_CONTAINED),
    help="Transport, if it cannot be derived from the URL.",
)
@click.option("-H", "--header", multiple=True, metavar='"KEY: VALUE"', help="HTTP header. Repeatable.")
@click.option("--client-id", metavar="ID", help="OAuth client id that was registered beforehand.")
@click.option(
    "--client-secret",
    is_flag=True,
    help=f"Ask for the client's secret (or take it from {SECRET_VARIABLE}) and store it in the keychain.",
)
@click.option("--issuer", metavar="URL", help="The authorization server that the client belongs to.")
@click.option("--callback-port", type=click.IntRange(1, 65535), help="Port of the loopback callback.")
@click.option("--xaa", is_flag=True, help="Sign in through the company's identity provider.")
@force_option
@check_option
@json_option
def command(
    name: str,
    command_or_url: str,
    args: tuple[str, ...],
    scope: str | None,
    env: tuple[str, ...],
    transport: str | None,
    header: tuple[str, ...],
    client_id: str | None,
    client_secret: bool,
    issuer: str | None,
    callback_port: int | None,
    xaa: bool,
    force: bool,
    check: bool,
    as_json: bool,
) -> None:
    """Adds the server NAME: a COMMAND with its ARGS, or a URL.

    \b
    dragoman mcp add files npx -y @modelcontextprotocol/server-filesystem /tmp
    dragoman mcp add -e 'TOKEN=${TOKEN}' -s user github -- npx -y server-github
    dragoman mcp add api https://example.com/mcp -H 'Authorization: Bearer ${TOKEN}'

    Options come before the server's command. Write secrets as ${VARIABLE}: the reference is stored, and
    expanded when the server is started.
    """
    command_or_url = _with_scheme(command_or_url, transport)
    oauth: dict[str, Any] = {
        key: value
        for key, value in (
            ("clientId", client_id),
            ("issuer", issuer),
            ("callbackPort", callback_port),
            ("xaa", xaa),
        )
        if value
    }
    if not _is_command(transport) and (transport or is_url(command_or_url)):
        _refuse_if(bool(env), "-e/--env applies to commands only")
        entry = _remote(command_or_url, args, transport, header)
        if client_secret:
            _refuse_if(client_id is None, "--client-secret needs --client-id")
            oauth["clientSecret"] = _read_secret()
        if oauth:
            entry["oauth"] = oauth
    else:
        _refuse_if(bool(oauth) or client_secret, "OAuth options apply to URLs only")
        _refuse_if(bool(header), "-H/--header applies to URLs only")
        _refuse_quoted_command(name, command_or_url, args)
        entry = _local(command_or_url, args, env)
        _warn_of_swallowed_options(args)
    add_server(name, entry, scope or "local", force=force, check=check, as_json=as_json)


def _local(program: str, args: tuple[str, ...], env: tuple[str, ...]) -> dict[str, Any]:
    entry: dict[str, Any] = {"command": program, "args": list(args)}
    if env:
        entry["env"] = dict(_pair("-e/--env", text, "=", "KEY=VALUE") for text in env)
    return entry


def _remote(
    url: str, args: tuple[str, ...], transport: str | None, header: tuple[str, ...]
) -> dict[str, Any]:
    _refuse_if(bool(args), "a URL takes no further arguments")
    _refuse_if(not is_url(url) and "${" not in url, f"--transport {transport} needs a URL")
    entry: dict[str, Any] = {"type": transport or transport_of_url(url), "url": url}
    if header:
        pairs = (_pair("-H/--header", text, ":", '"Key: Value"') for text in header)
        entry["headers"] = {key: value.strip() for key, value in pairs}
    return entry


def _read_secret() -> str:
    """Reads the client secret. Other users of the machine could see it on the command line."""
    secret = os.environ.get(SECRET_VARIABLE)
    if secret:
        return secret
    if not is_interactive():
        raise click.UsageError(f"without a terminal the client secret is read from {SECRET_VARIABLE}")
    return click.prompt("Client secret", hide_input=True, err=True)


def _is_command(transport: str | None) -> bool:
    return transport is not None and transport_type(transport).starts_command


def _with_scheme(word: str, transport: str | None) -> str:
    """Adds a scheme to an address without one, if the person confirms that it is a URL and not a command."""
    meant = suggested_url(word)
    if meant is None or _is_command(transport) or shutil.which(word) is not None:
        return word
    if is_interactive() and confirm(f"{word} has no scheme. Is it the URL {meant}?"):
        return meant
    raise click.UsageError(
        f"{word} has no scheme: write {meant} if it is a URL, or give --transport stdio if it is a command"
    )


def _refuse_quoted_command(name: str, program: str, args: tuple[str, ...]) -> None:
    """Refuses a whole command line in quotes, which is not the name of a program."""
    if args or " " not in program.strip() or shutil.which(program) is not None:
        return
    words = f"dragoman mcp add {shlex.quote(name)} -- {program}"
    raise click.UsageError(f"there is no program {program!r}; leave out the quotes: {words}")


_NAME_ALONE: Final = re.compile(r"[A-Z]+(?:_[A-Z]+)*|[A-Z][A-Za-z]*(?:-[A-Z][A-Za-z]*)*")
"""A usual name of a variable or a header. Any other word may be a secret and is not repeated."""


def _pair(option: str, text: str, mark: str, form: str) -> tuple[str, str]:
    key, found, value = text.partition(mark)
    given = f"{option} {text}" if _NAME_ALONE.fullmatch(text) else option
    _refuse_if(not found or not key.strip(), f"{given}: expected {form}")
    return key.strip(), value


def _refuse_if(wrong: bool, reason: str) -> None:
    if wrong:
        raise click.UsageError(reason)


_ADD_OPTIONS = frozenset(
    {"-s", "--scope", "--env", "--header", "--transport", "--force", "--check", "--json"}
    | {"--client-id", "--client-secret", "--issuer", "--callback-port", "--xaa"}
)


def _warn_of_swallowed_options(args: tuple[str, ...]) -> None:
    swallowed = [option for word in args if (option := word.partition("=")[0]) in _ADD_OPTIONS]
    if swallowed:
        text = f"{swallowed[0]} is passed to the server, because it comes after the command"
        echo_wrapped(text, label="! ", colour="yellow", err=True)


@click.command("add-json")
@click.argument("name")
@click.argument("entry")
@scope_option
@force_option
@check_option
@json_option
def add_json(name: str, entry: str, scope: str | None, force: bool, check: bool, as_json: bool) -> None:
    """Adds the server NAME with ENTRY, a JSON object as in configuration files.

    \b
    dragoman mcp add-json api '{"type": "http", "url": "https://example.com/mcp"}'
    """
    try:
        parsed: Any = jsonc.parse(entry)
    except jsonc.SyntaxProblem as problem:
        raise click.UsageError(f"the entry is not JSON: column {problem.column}: {problem.reason}") from None
    if not isinstance(parsed, dict):
        raise click.UsageError("the entry must be a JSON object")
    fields = cast("dict[str, Any]", parsed)
    add_server(name, fields, scope or "local", force=force, check=check, as_json=as_json)
