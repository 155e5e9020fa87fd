"""`dragoman serve`: the gateway."""

from __future__ import annotations

import asyncio
import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, get_args

import click

from dragoman import paths
from dragoman.cli.common import load_with_servers, run_with_host
from dragoman.cli.options import added_servers_option
from dragoman.errors import ConfigError
from dragoman.permissions.modes import PermissionMode

if TYPE_CHECKING:
    from dragoman.gateway.questions import ClientQuestions
    from dragoman.host import Host

DEFAULT_ADDRESS: Final = "127.0.0.1:8931"
TOKEN_FILE: Final = "gateway-token"
CLIENTS: Final = ("claude-code", "codex", "cursor", "vscode")


class Address(NamedTuple):
    host: str
    port: int

    @property
    def url(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{self.port}/mcp"


@click.command("serve")
@click.argument("servers", nargs=-1)
@added_servers_option
@click.option("--stdio", "over_stdio", is_flag=True, help="Serve the program that starts this command.")
@click.option(
    "--http",
    "address",
    metavar="HOST:PORT",
    default=DEFAULT_ADDRESS,
    show_default=True,
    help="Where to listen.",
)
@click.option("--public-host", multiple=True, metavar="NAME[:PORT]", help="A name by which clients reach it.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='The callers: a JSON file, {"name": "token"}.',
)
@click.option(
    "--plain-names", is_flag=True, help="Names of tools without the server's, where they are unique."
)
@click.option(
    "--permission-mode", type=click.Choice(get_args(PermissionMode)), help="For calls without a rule."
)
@click.option("--print-config", type=click.Choice(CLIENTS), help="Print the entry for a client, and end.")
def command(
    servers: tuple[str, ...],
    over_stdio: bool,
    address: str,
    public_host: tuple[str, ...],
    token_file: Path | None,
    plain_names: bool,
    permission_mode: PermissionMode | None,
    print_config: str | None,
) -> None:
    """Serves the tools, resources and prompts of all servers, or of SERVERS, as one MCP server.

    Rules, hooks, policy and the audit log apply as everywhere. Questions go to the client that makes the
    call. Over HTTP every request needs a token; without --token-file one is generated, and kept.
    """
    where = _address(address)
    if print_config is not None:
        click.echo(client_entry(print_config, where.url, "" if token_file else own_token(), over_stdio))
        return
    from dragoman.gateway.access import is_loopback
    from dragoman.gateway.questions import ClientQuestions

    if not over_stdio and token_file is None and not is_loopback(where.host):
        raise ConfigError(
            f"{where.host} can be reached from other machines, and the callers are not named",
            hint="Give --token-file, or listen on 127.0.0.1.",
        )
    loaded = load_with_servers()
    questions = ClientQuestions()
    only = list(servers) or loaded.only

    async def work(host: Host) -> None:
        if over_stdio:
            await _serve_stdio(host, questions, plain_names)
        else:
            await _serve_http(host, questions, plain_names, where, public_host, token_file)

    run_with_host(
        loaded.sources,
        work,
        only=only,
        watch=True,
        interaction=questions,
        sampler=questions,
        permission_mode=permission_mode,
    )


async def _serve_stdio(host: Host, questions: ClientQuestions, plain_names: bool) -> None:
    from dragoman.gateway.gateway import Gateway
    from dragoman.interaction import LOCAL_CALLER
    from dragoman.transports.inprocess import standard_streams

    gateway = Gateway(host, questions, plain_names=plain_names)
    reporting = asyncio.create_task(gateway.run())
    stream = await standard_streams()
    await host.ready()
    try:
        async with gateway.client(LOCAL_CALLER, stream.send) as connection:
            while (message := await stream.receive()) is not None:
                connection.receive(message)
    finally:
        reporting.cancel()


async def _serve_http(
    host: Host,
    questions: ClientQuestions,
    plain_names: bool,
    where: Address,
    public_hosts: tuple[str, ...],
    token_file: Path | None,
) -> None:
    from dragoman.gateway.access import BearerTokens, with_token
    from dragoman.gateway.app import HttpOptions, serve_http
    from dragoman.gateway.gateway import Gateway

    tokens = {"local": own_token()} if token_file is None else _tokens(token_file)
    gateway = Gateway(host, questions, plain_names=plain_names)
    reporting = asyncio.create_task(gateway.run())
    options = HttpOptions(
        host=where.host, port=where.port, identify=with_token(BearerTokens(tokens)), more_hosts=public_hosts
    )
    try:
        async with serve_http(gateway, options) as port:
            await host.ready()
            _say_what_is_served(gateway, Address(where.host, port), tokens, token_file)
            await asyncio.Event().wait()
    finally:
        reporting.cancel()


def _say_what_is_served(
    gateway: object, where: Address, tokens: dict[str, str], token_file: Path | None
) -> None:
    click.echo(f"serving at {where.url}", err=True)


def own_token() -> str:
    """The generated token of this person, created when it is first needed."""
    from dragoman.atomic_write import put

    path = paths.state_dir() / TOKEN_FILE
    try:
        token = path.read_text().strip()
    except FileNotFoundError:
        token = ""
    if not token:
        token = secrets.token_urlsafe(32)
        paths.make_private(path.parent)
        put(path, token.encode() + b"\n", private=True)
    return token


def _tokens(file: Path) -> dict[str, str]:
    import msgspec

    try:
        tokens = msgspec.json.decode(file.read_bytes(), type=dict[str, str])
    except msgspec.DecodeError as error:
        raise ConfigError(f'{file} is not {{"name": "token"}}: {error}') from None
    weak = [name for name, token in tokens.items() if len(token) < 16]
    if not tokens or weak:
        raise ConfigError(
            f"{file}: each token needs at least 16 characters", hint=f"Too short: {', '.join(weak)}"
        )
    return tokens


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise click.UsageError(f"--http {text!r} is not HOST:PORT")
    return Address(host.strip("[]"), int(port))


def client_entry(client: str, url: str, token: str, over_stdio: bool) -> str:
    """What to put into a client's configuration."""
    header = {"Authorization": f"Bearer {token or 'TOKEN'}"}
    if over_stdio:
        entry: dict[str, object] = {"command": "dragoman", "args": ["serve", "--stdio"]}
    else:
        entry = {"type": "http", "url": url, "headers": header}
    match client:
        case "codex":
            if over_stdio:
                return '[mcp_servers.dragoman]\ncommand = "dragoman"\nargs = ["serve", "--stdio"]'
            headers = f'{{ Authorization = "{header["Authorization"]}" }}'
            return f'[mcp_servers.dragoman]\nurl = "{url}"\nhttp_headers = {headers}'
        case "vscode":
            return json.dumps({"servers": {"dragoman": entry}}, indent=2)
        case "cursor":
            entry.pop("type", None)
            return json.dumps({"mcpServers": {"dragoman": entry}}, indent=2)
        case _:
            return json.dumps({"mcpServers": {"dragoman": entry}}, indent=2)
