"""Resources and prompts as text and as JSON. Text from servers is escaped here."""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

import click

from dragoman.catalog.prompts import Completion, Prompt, PromptResult
from dragoman.catalog.resources import Resource, ResourceContents, ResourceTemplate
from dragoman.cleaning import one_line, visible
from dragoman.cli.render.columns import TableRow, table, width
from dragoman.cli.render.document import echo
from dragoman.content.blocks import TextBlock, UnknownBlock
from dragoman.errors import CallError


def show_resources(
    resources: Sequence[Resource], templates: Sequence[ResourceTemplate], *, full: bool = False
) -> None:
    rows = [(item.server, TableRow(one_line(item.uri), _kind(item), _about(item))) for item in resources]
    rows += [
        (item.server, TableRow(one_line(item.uri_template), "template", _about(item))) for item in templates
    ]
    if not rows:
        click.echo("no server offers resources", err=True)
    for server, own in groupby(sorted(rows, key=itemgetter(0)), key=itemgetter(0)):
        click.echo(click.style(one_line(server), bold=True))
        for lines in table([row for _, row in own], width(full=full), full=full):
            _echo(lines)


def show_prompts(prompts: Sequence[Prompt], *, arguments: bool = False, full: bool = False) -> None:
    if not prompts:
        click.echo("no server offers prompts", err=True)
    by_server = attrgetter("server")
    for server, group in groupby(sorted(prompts, key=by_server), key=by_server):
        click.echo(click.style(one_line(server), bold=True))
        own = list(group)
        rows = [TableRow(each.usage, "", one_line(each.description or each.title or "")) for each in own]
        for prompt, lines in zip(own, table(rows, width(full=full), full=full)):
            _echo(lines)
            if arguments:
                _show_arguments(prompt)


def _show_arguments(prompt: Prompt) -> None:
    rows = [
        TableRow(
            one_line(each.name) + ("*" if each.required else ""),
            "",
            one_line(each.description or each.title or ""),
        )
        for each in prompt.arguments
    ]
    for lines in table(rows, width(), indent="      ", full=True):
        _echo(lines)


def _echo(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def show_contents(contents: ResourceContents) -> None:
    """Prints the contents: on a terminal with invisible characters escaped, otherwise the bytes unchanged."""
    if not sys.stdout.isatty():
        sys.stdout.buffer.write(bytes_of(contents))
        sys.stdout.buffer.flush()  # --watch prints without ending
        return
    for part in contents.contents:
        if part.text is not None:
            click.echo(visible(part.text))
        else:
            blob, kind = part.blob or "", one_line(part.mime_type or "unknown type", 60)
            size = len(blob) * 3 // 4 - blob[-2:].count("=")
            click.echo(f"[{kind}, {size} bytes: use -o FILE to save it]")
    if not contents.contents:
        click.echo("it is empty", err=True)


def bytes_of(contents: ResourceContents) -> bytes:
    parts: list[bytes] = []
    for part in contents.contents:
        try:
            parts.append(part.text.encode() if part.text is not None else base64.b64decode(part.blob or ""))
        except binascii.Error:
            raise CallError(
                contents.server, f"{contents.server} sent {contents.uri} with invalid base64 data"
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
        echo({"values": found.values, "hasMore": found.has_more, "total": found.total})
        return
    for value in found.values:
        click.echo(one_line(value))
    if not found.values:
        click.echo("the server has no completions", err=True)
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


def _about(item: Resource | ResourceTemplate) -> str:
    name = item.title or item.name
    return one_line(f"{name}: {item.description}" if item.description else name)


def resource_json(item: Resource) -> dict[str, Any]:
    return {"server": item.server, "uri": item.uri, **_described(item), "size": item.size}


def template_json(item: ResourceTemplate) -> dict[str, Any]:
    names = list(item.variables)
    return {"server": item.server, "uriTemplate": item.uri_template, "variables": names, **_described(item)}


def _described(item: Resource | ResourceTemplate) -> dict[str, Any]:
    return {
        "name": item.name,
        "title": item.title,
        "description": item.description,
        "mimeType": item.mime_type,
        "annotations": item.annotations,
        "meta": item.meta,
    }


def prompt_json(item: Prompt) -> dict[str, Any]:
    return {
        "name": item.name,
        "server": item.server,
        "prompt": item.wire_name,
        "title": item.title,
        "description": item.description,
        "arguments": item.arguments,
        "meta": item.meta,
    }


def prompt_result_json(result: PromptResult) -> dict[str, Any]:
    blocks = ((message.role, message.content) for message in result.messages)
    return {
        "server": result.server,
        "name": result.name,
        "description": result.description,
        "messages": [
            {"role": role, "content": block.value if isinstance(block, UnknownBlock) else block}
            for role, block in blocks
        ],
        "problems": result.problems,
    }
