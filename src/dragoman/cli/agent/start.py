"""Starts a conversation from the options of the `dragoman` command."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import click

from dragoman.cleaning import one_line
from dragoman.cli.common import check_readable, run_with_host, show_problems, sources_of
from dragoman.cli.render.servers import show_problem
from dragoman.cli.terminal_input import has_screen
from dragoman.errors import MissingPackage, NotFound

if TYPE_CHECKING:
    from dragoman.agent.definitions import AgentDefinition
    from dragoman.agent.session import AgentOptions
    from dragoman.config.load import Configuration
    from dragoman.host import Host
    from dragoman.interaction import Interaction
    from dragoman.permissions.modes import PermissionMode

T = TypeVar("T")


class StartOptions(NamedTuple):
    """The options of the command."""

    prompt: str | None
    """The only prompt of this run; "-": the prompt is read from stdin."""
    output_format: str
    input_format: str
    model: str | None
    base_url: str | None
    permission_mode: str | None
    allowed_tools: Sequence[str]
    disallowed_tools: Sequence[str]
    add_dir: Sequence[Path]
    agent: str | None
    max_turns: int | None
    continue_last: bool
    resume: str | None
    plain: bool = False
    """Whether the conversation is shown line by line even if the terminal could show the application."""

    @property
    def has_prompts(self) -> bool:
        """Whether the prompts are given with the command, so that there is no conversation with a person."""
        return self.prompt is not None or self.input_format == "stream-json"


def start(start_options: StartOptions) -> int:
    if not start_options.has_prompts and not sys.stdin.isatty():
        raise click.UsageError("there is no terminal for a conversation; give a prompt with -p, or a command")
    options = _options(start_options)
    if start_options.has_prompts:
        from dragoman.cli.agent.headless import answer

        return answer(start_options, options)
    if not start_options.plain and sys.stdout.isatty() and has_screen():
        from dragoman.cli.agent.app import open_app

        return open_app(start_options, options)
    from dragoman.cli.agent.plain import converse

    return converse(start_options, options)


def _options(start_options: StartOptions) -> AgentOptions:
    """The options of the conversation. Errors in them are found before a server is started."""
    try:
        from dragoman.agent.definitions import find_agent, find_agents, usable
        from dragoman.agent.models import choose_model
        from dragoman.agent.session import AgentOptions
    except ImportError:
        raise MissingPackage("pydantic-ai-slim", "agent") from None
    sources = sources_of()
    found = find_agents(sources)
    for each in found:
        if each.state != "ready":
            show_problem(_why_unusable(each))
    agent = None if start_options.agent is None else find_agent(sources, start_options.agent)
    model = choose_model(
        start_options.model or (agent.model if agent is not None else None), start_options.base_url
    )
    if model.provider == "local":
        click.echo(f"{model.spec} is for smoke tests only: its answers are not reliable.", err=True)
    return AgentOptions(
        model=model,
        folder=Path.cwd(),
        extra_folders=tuple(start_options.add_dir),
        max_turns=start_options.max_turns or (agent.max_turns if agent is not None else None) or 100,
        agent=agent,
        agents=usable(found),
        resume=_conversation(start_options),
    )


def _why_unusable(agent: AgentDefinition) -> str:
    if agent.state == "broken":
        return f"the agent {agent.name} cannot be used: {agent.problems[0]}"
    path = one_line(str(agent.path))
    return f"the agent {agent.name} ({path}) needs approval: `dragoman agents approve {agent.name}`"


def _conversation(start_options: StartOptions) -> str | None:
    from dragoman.agent.transcript import transcripts

    if not start_options.continue_last:
        return start_options.resume
    known = transcripts(Path.cwd())
    if not known:
        raise NotFound("there is no conversation in this folder yet", hint="Start one without --continue.")
    return known[0].id


def run(
    start_options: StartOptions,
    options: AgentOptions,
    work: Callable[[Host], Awaitable[T]],
    interaction: Interaction | None = None,
    *,
    shows_reports: bool = True,
) -> T:
    """Runs the work in a host with the rules of the command line and with the model for sampling requests."""
    from dragoman.agent.classifier import ModelClassifier
    from dragoman.agent.models import LazyModel
    from dragoman.agent.sampler import ModelSampler
    from dragoman.config.load import load

    model = LazyModel(options.model)
    own_mode = options.agent.permission_mode if options.agent is not None else None
    sources = sources_of()
    configuration: Configuration = load(sources)
    show_problems(configuration)
    check_readable(configuration)
    return run_with_host(
        sources,
        work,
        interaction=interaction,
        audit=True,
        permission_mode=cast("PermissionMode | None", start_options.permission_mode) or own_mode,
        rules={"allow": list(start_options.allowed_tools), "deny": list(start_options.disallowed_tools)},
        sampler=ModelSampler(model),
        classifier=ModelClassifier(model),
        session_hooks=False,
        shows_reports=shows_reports,
    )


def show_failed_servers(host: Host, otherwise: str, *, err: bool = False) -> None:
    """Prints a line for each server that is not connected, with the next step; `otherwise`: the text if the
    error of the server names none."""
    for name, view in host.servers.items():
        if view.status in ("failed", "needs-auth"):
            reason = one_line(view.own_reason or view.status, 300)
            hint = getattr(view.error, "hint", None) or otherwise
            text = f"! server {one_line(name, 60)}: {reason.rstrip('.')}. {one_line(hint, 200)}"
            click.echo(text, err=err)
