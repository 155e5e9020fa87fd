"""`dragoman agents approve`: approves an agent that came with a project or a plugin."""

from __future__ import annotations

import asyncio

import click

from dragoman.agent.definitions import AgentDefinition, approve_agent, find_agents
from dragoman.cleaning import one_line, visible
from dragoman.cli.terminal_input import ask_key, is_interactive, show_keys
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigError, NotFound


@click.command("approve")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Approve without asking, as shown.")
def command(name: str, yes: bool) -> None:
    """Shows the file of an agent, and asks whether the agent may be used.

    The answer applies to exactly this text: if the file changes, it has to be approved again.
    """
    sources = Sources.here()
    agent = _found(sources, name)
    if agent.state == "ready":
        click.echo(f"{agent.name} needs no approval.")
        return
    click.echo(f"{one_line(str(agent.path))}:\n")
    click.echo(visible(agent.text))
    if not yes and not _agrees():
        click.echo("Not approved.")
        return
    approve_agent(sources, agent)
    click.echo(f"{agent.name} is approved.")


def _found(sources: Sources, name: str) -> AgentDefinition:
    agent = next((agent for agent in find_agents(sources) if agent.name == name), None)
    if agent is None:
        raise NotFound(f"there is no agent {one_line(name, 80)!r}", hint="`dragoman agents list` shows them.")
    if agent.state == "broken":
        raise ConfigError(
            f"the agent {agent.name} cannot be used: {agent.problems[0]}", hint="Correct the file."
        )
    return agent


def _agrees() -> bool:
    if not is_interactive():
        raise ConfigError(
            "there is no terminal to ask on, so nothing was approved",
            hint="Give --yes, once you have read it.",
        )
    meanings = {"y": "yes, use it from now on, exactly as it is shown", "n": "no"}
    show_keys(meanings)
    return asyncio.run(ask_key(meanings, otherwise="n")) == "y"
