"""`dragoman serve`: the gateway."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, get_args

import click

from dragoman import paths, tracing
from dragoman.cleaning import one_line
from dragoman.cli.common import find_server, load_with_servers, run_with_host
from dragoman.cli.gateway_clients import CLIENTS, client_entry, generated_token, without_print_config
from dragoman.cli.options import added_servers_option
from dragoman.cli.render.servers import counted, show_problem
from dragoman.errors import ConfigError, DragomanError, SignInFailed, StoreUnavailable
from dragoman.permissions.modes import PermissionMode
from dragoman.urls import parse_url

if TYPE_CHECKING:
    from collections.abc import Collection, Generator

    from dragoman.auth.oauth import OAuthCredentials
    from dragoman.config.load import Configuration
    from dragoman.config.scopes import Sources
    from dragoman.gateway.access import Identify
    from dragoman.gateway.app import HttpOptions
    from dragoman.gateway.gateway import Gateway
    from dragoman.gateway.log import GatewayLog
    from dragoman.gateway.questions import ClientQuestions
    from dragoman.gateway.settings import GatewaySettings
    from dragoman.gateway.store.base import GatewayStore
    from dragoman.host import Host
    from dragoman.servers.status import ServerStatus

DEFAULT_ADDRESS: Final = "127.0.0.1:8931"
DETAIL_LIMIT: Final = 20
"""The most views, and servers that are not connected, that are listed at the start."""
ARGUMENTS_KEY: Final = "dragoman.serve.words"
GC_THRESHOLDS: Final = (10_000, 50, 100)
"""With Python's default thresholds, garbage collection takes a tenth of the time of a call."""


