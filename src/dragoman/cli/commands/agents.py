"""`dragoman agents`: lists and approves agents that are defined in files."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final

import click

from dragoman.agent.definitions import AgentDefinition, approve_agent, find_agents
from dragoman.cleaning import one_line, visible
from dragoman.cli.approval_questions import entry_lines, warnings_about_entry, warnings_about_rules
from dragoman.cli.common import load_and_report
from dragoman.cli.main import CommandGroup
from dragoman.cli.options import json_option
from dragoman.cli.render.document import echo
from dragoman.cli.render.servers import show_problem
from dragoman.cli.terminal_input import SHOWN_LINES, ask_key, cut, indented, is_interactive, show_keys
from dragoman.config.load import Configuration, load
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigError, NotFound


@click.group("agents", cls=CommandGroup)
def command() -> None:
    """Agents that are defined in files. `dragoman --agent NAME` talks to one."""


_BLANKS: Final = re.compile(r"\s{80,}|\n{5,}")


@command.command("approve", short_help="Approve an agent that came with a project or a plugin.")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Approve without asking, as shown.")
def approve(name: str, yes: bool) -> None:
    """Shows the file of an agent, and asks whether the agent may be used.

    The answer applies to exactly this text: if the file changes, it has to be approved again.
    """
    sources = Sources.here()
    load_and_report(sources)
    agent = _find(sources, name)
    if agent.state == "ready":
        click.echo(f"{agent.name} needs no approval.")
        return
    _show(agent)
    is_cut = _show_rights(sources, agent, full=not is_interactive())
    if not yes and not _person_approves(sources, agent, is_cut=is_cut):
        click.echo("Not approved.")
        return
    approve_agent(sources, agent)
    click.echo(f"{agent.name} is approved.")


def _find(sources: Sources, name: str) -> AgentDefinition:
    """The agent. Raises `NotFound`, and `ConfigError` for an agent that cannot be used."""
    agent = next((agent for agent in find_agents(sources) if agent.name == name), None)
    if agent is None:
        raise NotFound(f"there is no agent {one_line(name, 80)!r}", hint="`dragoman agents list` shows them.")
    if agent.state == "broken":
        raise ConfigError(
            f"the agent {agent.name} cannot be used: {agent.problems[0]}", hint="Correct the file."
        )
    return agent


def _show(agent: AgentDefinition) -> None:
    """Shows the file. Each line of it is indented, so that no line looks like output of this command. Long
    runs of blanks are shortened, so that they cannot move the rest off the screen."""
    click.echo(f"{one_line(str(agent.path))}:\n")
    text = _BLANKS.sub(lambda found: f" … [{len(found[0])} blank characters] … ", visible(agent.text))
    for line in text.split("\n"):
        click.echo(f"    {indented(line, 4) if is_interactive() else line}".rstrip())


def _show_rights(sources: Sources, agent: AgentDefinition, *, full: bool) -> bool:
    """Shows the tools and servers that the agent may use. Returns whether some values are cut."""
    tools = "all" if agent.tools is None else ", ".join(agent.tools) or "none"
    if agent.disallowed_tools:
        tools += f", but not {', '.join(agent.disallowed_tools)}"
    lines = [f"It may use the tools: {one_line(tools)}"]
    configuration = load(sources)
    for name, entry in _servers_in(agent):
        lines.extend(_server_lines(configuration, name, entry))
    shown = lines if full else list(_shortened(lines))
    for line in shown:
        click.echo(f"  {indented(line, 4)}")
    return shown != lines


def _shortened(lines: list[str]) -> Iterator[str]:
    """Cuts long lines, and keeps the first fields of each server, which determine the program."""
    for is_field, group in groupby(lines, lambda line: line.startswith("  ")):
        kept = list(group)
        yield from map(cut, kept[:SHOWN_LINES] if is_field else kept)
        if is_field and len(kept) > SHOWN_LINES:
            yield f"  … [{len(kept) - SHOWN_LINES} more fields]"


def _servers_in(agent: AgentDefinition) -> list[tuple[str, object]]:
    return [row for item in agent.servers or () if not isinstance(item, str) for row in item.items()]


def _server_lines(configuration: Configuration, name: str, entry: object) -> Iterator[str]:
    yield f"It starts the server {one_line(name, 80)}:"
    yield from entry_lines(entry)
    for warning in (*warnings_about_entry(name, entry), *warnings_about_rules(configuration, name)):
        yield f"! {warning}"


def _person_approves(sources: Sources, agent: AgentDefinition, *, is_cut: bool) -> bool:
    if not is_interactive():
        raise ConfigError(
            "there is no terminal to ask on, so nothing was approved",
            hint="Give --yes, once you have read it.",
        )
    meanings = {"y": "yes, use it from now on, exactly as it is shown", "n": "no"}
    meanings |= {"v": "show the complete entries"} if is_cut else {}
    show_keys(meanings)
    while (key := asyncio.run(ask_key(meanings, otherwise="n"))) == "v":
        _show_rights(sources, agent, full=True)
    return key == "y"


_STATES: Final = {"pending": "needs approval", "broken": "cannot be used"}


@command.command("list", short_help="List the agents that are defined in files.")
@json_option
def list_agents(as_json: bool) -> None:
    """Lists the agents of your own folder, of the project and of plugins. Starts nothing."""
    sources = Sources.here()
    load_and_report(sources)
    agents = find_agents(sources)
    if as_json:
        echo({"agents": [_as_document(agent) for agent in agents]})
        return
    for agent in agents:
        state = "" if agent.state == "ready" else f"  [{_STATES[agent.state]}]"
        click.echo(f"{agent.name}{state}  {one_line(agent.description, 200)}".rstrip())
        for problem in agent.problems:
            show_problem(f"{one_line(str(agent.path))}: {problem}")
    if not agents:
        click.echo("No agents are defined.", err=True)


def _as_document(agent: AgentDefinition) -> dict[str, object]:
    return {
        "name": agent.name,
        "state": agent.state,
        "description": agent.description,
        "scope": agent.scope,
        "path": str(agent.path),
        "tools": agent.tools,
        "model": agent.model,
        "required_servers": agent.required_servers,
        "problems": agent.problems,
    }
