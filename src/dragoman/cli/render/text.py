"""Values as text for people. Everything a server said is made harmless here."""

from __future__ import annotations

import click

from dragoman.calls.outcome import CallOutcome
from dragoman.cleaning import last_words, one_line, visible
from dragoman.cli.render.servers import counted
from dragoman.content.blocks import AudioBlock, ImageBlock, TextBlock
from dragoman.errors import ConnectError, DragomanError
from dragoman.view import ServerView

_MARKS = {"connected": ("✓", "green"), "failed": ("✗", "red"), "pending": ("?", "yellow")}


def show_error(error: DragomanError) -> None:
    click.echo(click.style("error: ", fg="red", bold=True) + visible(str(error)), err=True)
    if isinstance(error, ConnectError):
        _show_last_words(error.stderr_tail)
    if error.hint:
        click.echo(click.style("  hint: ", fg="cyan") + visible(error.hint), err=True)


def show_server(view: ServerView, *, err: bool = False) -> None:
    mark, colour = _MARKS.get(view.status, ("·", "white"))
    about = f"{counted(view.tool_count, 'tool')}, {view.protocol_version}"
    if view.status != "connected":
        about = f"{view.status}: {one_line(view.reason, 300)}" if view.reason else view.status
    click.echo(
        f"{click.style(mark, fg=colour)} {click.style(one_line(view.name), bold=True)}  {about}", err=err
    )
    for problem in view.problems:
        click.echo(f"    {click.style('!', fg='yellow')} {one_line(problem, 300)}", err=err)


def show_outcome(outcome: CallOutcome) -> None:
    """The result itself on stdout, an error's text on stderr."""
    for block in outcome.content:
        if isinstance(block, TextBlock):
            text = visible(block.text)
        elif isinstance(block, ImageBlock | AudioBlock):
            kind = "image" if isinstance(block, ImageBlock) else "audio"
            text = f"[{kind}: {one_line(block.mime_type, 60)}, {len(block.data) * 3 // 4} bytes]"
        else:
            text = visible(block.as_text())
        click.echo(text, err=outcome.is_error)
    if not outcome.content and outcome.has_structured:
        import msgspec

        click.echo(visible(msgspec.json.format(msgspec.json.encode(outcome.structured)).decode()))


def _show_last_words(stderr_tail: str) -> None:
    lines = last_words(stderr_tail)
    if lines:
        click.echo(click.style("  its last words:", dim=True), err=True)
    for line in lines:
        click.echo(click.style(f"    {visible(line, 300)}", dim=True), err=True)
