"""The entry point of the `dragoman` command.

Finds the command (`COMMANDS` lists those of `commands/`), importing only the modules it uses, and turns
errors into a message and an exit code.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import click

from dragoman.cli.agent.options import conversation_options
from dragoman.version import VERSION

COMMANDS: Final = {
    "agents": "List and approve agents that are defined in files.",
    "auth": "Show the sign-ins of all servers.",
    "call": "Call one tool and print its result.",
    "completion": "Print the script that completes commands, servers and tools in a shell.",
    "config": "Show the effective configuration and where it comes from.",
    "demo": "A short demonstration: real calls to a built-in server. Needs no configuration.",
    "logs": "Show the log of one server, or the audit log: every call, why it was allowed or denied.",
    "mcp": "Manage servers: add, list, approve, import …",
    "permissions": "Show and change the rules that allow, ask or deny calls.",
    "prompt": "Get one prompt of a server and print its messages.",
    "prompts": "List the prompts of the configured servers.",
    "read": "Read one resource of a server.",
    "resources": "List the resources of the configured servers.",
    "serve": "Serve all tools, resources and prompts to other programs, as one MCP server.",
    "tasks": "List, fetch and cancel calls that continue as tasks on their servers.",
    "tools": "List, search, show and lock the tools of the configured servers.",
}

COMPLETION: Final = "_DRAGOMAN_COMPLETE"
"""The environment variable with which a shell requests completions."""


JSON_KEY: Final = "dragoman.json"
"""The key of the context under which `--json` is stored, so that errors are printed as JSON, too."""

NO_THREAD_MESSAGE: Final = "can't start new thread"
"""The message of Python's error if the system starts no more threads."""
OUT_OF_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class CommandGroup(click.Group):
    """Lists its commands in the order of their definition, and suggests one for an unknown word."""

    @property
    def table(self) -> Mapping[str, str]:
        """Each command with one line of help."""
        return {name: command.short_help or "" for name, command in self.commands.items()}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.table and not args[0].startswith("-") and not ctx.resilient_parsing:
            import difflib

            near = difflib.get_close_matches(args[0], self.table, 1)
            meant = f"dragoman {args[0]}" if args[0] in COMMANDS else "".join(near)
            advice = f" Did you mean {meant!r}?" if meant else ""
            ctx.fail(f"No such command {args[0]!r}.{advice}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.table.items()))


class LazyGroup(CommandGroup):
    """Loads a command's module only when that command runs."""

    def __init__(
        self,
        *args: Any,
        table: Mapping[str, str],
        package: str,
        shared: Mapping[str, str] = MappingProxyType({}),
        **options: Any,
    ) -> None:
        """The command `x` is `command` in the module `x` of the package. `shared`: the module of each command
        that is in the module of another one; there `x-y` is `x_y`."""
        super().__init__(*args, **options)
        self._table = table
        self._package = package
        self._shared = shared

    @property
    def table(self) -> Mapping[str, str]:
        return self._table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return None
        module = importlib.import_module(f"{self._package}.{self._shared.get(cmd_name, cmd_name)}")
        attribute = cmd_name.replace("-", "_") if cmd_name in self._shared else "command"
        command = getattr(module, attribute)
        command.short_help = self.table[cmd_name]
        return command


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    package="dragoman.cli.commands",
    shared={"prompts": "prompt", "resources": "read"},
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.version_option(VERSION, prog_name="dragoman")
@conversation_options
@click.pass_context
def cli(context: click.Context, **options: Any) -> None:
    """An MCP host: connects to your MCP servers and controls every tool call.

    Without a command: a conversation with a model that uses your tools (extra: agent).
    """
    if context.invoked_subcommand is None:
        from dragoman.cli.agent.start import StartOptions, start

        sys.exit(start(StartOptions(**options)))
    for option in context.command.params:  # context.params lacks those that are stored in `meta` only
        source = context.get_parameter_source(option.name) if option.name else None
        if source is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"{option.opts[-1]} is for `dragoman` without a command; "
                f"write the options of {context.invoked_subcommand!r} after it"
            )


def main() -> None:
    try:
        code = _run()
        sys.stdout.flush()
    except OSError as error:
        code = report_system_error(error)
    except RuntimeError as error:
        if str(error) != NO_THREAD_MESSAGE:
            raise
        code = _report_shortage("no more threads can be started")
    sys.exit(code)


def report_system_error(error: OSError) -> int:
    """Reports the error; returns the exit code. An error without a file name is about the output."""
    if error.filename is not None:
        from dragoman.cleaning import one_line

        click.echo(f"error: {one_line(str(error.filename))} cannot be used: {error.strerror}", err=True)
        return 1
    if error.errno in OUT_OF_RESOURCES:
        return _report_shortage(f"{error.strerror}")
    # The reader of the output has ended, or the disk is full: no more output can be written.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno != errno.EPIPE:
        click.echo(f"error: the output could not be written: {error.strerror}", err=True)
    return 1


def _report_shortage(what: str) -> int:
    click.echo(f"error: the command has reached a limit of the operating system: {what}", err=True)
    click.echo("  hint: Raise the limits of this user or container. A call may have run.", err=True)
    return 1


def _is_plain() -> bool:
    """Whether colours are disabled (https://no-color.org), or the terminal has none."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def _show_usage_error(problem: click.ClickException) -> None:
    """Shows the message of click, with invisible characters escaped: it repeats words of the command line,
    which may be the name of a file."""
    from io import StringIO

    from dragoman.cleaning import visible

    text = StringIO()
    problem.show(text)
    click.echo(visible(text.getvalue()), err=True, nl=False)


def _run() -> int:
    from dragoman.cli import exit_codes
    from dragoman.errors import DragomanError

    if COMPLETION in os.environ:
        cli.main(prog_name="dragoman")  # prints completions and exits
    wants_json = False
    try:
        with cli.make_context("dragoman", sys.argv[1:], color=False if _is_plain() else None) as context:
            try:
                cli.invoke(context)
            finally:
                wants_json = bool(context.meta.get(JSON_KEY))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else exit_codes.OK
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as problem:
        _show_usage_error(problem)
        return problem.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return exit_codes.INTERRUPTED
    except DragomanError as error:
        from dragoman.cli.render.text import report_error

        with click.Context(cli, color=False if _is_plain() else None):
            report_error(error, as_json=wants_json)
        return exit_codes.for_error(error)
    return exit_codes.OK
