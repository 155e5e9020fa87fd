"""The question whether a call may be made, in a terminal.

I own: what a person is shown and which key means what. Everything that comes from a server or a model is
shown as data, escaped and whole: what is cut can be looked at before answering. Questions go to stderr, so
that results can be piped.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import textwrap
from collections.abc import Iterator
from typing import Any, Final, Literal

import click

from dragoman.cleaning import one_line, visible
from dragoman.cli.options import is_watched
from dragoman.config.scopes import Sources
from dragoman.interaction import NobodyToAsk, PageQuestion, PermissionAnswer, PermissionQuestion

SHOWN_CHARACTERS: Final = 400
"""Of one argument, before the person asks for all."""
SHOWN_LINES: Final = 8
SHOWN_ARGUMENTS: Final = 20

_RISKS: Final = {
    "reads": ("reads only", "green"),
    "writes": ("may change things", "yellow"),
    "destroys": ("may destroy things", "red"),
}


class Terminal:
    """Asks the person who sits there."""

    def __init__(self, sources: Sources, *, is_single: bool = False) -> None:
        """`is_single`: there is one call, which the person asked for, and no model."""
        self._sources = sources
        self._is_single = is_single

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        return await asyncio.to_thread(self._ask, question)

    async def visit(self, question: PageQuestion) -> Literal["accept", "decline", "cancel"]:
        return await asyncio.to_thread(_ask_to_visit, question)

    def _ask(self, question: PermissionQuestion) -> PermissionAnswer:
        show(question)
        keys = dict(self._keys(question))
        for key, meaning in keys.items():
            click.echo(f"    {click.style(key, bold=True)}  {meaning}", err=True)
        while True:
            match _key(keys):
                case "y":
                    return PermissionAnswer(True)
                case "s":
                    return PermissionAnswer(True, for_session=True)
                case "a":
                    return PermissionAnswer(True, always="user")
                case "p":
                    return PermissionAnswer(True, always="local")
                case "t":
                    return PermissionAnswer(False, click.prompt("  Tell the model", err=True, default=""))
                case "v":
                    _show_arguments(question, whole=True)
                case _:
                    return PermissionAnswer(False)

    def _keys(self, question: PermissionQuestion) -> Iterator[tuple[str, str]]:
        yield "y", "yes, this once"
        if question.is_rememberable:
            if not self._is_single:
                yield "s", "yes, for this session"
            rule = one_line(question.rule, 200)
            yield "a", f"yes, always: allow {rule}\n       in {self._sources.user_file}"
            yield "p", f"yes, always in this project: the same\n       in {self._sources.file_of('local')}"
        yield "n", "no"
        if not self._is_single:
            yield "t", "no, and tell the model why"
        if any(is_cut for _, _, is_cut in _laid_out(question)):
            yield "v", "see the arguments in full"


class CommandLineUser:
    """The person who typed a command: that is a yes, unless a rule wants a question or the tool destroys."""

    def __init__(self, sources: Sources, *, says_yes: bool) -> None:
        self._terminal = Terminal(sources, is_single=True)
        self._says_yes = says_yes

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        if self._says_yes or (question.is_rememberable and question.risk != "destroys"):
            return PermissionAnswer(True, "typed on the command line")
        if is_watched():
            return await self._terminal.allow(question)
        why = "it says that it may destroy things; " if question.risk == "destroys" else ""
        raise NobodyToAsk(f"{why}give --yes if you mean it")

    async def visit(self, question: PageQuestion) -> Literal["accept", "decline", "cancel"]:
        return await self._terminal.visit(question) if is_watched() else "cancel"


def show(question: PermissionQuestion) -> None:
    """Who wants what, with which arguments, and why it is asked."""
    who = one_line(question.server, 80) or "a built-in tool"
    name = click.style(one_line(question.tool, 100), bold=True)
    click.echo(
        f"\n{click.style('?', fg='yellow', bold=True)} {click.style(who, bold=True)}: {name}", err=True
    )
    words, colour = _RISKS[question.risk]
    about = [click.style(words, fg=colour)] + ["reaches beyond its server"] * question.reaches_out
    said = " by its own word" if question.server else ""
    title = one_line(question.title, 100)
    if title and title not in question.tool:
        about.insert(0, title)
    click.echo(f"  {' · '.join(about)}{click.style(said, dim=True)}", err=True)
    _show_arguments(question)
    if mixed := _mixed_words(question):
        click.secho(f"  ! These words mix alphabets: {', '.join(mixed)}", fg="red", err=True)
    if question.has_changed:
        click.secho("  ! It was allowed before, and has changed since.", fg="red", err=True)
    if question.reason:
        click.secho(f"  {visible(question.reason, 300)}", dim=True, err=True)


def _show_arguments(question: PermissionQuestion, *, whole: bool = False) -> None:
    rows = list(_laid_out(question, whole=whole))
    if not rows:
        click.secho("    (no arguments)", dim=True, err=True)
    widest = max((len(name) for name, _, _ in rows), default=0)
    for name, text, _ in rows:
        first, *others = text.split("\n")
        click.echo(f"    {click.style(name.ljust(widest), fg='cyan')}  {first}", err=True)
        for line in others:
            click.echo(f"    {' ' * widest}  {line}", err=True)


def _laid_out(question: PermissionQuestion, *, whole: bool = False) -> Iterator[tuple[str, str, bool]]:
    """Name, value, and whether some of it is not shown."""
    arguments = list(question.arguments.items())
    for name, value in arguments if whole else arguments[:SHOWN_ARGUMENTS]:
        text = _written(value)
        lines = _wrapped(text if whole else text[: SHOWN_CHARACTERS + 1])
        is_cut = not whole and (len(text) > SHOWN_CHARACTERS or len(lines) > SHOWN_LINES)
        if is_cut:
            lines = _wrapped(text[:SHOWN_CHARACTERS])[:SHOWN_LINES]
            lines.append(f"… [{len(text)} characters in all]")
        yield one_line(name, 60), "\n".join(lines), is_cut
    if not whole and len(arguments) > SHOWN_ARGUMENTS:
        yield "…", f"[{len(arguments) - SHOWN_ARGUMENTS} more arguments]", True


def _mixed_words(question: PermissionQuestion) -> list[str]:
    """Words that are made to look like others, with the strange letters escaped."""
    found = dict.fromkeys(_MIXED.findall(_written(dict(question.arguments))))
    return [word.encode("ascii", "backslashreplace").decode() for word in list(found)[:5]]


# A Latin word with a Greek or Cyrillic letter in it, or the other way round.
_MIXED: Final = re.compile(r"\w*(?:[A-Za-z][\u0370-\u052f]|[\u0370-\u052f][A-Za-z])\w*")


def _written(value: Any) -> str:
    """As JSON, with what cannot be seen escaped: text that looks like another argument stays inside
    quotes."""
    return visible(json.dumps(value, ensure_ascii=False, default=repr))


def _wrapped(text: str) -> list[str]:
    width = max(20, shutil.get_terminal_size().columns - 30)
    return textwrap.wrap(text, width, drop_whitespace=False, break_on_hyphens=False) or [""]


def _key(keys: dict[str, str]) -> str:
    """The key that was pressed; a line, where single keys cannot be had. The end of input is a no."""
    click.echo(f"  {'/'.join(keys)}: ", nl=False, err=True)
    while True:
        try:
            key = click.getchar().lower()[:1]
        except (EOFError, KeyboardInterrupt):
            key = "n"
        if key in ("\x03", "\x04", "\x1b", ""):
            key = "n"
        if key in keys:
            click.echo(key, err=True)
            return key


def _ask_to_visit(question: PageQuestion) -> Literal["accept", "decline", "cancel"]:
    who = click.style(one_line(question.server, 80), bold=True)
    click.echo(
        f"\n{click.style('?', fg='yellow', bold=True)} {who} wants you to visit a page first:", err=True
    )
    if question.message:
        click.echo(f"  it says: {one_line(question.message, 500)}", err=True)
    click.echo(f"  {_with_host_bold(question.url)}", err=True)
    click.secho("  Nothing has been opened or fetched. Go there only if you trust it.", dim=True, err=True)
    keys = {"y": "I have been there, go on", "n": "no"}
    for key, meaning in keys.items():
        click.echo(f"    {click.style(key, bold=True)}  {meaning}", err=True)
    return "accept" if _key(keys) == "y" else "decline"


def _with_host_bold(url: str) -> str:
    scheme, _, rest = url.partition("://")
    end = next((place for place, sign in enumerate(rest) if sign in "/?#"), len(rest))
    user, at, host = rest[:end].rpartition("@")
    return f"{scheme}://{user}{at}{click.style(host, bold=True)}{rest[end:]}"
