"""`dragoman mcp reset-project-choices`: removes all approval decisions of this project."""

from __future__ import annotations

import click

from dragoman.cli.common import load_and_report
from dragoman.cli.options import json_option
from dragoman.cli.render.document import echo
from dragoman.config.edits import forget_choices


@click.command("reset-project-choices")
@json_option
def command(as_json: bool) -> None:
    """Removes the approval decisions about servers, allow rules and agents of this project. The questions are
    asked again."""
    count = forget_choices(load_and_report().sources)
    if as_json:
        echo({"forgotten": count})
    else:
        click.echo(f"Removed {count} decision{'' if count == 1 else 's'}.")
