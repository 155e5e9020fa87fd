"""`dragoman mcp approve` and `reset-project-choices`: decisions about servers that a project defines."""

from __future__ import annotations

import click

from dragoman.cleaning import one_line
from dragoman.cli.approval_questions import ask_about_variables, ask_approval, save_decision, show_entry
from dragoman.cli.commands.completion import complete_server
from dragoman.cli.common import load_and_report
from dragoman.cli.options import json_option
from dragoman.cli.render.document import echo
from dragoman.cli.terminal_input import is_interactive
from dragoman.config import approval
from dragoman.config.edits import forget_choices
from dragoman.config.load import Configuration, load
from dragoman.config.merge import ConfiguredServer
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigError, NotFound


@click.command("approve")
@click.argument("names", nargs=-1, metavar="[NAME]…", shell_complete=complete_server)
@click.option("--yes", "decision", flag_value="approved", help="Approve without asking, as shown.")
@click.option("--no", "decision", flag_value="rejected", help="Decline without asking.")
@json_option
def command(names: tuple[str, ...], decision: str | None, as_json: bool) -> None:
    """Shows each server that needs approval, with its complete entry, and asks.

    The answer applies to exactly this entry: if the entry changes, the question is asked again. Without a
    terminal, give --yes or --no together with the NAMES.
    """
    configuration = load_and_report()
    waiting = _servers_to_decide(configuration, names)
    if decision is None and not is_interactive() and (waiting or configuration.unconfirmed_variables):
        for server in waiting:
            show_entry(configuration, server)
        raise ConfigError(
            "there is no terminal to ask on, so nothing was approved",
            hint="Run it in a terminal, or give the NAME with --yes.",
        )
    if decision is not None and not names:
        raise click.UsageError("--yes and --no need the names of servers")
    for server in waiting:
        if decision is None:
            ask_approval(configuration, server)
        else:
            show_entry(configuration, server)
            save_decision(configuration, server, decision)
    if decision is None and not names:
        ask_about_variables(configuration)
    _report(waiting, as_json)


def _servers_to_decide(configuration: Configuration, names: tuple[str, ...]) -> list[ConfiguredServer]:
    # If several entries have the same name, the first is the one that is listed.
    waiting: dict[str, ConfiguredServer] = {}
    for server in configuration.needing_approval:
        waiting.setdefault(server.name, server)
    known = {**{name: server for name, server in configuration.servers.items() if server.approval}, **waiting}
    for name in names:
        if name not in known:
            if name not in configuration.servers:
                raise NotFound(
                    f"there is no server {name!r}",
                    hint="`dragoman mcp list` shows which servers need approval.",
                )
            raise ConfigError(
                f"{name!r} needs no approval", hint="`dragoman mcp list` shows which servers need approval."
            )
    return [known[name] for name in names] if names else list(waiting.values())


def _report(servers: list[ConfiguredServer], as_json: bool) -> None:
    now = load(Sources.here())
    states: dict[str, approval.Approval | None] = {
        server.name: now.entry_checks.approval(server.candidate) for server in servers
    }
    if as_json:
        echo({"servers": [{"name": n, "approval": s.state if s else None} for n, s in states.items()]})
        return
    for name, state in states.items():
        click.echo(f"{one_line(name)}: {state.state if state else ''}")
    if not servers:
        click.echo("No server needs approval here.")


@click.command("reset-project-choices")
@json_option
def reset_project_choices(as_json: bool) -> None:
    """Removes the approval decisions about servers, allow rules and agents of this project. The questions are
    asked again."""
    count = forget_choices(load_and_report().sources)
    if as_json:
        echo({"forgotten": count})
    else:
        click.echo(f"Removed {count} decision{'' if count == 1 else 's'}.")
