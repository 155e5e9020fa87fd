"""`dragoman mcp reset-project-choices`: every yes and no of this project forgotten."""

from __future__ import annotations

import click

from dragoman.cli.looking import look
from dragoman.cli.options import json_option
from dragoman.cli.render.document import echo
from dragoman.config.edits import forget_choices


@click.command("reset-project-choices", short_help="Forget every yes and no given in this project.")
@json_option
def command(as_json: bool) -> None:
    """Forgets which servers of this project's files were approved or declined. They will be asked again."""
    count = forget_choices(look().sources)
    if as_json:
        echo({"forgotten": count})
    else:
        click.echo(f"Forgot {count} answer{'' if count == 1 else 's'}.")
