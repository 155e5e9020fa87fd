"""Opens the terminal application."""

from __future__ import annotations

import asyncio
import gc

import click

from dragoman.agent.session import AgentOptions
from dragoman.cli import exit_codes
from dragoman.cli.agent.start import StartOptions, run
from dragoman.host import Host
from dragoman.tui.app import ConversationApp
from dragoman.tui.interaction import AppInteraction


def open_app(start_options: StartOptions, options: AgentOptions) -> int:
    """Runs the application until the person quits. SIGTERM and SIGHUP restore the terminal first."""
    interaction = AppInteraction(options.folder)

    async def work(host: Host) -> int:
        app = ConversationApp(host, options, interaction)
        app.on_session_opened = _exclude_from_garbage_collection
        try:
            await app.run_async()
        finally:
            interaction.app = None
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # by a signal; Textual ends without raising the error
            raise asyncio.CancelledError
        if app.return_code:
            return app.return_code
        if app.control.transcript_id is not None:
            click.echo(f"Continue with: dragoman --resume {app.control.transcript_id}", err=True)
        return exit_codes.OK

    return run(start_options, options, work, interaction, shows_reports=False)


def _exclude_from_garbage_collection() -> None:
    """Excludes the objects of a loaded conversation from garbage collection. A collection that visits all of
    them would delay keys by 100 ms and more."""
    gc.collect()
    gc.freeze()
