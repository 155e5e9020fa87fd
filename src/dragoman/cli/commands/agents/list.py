"""`dragoman agents list`: the agents that are defined in files."""

from __future__ import annotations

from typing import Final

import click

from dragoman.agent.definitions import AgentDefinition, find_agents
from dragoman.cleaning import one_line
from dragoman.cli.common import load_and_report
from dragoman.cli.options import json_option
from dragoman.cli.render.document import echo
from dragoman.cli.render.servers import show_problem
from dragoman.config.scopes import Sources

_STATES: Final = {"pending": "needs approval", "broken": "cannot be used"}


@click.command("list")
@json_option
def command(as_json: bool) -> None:
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
