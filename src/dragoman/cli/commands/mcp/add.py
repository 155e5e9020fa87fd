"""`dragoman mcp add`: a server, in one line."""

from __future__ import annotations

import re
from typing import Any

import click

from dragoman.cli.adding import add_server, check_option, force_option
from dragoman.cli.options import json_option, scope_option


class WordsAfterCommand(click.Command):
    """Options stand anywhere before the server's own command; everything after it is the server's.

    After a URL nothing belongs to the server, so there options may follow as well.
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
        said = any(option in ("-t", "--transport") for option in options) and "stdio" not in options
        return len(words) >= 2 and not said and not is_url(words[1])

    def _wants_value(self, ctx: click.Context, word: str) -> bool:
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and word in parameter.opts:
                return not parameter.is_flag
        return False


def is_url(word: str) -> bool:
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", word) is not None


@click.command("add", cls=WordsAfterCommand, short_help="Add a server: a command, or a URL.")
@click.argument("name")
@click.argument("command_or_url")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@scope_option
@click.option("-e", "--env", multiple=True, metavar="KEY=VALUE", help="A variable for it. Repeatable.")
@click.option(
    "-t", "--transport", type=click.Choice(["stdio", "http", "sse", "ws"]), help="If the URL does not tell."
)
@click.option("-H", "--header", multiple=True, metavar='"KEY: VALUE"', help="A header. Repeatable.")
@click.option("--client-id", metavar="ID", help="OAuth client id.")
@click.option("--client-secret", metavar="SECRET", help="OAuth client secret; - asks for it.")
@click.option("--callback-port", type=click.IntRange(1, 65535), help="Port of the OAuth callback.")
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
    client_secret: str | None,
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

    Options stand before the server's command. Write secrets as ${VARIABLES}: they are kept as written, and
    filled in when the server is started.
    """
    oauth = _oauth(client_id, client_secret, callback_port, xaa)
    if transport != "stdio" and (transport or is_url(command_or_url)):
        _refuse("-e/--env is for commands", bool(env))
        entry = _remote(command_or_url, args, transport, header)
        if oauth:
            entry["oauth"] = oauth
    else:
        _refuse("headers and OAuth options need a URL", bool(header or oauth))
        entry = _local(command_or_url, args, env)
        _warn_of_swallowed_options(args)
    add_server(name, entry, scope or "local", force=force, check=check, as_json=as_json)


def _local(program: str, args: tuple[str, ...], env: tuple[str, ...]) -> dict[str, Any]:
    entry: dict[str, Any] = {"command": program, "args": list(args)}
    if env:
        entry["env"] = dict(_pair(text, "=", "KEY=VALUE") for text in env)
    return entry


def _remote(
    url: str, args: tuple[str, ...], transport: str | None, header: tuple[str, ...]
) -> dict[str, Any]:
    _refuse("a URL takes no further words", bool(args))
    _refuse(f"--transport {transport} needs a URL", not is_url(url) and "${" not in url)
    entry: dict[str, Any] = {"type": transport or transport_in(url), "url": url}
    if header:
        pairs = (_pair(text, ":", '"Key: Value"') for text in header)
        entry["headers"] = {key: value.strip() for key, value in pairs}
    return entry


def transport_in(url: str) -> str:
    """WebSocket by its scheme, HTTP+SSE by the path everybody uses for it, else streamable HTTP."""
    if url.lower().startswith("ws"):
        return "ws"
    return "sse" if url.partition("?")[0].rstrip("/").endswith("/sse") else "http"


def _oauth(
    client_id: str | None, client_secret: str | None, callback_port: int | None, xaa: bool
) -> dict[str, Any]:
    if client_secret == "-":
        client_secret = click.prompt("Client secret", hide_input=True, err=True)
    given = {"clientId": client_id, "clientSecret": client_secret, "callbackPort": callback_port}
    return {key: value for key, value in given.items() if value is not None} | ({"xaa": True} if xaa else {})


def _pair(text: str, mark: str, form: str) -> tuple[str, str]:
    key, found, value = text.partition(mark)
    # The word itself is not repeated: it may be the secret alone.
    _refuse(f"expected {form}", not found or not key.strip())
    return key.strip(), value


def _refuse(reason: str, wrong: bool) -> None:
    if wrong:
        raise click.UsageError(reason)


_OURS = frozenset({"-s", "--scope", "--env", "--header", "--transport", "--force", "--check", "--json"})


def _warn_of_swallowed_options(args: tuple[str, ...]) -> None:
    swallowed = [option for word in args if (option := word.partition("=")[0]) in _OURS]
    if swallowed:
        text = f"{swallowed[0]} is given to the server, since it follows its command"
        click.echo(f"{click.style('!', fg='yellow')} {text}", err=True)