class Address(NamedTuple):
    host: str
    port: int

    @property
    def url(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{self.port}/mcp"


class _Serve(click.Command):
    """Stores the words of the command line: the entry for a client that starts the gateway repeats them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[ARGUMENTS_KEY] = tuple(args)
        return super().parse_args(ctx, args)


@click.command("serve", cls=_Serve)
@click.argument("servers", nargs=-1)
@added_servers_option
@click.option("--stdio", "over_stdio", is_flag=True, help="Serve the program that starts this command.")
@click.option("--local", is_flag=True, help="Keep the servers of this folder connected for `dragoman call`.")
@click.option(
    "--idle",
    "idle_minutes",
    type=click.FloatRange(min=0, min_open=True),
    default=15.0,
    show_default=True,
    metavar="MINUTES",
    help="With --local: end after this time without a call.",
)
@click.option(
    "--http",
    "address",
    metavar="HOST:PORT",
    default=DEFAULT_ADDRESS,
    show_default=True,
    help="Where to listen.",
)
@click.option("--public-host", multiple=True, metavar="NAME[:PORT]", help="A host name that clients use.")
@click.option(
    "--config",
    "settings_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The callers and views: a JSON file, see docs/guides/gateway.md.",
)
@click.option("--plain-names", is_flag=True, help="Leave out the server in names of tools that stay unique.")
@click.option("--tool-search", is_flag=True, help="Clients search for tools, and get no list of all tools.")
@click.option(
    "--permission-mode",
    type=click.Choice(get_args(PermissionMode)),
    help="How to decide about calls that match no rule.",
)
@click.option(
    "--forget-caller",
    metavar="NAME",
    help="Revoke and delete the sign-ins of a caller (callerSignIn), and exit.",
)
@click.option("--print-config", type=click.Choice(CLIENTS), help="Print the entry for a client, and exit.")
def command(
    servers: tuple[str, ...],
    over_stdio: bool,
    local: bool,
    idle_minutes: float,
    address: str,
    public_host: tuple[str, ...],
    settings_file: Path | None,
    plain_names: bool,
    tool_search: bool,
    permission_mode: PermissionMode | None,
    forget_caller: str | None,
    print_config: str | None,
) -> None:
    """Serves the tools, resources and prompts of all servers, or of SERVERS, as one MCP server.

    Rules, hooks, policy and the audit log apply as in other commands. Questions go to the client that makes
    the call. Over HTTP every request needs a token; without --config, a token is generated and stored.
    """
    if local:
        with _ended_by_signals():
            _serve_local(idle_minutes * 60)
        return
    _check_combination(over_stdio)
    where = _address(address)
    if print_config is not None:
        _print_entry(print_config, where, over_stdio, settings_file)
        return
    settings = _settings(settings_file, where, over_stdio)
    tracing.configure()
    loaded = load_with_servers()
    for name in servers:
        find_server(loaded.configuration, name)
    caller_sign_in = () if over_stdio else _caller_sign_in_servers(settings, where, loaded.configuration)
    if forget_caller is not None:
        _forget_caller(settings, loaded.configuration, forget_caller)
        return
    wanted = ServeOptions(over_stdio, where, public_host, settings_file, settings, plain_names, tool_search)
    with _ended_by_signals():
        _serve(
            wanted,
            loaded.sources,
            only=list(servers) or loaded.only,
            mode=permission_mode,
            caller_sign_in=caller_sign_in,
        )


@contextlib.contextmanager
def _ended_by_signals() -> Generator[None]:
    """Turns Ctrl-C and SIGTERM into a normal end: a service manager must not treat it as a failure."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("The gateway has ended.", err=True)


class ServeOptions(NamedTuple):
    """Options of the gateway, from the command line and from the gateway's file."""

    over_stdio: bool
    where: Address
    public_hosts: tuple[str, ...]
    settings_file: Path | None
    settings: GatewaySettings
    has_plain_names: bool
    has_tool_search: bool


def _print_entry(client: str, where: Address, over_stdio: bool, settings_file: Path | None) -> None:
    token = "" if settings_file is not None or over_stdio else generated_token()
    words = without_print_config(click.get_current_context().meta[ARGUMENTS_KEY]) if over_stdio else []
    click.echo(client_entry(client, where.url, token, words))
    if settings_file is not None and not over_stdio:
        file = one_line(str(settings_file), 300)
        click.echo(f"Replace TOKEN with the token of a caller in {file}.", err=True)


def _serve(
    wanted: ServeOptions,
    sources: Sources,
    *,
    only: list[str] | None,
    mode: PermissionMode | None,
    caller_sign_in: Collection[str],
) -> None:
    """Runs the gateway. `caller_sign_in`: the servers to which callers sign in themselves."""
    from dragoman.gateway.callers import accounts_in
    from dragoman.gateway.questions import ClientQuestions

    questions, store = ClientQuestions(), _store(wanted)

    async def work(host: Host) -> None:
        gateway = _gateway(host, questions, store, wanted, has_accounts=bool(caller_sign_in))
        log = _opened_log(gateway)
        reporting = asyncio.create_task(gateway.run())
        try:
            if wanted.over_stdio:
                await _serve_stdio(gateway, log)
            else:
                await _serve_http(gateway, wanted, log)
        except DragomanError as error:
            log.write("problem", str(error))
            raise
        finally:
            log.write("end", "the gateway ends")
            reporting.cancel()
            await asyncio.wait([reporting])
            await asyncio.to_thread(log.close)

    run_with_host(
        sources,
        work,
        at_end=store.close,
        only=only,
        watch=True,
        interaction=questions,
        sampler=questions,
        permission_mode=mode,
        audit=True,
        set_aside=caller_sign_in,
        accounts=accounts_in(store),
    )


def _gateway(
    host: Host, questions: ClientQuestions, store: GatewayStore, wanted: ServeOptions, *, has_accounts: bool
) -> Gateway:
    from dragoman.gateway.callers import CallerHosts
    from dragoman.gateway.gateway import Gateway
    from dragoman.gateway.settings import limited, searched
    from dragoman.gateway.sign_in_pages import SignInPages

    settings = wanted.settings
    views = limited(settings.views, settings.result_tokens)
    return Gateway(
        host,
        questions,
        plain_names=wanted.has_plain_names,
        views=searched(views) if wanted.has_tool_search else views,
        store=store,
        callers=CallerHosts(host, SignInPages(settings.public_url)) if has_accounts else None,
    )


def _caller_sign_in_servers(
    settings: GatewaySettings, where: Address, configuration: Configuration
) -> Collection[str]:
    """The servers to which callers sign in themselves. `ConfigError` if one does not support that."""
    from dragoman.gateway.access import is_loopback
    from dragoman.gateway.callers import check_names

    check_names(configuration, settings.caller_sign_in)
    if settings.caller_sign_in and not settings.public_url and not is_loopback(where.host):
        raise ConfigError(
            f"{where.host} can be reached from other machines, and browsers need an address for callerSignIn",
            hint='Add "publicUrl": "https://…" to the gateway\'s file.',
        )
    return settings.caller_sign_in


def _forget_caller(settings: GatewaySettings, configuration: Configuration, name: str) -> None:
    """Signs a caller out of every server at which it has an account. Running gateways stop using it."""
    from dragoman.connections.factory import AccountOptions, TransportDependencies, oauth_credentials
    from dragoman.gateway.callers import accounts_in, identity_of
    from dragoman.interaction import Caller

    if not settings.caller_sign_in:
        raise ConfigError(
            "callers have no accounts of their own, so there are none to delete",
            hint="Give the gateway's file with --config; its callerSignIn lists the servers.",
        )

    async def work() -> None:
        store = _store_of(settings)
        dependencies = TransportDependencies()
        dependencies.account = AccountOptions(identity_of(Caller(name)))
        dependencies.accounts = accounts_in(store)
        try:
            for server in settings.caller_sign_in:
                config = configuration.servers[server].config
                credentials = None if config is None else oauth_credentials(server, config, dependencies)
                if credentials is not None:
                    click.echo(f"{one_line(name, 200)}: {await _signed_out(credentials)}")
        finally:
            await store.close()

    asyncio.run(work())


async def _signed_out(credentials: OAuthCredentials) -> str:
    from dragoman.auth.errors import AuthProblem
    from dragoman.auth.revocation import sign_out

    server = credentials.entry.server
    try:
        account = await credentials.load(fresh=True)
    except AuthProblem as problem:
        raise SignInFailed(server, problem.cause, hint=problem.hint) from None
    if account is None or account.tokens is None:
        return f"not signed in to {server}."
    problem = await sign_out(credentials)
    return f"signed out of {server}." + (f" {problem}." if problem else "")


def _opened_log(gateway: Gateway) -> GatewayLog:
    """Opens the log and writes the first steps of the start. Problems are written to it and shown."""
    from dragoman.gateway.log import GatewayLog

    shown = frozenset(gateway.host.problems)  # before the host was opened
    log = GatewayLog(paths.logs_dir(), show_problem)

    def report(problem: str) -> None:
        if problem not in shown:
            show_problem(problem)
            log.write("problem", problem)

    gateway.report = report
    servers = len(gateway.host.servers)
    log.write("configuration", f"{counted(servers, 'server')} configured", servers=servers)
    log.write("logging", f"this log and the audit log are in {log.path.parent}")
    return log


def _log_ready(gateway: Gateway, log: GatewayLog) -> None:
    tools, views = len(gateway.tools()), gateway.host.servers.values()
    connected = sum(view.status == "connected" for view in views)
    text = f"{counted(tools, 'tool')} of {counted(connected, 'server')}"
    log.write("handle", f"requests are answered with {text}", tools=tools, connected=connected)


def _settings(settings_file: Path | None, where: Address, over_stdio: bool) -> GatewaySettings:
    """The settings in the file; without a file, a generated token for callers on this machine."""
    from dragoman.gateway.access import is_loopback
    from dragoman.gateway.settings import CallerEntry, GatewaySettings
    from dragoman.gateway.settings_file import read_settings

    if settings_file is not None:
        return read_settings(settings_file)
    if over_stdio:
        return GatewaySettings()
    if is_loopback(where.host):
        return GatewaySettings(callers={"local": CallerEntry(token=generated_token())})
    raise ConfigError(
        f"{where.host} can be reached from other machines, and no callers are named",
        hint="Give --config with the callers, or listen on 127.0.0.1.",
    )


def _store(wanted: ServeOptions) -> GatewayStore:
    from dragoman.gateway.store.sqlite import SqliteStore

    return SqliteStore() if wanted.over_stdio else _store_of(wanted.settings)


def _store_of(settings: GatewaySettings) -> GatewayStore:
    if settings.store is None:
        from dragoman.gateway.store.sqlite import FILE, SqliteStore

        return SqliteStore(paths.state_dir() / FILE)
    from dragoman.gateway.store.redis import RedisStore

    return RedisStore(settings.store)


def _given_options() -> set[str]:
    """The names of the parameters that are on the command line."""
    context = click.get_current_context()
    given = click.core.ParameterSource.COMMANDLINE
    names = {each.name or "" for each in context.command.params}
    return {name for name in names if context.get_parameter_source(name) is given}


def _check_combination(over_stdio: bool) -> None:
    """`UsageError` for an option that would have no effect."""
    given = _given_options()
    if "idle_minutes" in given:
        raise click.UsageError("--idle is for --local only")
    if over_stdio and "address" in given:
        raise click.UsageError("--stdio and --http exclude each other")


def _serve_local(idle_seconds: float) -> None:
    """Serves the configuration of `dragoman call` without options; other options are refused."""
    if _given_options() - {"local", "idle_minutes"}:
        raise click.UsageError("--local serves the configuration of this folder, and takes --idle only")
    from dragoman.cli.local_gateway.questions import CallingTerminals
    from dragoman.cli.local_gateway.server import LocalGateway, files_of, listening

    sources = load_with_servers().sources
    files, terminals = files_of(sources), CallingTerminals()

    async def work(host: Host) -> None:
        gateway = LocalGateway(host, sources, terminals, files)
        async with listening(gateway, sources.cwd):
            await host.ready()
            connected = sum(view.status == "connected" for view in host.servers.values())
            minutes = "1 minute" if idle_seconds == 60 else f"{idle_seconds / 60:g} minutes"
            click.echo(
                f"{counted(connected, 'server')} connected for `dragoman call` in {sources.cwd}.", err=True
            )
            for line in _unconnected(host):
                click.echo(line, err=True)
            click.echo(f"Ends after {minutes} without a call, or with Ctrl-C.", err=True)
            await gateway.run(idle_seconds)

    run_with_host(sources, work, interaction=terminals, audit=True)


async def _serve_stdio(gateway: Gateway, log: GatewayLog) -> None:
    from dragoman.gateway.stdio import serve_stdio
    from dragoman.transports.inprocess import standard_streams

    stream = await standard_streams()
    if sys.stdin.isatty():
        click.echo("Waiting for MCP messages on standard input: a client starts this command.", err=True)
        click.echo("Its entry: dragoman serve --stdio --print-config claude-code", err=True)
    log.write("transport", "standard input and output")
    await gateway.host.ready()
    log.write("accept", "messages are accepted")
    _log_ready(gateway, log)
    await serve_stdio(gateway, stream)


async def _serve_http(gateway: Gateway, wanted: ServeOptions, log: GatewayLog) -> None:
    from dragoman.gateway.app import serve_http

    settings = wanted.settings
    identify = _identify(gateway, settings, wanted.settings_file)
    options = _http_options(settings, wanted.where, wanted.public_hosts, identify)
    async with serve_http(gateway, options) as port:
        where = Address(options.host, port)
        log.write("transport", f"listening at {where.url}")
        log.write("accept", "requests are accepted; those of servers that are being connected wait")
        await gateway.host.ready()
        # Objects that exist now stay: collections that visit them would take a fifth of the time of a call.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        _log_ready(gateway, log)
        _report_unknown_names(gateway, settings)
        _show_served(gateway, where, settings, options_to_repeat(where, wanted.settings_file))
        await _check_store(gateway)
        await asyncio.Event().wait()


def _report_unknown_names(gateway: Gateway, settings: GatewaySettings) -> None:
    from dragoman.gateway.settings_file import unknown_servers

    configuration = gateway.host.configuration
    unknown = unknown_servers(settings, {*configuration.servers, *configuration.set_aside})
    for problem in (*unknown, *gateway.unused_arguments()):
        gateway.report(one_line(problem, 300))


async def _check_store(gateway: Gateway) -> None:
    """Reports if the store does not answer; requests that need it are refused until it does."""
    try:
        await gateway.store.get("availability check", 1.0)
    except StoreUnavailable as error:
        gateway.report(f"{error}: sessions, limits and sign-ins need it. {error.hint}")


def _identify(gateway: Gateway, settings: GatewaySettings, settings_file: Path | None) -> Identify:
    if settings_file is None:
        return _identify_of(settings)
    from dragoman.gateway.callers_file import CallersFile

    return CallersFile(settings_file, settings, _identify_of, gateway.report).identify


def _identify_of(settings: GatewaySettings) -> Identify:
    from dragoman.gateway.access import fixed_tokens, with_token

    fixed = fixed_tokens(settings.callers)
    if settings.oauth is None:
        return with_token(fixed)
    from time import monotonic

    from dragoman.gateway import jwt

    verify = jwt.JwtVerifier(settings.oauth, monotonic)
    return with_token(fixed, verify, challenge=jwt.challenge(settings.oauth))


def _http_options(
    settings: GatewaySettings, where: Address, public_hosts: tuple[str, ...], identify: Identify
) -> HttpOptions:
    from dragoman.gateway.app import HttpOptions

    documents: dict[str, Mapping[str, object]] = {}
    if settings.oauth is not None:
        from dragoman.gateway import jwt

        path, document = jwt.resource_metadata(settings.oauth)
        documents = {path: document}
    return HttpOptions(
        host=where.host,
        port=where.port,
        identify=identify,
        more_hosts=(*public_hosts, *_host_of(settings.public_url)),
        documents=documents,
    )


def _host_of(url: str) -> list[str]:
    return [parse_url(url).origin.partition("//")[2]] if url else []


def options_to_repeat(where: Address, settings_file: Path | None) -> str:
    """The options that `--print-config` must be given too, so that it prints this address and a valid
    token."""
    address = where.url.removeprefix("http://").removesuffix("/mcp")
    words = [] if address == DEFAULT_ADDRESS else ["--http", address]
    words += [] if settings_file is None else ["--config", str(settings_file)]
    return "".join(f"{one_line(shlex.quote(word), 300)} " for word in words)


def _show_served(gateway: Gateway, where: Address, settings: GatewaySettings, repeated: str) -> None:
    views = gateway.host.servers.values()
    connected = sum(view.status == "connected" for view in views)
    tools = len(gateway.tools())
    caller_sign_in = [
        name for name in settings.caller_sign_in if name in gateway.host.configuration.set_aside
    ]
    callers = [*settings.callers, *(["access tokens of " + settings.oauth.issuer] if settings.oauth else [])]
    details = [
        *_unconnected(gateway.host),
        *(f"  view {name}: {where.url}/{name}" for name in settings.views),
    ]
    lines = [
        f"Serving {counted(tools, 'tool')} of {counted(connected, 'server')} at {where.url}",
        *details[:DETAIL_LIMIT],
        *(
            [f"  each caller signs in with an account of its own: {', '.join(caller_sign_in)}"]
            if caller_sign_in
            else []
        ),
        f"Callers: {', '.join(callers)}. Each request needs a token.",
        "Connect a client (claude-code, codex, cursor or vscode):",
        f"  dragoman serve {repeated}--print-config claude-code",
        "Calls, and why they were allowed or denied: dragoman logs --audit. Stop: Ctrl-C.",
    ]
    for line in lines:
        click.echo(line, err=True)


def _unconnected(host: Host) -> list[str]:
    """One line for each server that is not connected."""
    return [_failure(view) for view in host.servers.values() if view.status != "connected"][:DETAIL_LIMIT]


def _failure(view: ServerStatus) -> str:
    reason = one_line(view.own_reason, 300)
    status = "" if view.status == "failed" and reason else view.status
    return f"  {one_line(view.name, 80)}: {', '.join(filter(None, (status, reason)))}"


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise click.UsageError(f"--http {text!r} is not HOST:PORT")
    return Address(host.strip("[]"), int(port))
