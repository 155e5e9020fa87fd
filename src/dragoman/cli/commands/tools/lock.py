"""`dragoman tools lock`: every tool's definition written down, and what changed since."""

from __future__ import annotations

import sys

import click

from dragoman.catalog import lock
from dragoman.catalog.changes import describe
from dragoman.cli import exit_codes
from dragoman.cli.opening import opened
from dragoman.cli.options import json_option, mcp_config_option, run_with_host, server_option
from dragoman.cli.render import json, text
from dragoman.cli.render.servers import counted
from dragoman.cli.render.waiting import Waiting
from dragoman.host import Host

COLOURS = {"+": "green", "-": "red"}


@click.command("lock", short_help="Write down every tool's definition, and show what changed since.")
@mcp_config_option
@json_option
@server_option
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 if anything differs.")
def command(given: tuple[str, ...], strict: bool, as_json: bool, server: str | None, check: bool) -> None:
    """Writes .mcp.lock at the root of the project, and shows what has changed since it was last written.

    Keep the file with the project: with --frozen, `dragoman tools` and `dragoman call` leave out every tool
    that is not as it says. Servers that cannot be connected keep the entries they had; exit code 4 then.
    """
    sources, configuration = opened(given, strict, server)
    path = sources.project_root / lock.LOCK_FILE

    async def work(host: Host) -> int:
        with Waiting(host):
            views = (await host.ready()).values()
        read = [view.name for view in views if view.status == "connected"]
        before = lock.read_lock(path)
        changes = lock.compare(before, host.tools(), read=read)
        known = None if server is not None else list(configuration.servers)
        if not check:
            lock.write_lock(path, lock.updated(before, host.tools(), read=read, known=known))
        if as_json:
            json.echo({"file": str(path), "isWritten": not check, "changes": changes})
        else:
            _show(changes)
            done = "would be written to" if check else "are written to"
            click.echo(f"{counted(len(host.tools()), 'tool')} {done} {path}", err=True)
        missing = [view for view in views if view.status in ("failed", "needs-auth")]
        for view in missing:
            if view.error is not None and not as_json:
                text.show_error(view.error)
        if missing:
            return exit_codes.NOT_CONNECTED
        return exit_codes.TOOL_ERROR if check and changes else exit_codes.OK

    sys.exit(run_with_host(sources, work, only=None if server is None else [server]))


def _show(changes: tuple[lock.Change, ...]) -> None:
    for change in changes:
        head, *lines = describe(change).split("\n")
        click.echo(click.style(head, bold=True))
        for line in lines:
            click.echo(click.style(line, fg=COLOURS.get(line.lstrip()[:1])))
