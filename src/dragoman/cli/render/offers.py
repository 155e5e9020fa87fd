"""Resources and prompts for people. Everything a server said is made harmless here."""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Sequence
from itertools import groupby

import click

from dragoman.catalog.prompts import Completion, Prompt, PromptResult
from dragoman.catalog.resources import Resource, ResourceContents, Template
from dragoman.cleaning import one_line, visible
from dragoman.cli.render.columns import cells, filled, fitted, width
from dragoman.cli.render.document import echo
from dragoman.content.blocks import TextBlock
from dragoman.errors import CallError


def show_resources(resources: Sequence[Resource], templates: Sequence[Template]) -> None:
    rows = [(item.server, item.uri, _kind(item), _about(item)) for item in resources]
    rows += [(item.server, item.uri_template, "template", _about(item)) for item in templates]
    if not rows:
        click.echo("no server offers resources", err=True)
    for server, own in groupby(sorted(rows, key=lambda row: row[0]), key=lambda row: row[0]):
        click.echo(click.style(one_line(server), bold=True))
        _show_rows([(one_line(uri), kind, about) for _, uri, kind, about in own])


def show_prompts(prompts: Sequence[Prompt]) -> None:
    if not prompts:
        click.echo("no server offers prompts", err=True)
    for server, own in groupby(
        sorted(prompts, key=lambda prompt: prompt.server), key=lambda each: each.server
    ):
        click.echo(click.style(one_line(server), bold=True))
        _show_rows([(prompt.usage, "", one_line(prompt.description or prompt.title or "")) for prompt in own])


def _show_rows(rows: list[tuple[str, str, str]]) -> None:
    columns = width()
    firsts = max(cells(first) for first, _, _ in rows)
    if columns is not None:
        firsts = min(firsts, max(30, columns // 2))
    seconds = max(cells(second) for _, second, _ in rows)
    room = None if columns is None else max(20, columns - firsts - seconds - 6)
    for first, second, about in rows:
        start = f"  {click.style(filled(first, firsts), fg='cyan')}  {filled(second, seconds)}"
        if cells(first) > firsts:  # a line of its own: what has to be typed is never cut
            click.echo(f"  {click.style(first, fg='cyan')}")
            start = " " * (firsts + 4) + filled(second, seconds)
        click.echo(f"{start}  {fitted(about, room)}".rstrip())


def show_contents(contents: ResourceContents) -> None:
    """On a terminal made visible; elsewhere the bytes themselves."""
    if not sys.stdout.isatty():
        sys.stdout.buffer.write(bytes_of(contents))
        return
    for part in contents.contents:
        if part.text is not None:
            click.echo(visible(part.text))
        else:
            size = len(part.blob or "") * 3 // 4
            kind = one_line(part.mime_type or "unknown type", 60)
            click.echo(f"[{kind}, about {size} bytes: use -o FILE to keep it]")
    if not contents.contents:
        click.echo("it is empty", err=True)


def bytes_of(contents: ResourceContents) -> bytes:
    parts: list[bytes] = []
    for part in contents.contents:
        try:
            parts.append(part.text.encode() if part.text is not None else base64.b64decode(part.blob or ""))
        except binascii.Error:
            raise CallError(
                contents.server, f"{contents.server} sent {contents.uri} in broken base64"
            ) from None
    return b"\n".join(parts)


def show_prompt(result: PromptResult) -> None:
    if result.description:
        click.echo(click.style(visible(result.description), dim=True), err=True)
    for message in result.messages:
        text = message.content.text if isinstance(message.content, TextBlock) else message.content.as_text()
        click.echo(f"{click.style(message.role, bold=True)}: {visible(text)}")


def show_completion(found: Completion, *, as_json: bool) -> None:
    if as_json:
        echo(found)
        return
    for value in found.values:
        click.echo(one_line(value))
    if found.has_more:
        click.echo(f"… of {found.total}" if found.total else "… and more", err=True)


def _kind(resource: Resource) -> str:
    kind = one_line(resource.mime_type or "", 40)
    return kind if resource.size is None else f"{kind} {_size(resource.size)}".strip()


def _size(count: int) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count //= 1000
    return f"{count} GB"


def _about(item: Resource | Template) -> str:
    name = item.title or item.name
    return one_line(f"{name}: {item.description}" if item.description else name)
