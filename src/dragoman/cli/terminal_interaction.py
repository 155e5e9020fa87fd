"""Asks a person in a terminal: whether a call may be made, and what servers ask (`terminal_questions.py`).

Defines what is shown and which key means what. Text from a server or a model is shown as data, escaped and
complete: what is shortened can be shown in full before the answer. Questions go to stderr, so that results
can be piped.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

import click

from dragoman.cleaning import one_line, visible
from dragoman.cli import terminal_questions
from dragoman.cli.render.columns import cells, filled
from dragoman.cli.render.progress import TerminalStatus
from dragoman.cli.terminal_input import (
    SHOWN_CHARACTERS,
    SHOWN_LINES,
    ask_key,
    columns,
    cut,
    has_screen,
    indented,
    is_interactive,
    quoted,
    read_line,
    show_keys,
)
from dragoman.config.scopes import Sources
from dragoman.interaction import (
    FormAnswer,
    FormElicitation,
    NoInteraction,
    PermissionAnswer,
    PermissionQuestion,
    SamplingReview,
    UrlElicitation,
)
from dragoman.mixed_alphabets import mixed_words

SHOWN_NAME: Final = 24
"""Columns that names may take beside their values; longer ones have lines of their own."""
_RISKS: Final = {
    "reads": ("declared read-only", "green"),
    "writes": ("not declared read-only", "yellow"),
    "destroys": ("declared destructive", "red"),
}


Q = TypeVar("Q")
A = TypeVar("A")


class TerminalInteraction:
    """An `Interaction` in the terminal: asks whether calls may be made, and shows forms, URLs and sampling
    requests of servers."""

    def __init__(self, cwd: Path | str | None = None, *, is_single: bool = False) -> None:
        """`cwd`: the folder that the host is configured for, if it is not the current one; it decides which
        file is named for a lasting yes. `is_single`: there is one call, which the person asked for, and no
        model."""
        self._sources = Sources.here(Path(cwd) if cwd is not None else None)
        self._is_single = is_single
        self._turn = asyncio.Lock()
        """One question at a time: a key is the answer to what is on the screen."""

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        """Shows the call, waits for a key, and returns what it means."""
        return await self._shown(self._allow, question)

    async def _shown(self, ask: Callable[[Q], Awaitable[A]], question: Q) -> A:
        async with self._turn:
            TerminalStatus.hide_current()
            try:
                return await ask(question)
            except asyncio.CancelledError:
                click.secho("\n  This is no longer asked.", dim=True, err=True)
                raise

    async def _allow(self, question: PermissionQuestion) -> PermissionAnswer:
        show(question)
        meanings = dict(self._keys(question))
        show_keys(meanings)
        key = await self._answer(question, meanings)
        match key:
            case "y":
                return PermissionAnswer(True)
            case "s":
                return PermissionAnswer(True, for_session=True)
            case "a":
                return PermissionAnswer(True, always="user")
            case "p":
                return PermissionAnswer(True, always="local")
            case "w":
                return PermissionAnswer(True, always="user", whole_server=True)
            case "t":
                click.echo("  Message to the model: ", nl=False, err=True)
                return PermissionAnswer(False, await read_line())
            case _:
                return PermissionAnswer(False)

    async def _answer(self, question: PermissionQuestion, meanings: Mapping[str, str]) -> str:
        while (key := await ask_key(meanings)) == "v":
            _show_arguments(question, full=True)
        return key

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        """Shows the form on a screen of its own; where there is none, asks for the fields one by one."""
        if has_screen():
            from dragoman.tui import questions

            return await self._shown(questions.fill_in, question)
        return await self._shown(terminal_questions.fill_in, question)

    async def elicit_url(self, question: UrlElicitation) -> Literal["accept", "decline", "cancel"]:
        """Shows the URL, and opens it in a browser if the person agrees."""
        return await self._shown(terminal_questions.ask_to_open, question)

    async def wait_for_url(self, question: UrlElicitation) -> bool:
        """Waits until the person is done with the page, or gives up."""
        return await self._shown(terminal_questions.ask_if_done, question)

    async def review_sampling(self, review: SamplingReview) -> SamplingReview | None:
        """Shows what the model is asked, or what it answers."""
        if has_screen():
            from dragoman.tui import questions

            return await self._shown(questions.review, review)
        return await self._shown(terminal_questions.review, review)

    def _keys(self, question: PermissionQuestion) -> Iterator[tuple[str, str]]:
        yield "y", "yes, this once"
        if question.is_rememberable and not self._is_single:
            yield "s", "yes, for this session"
        if question.is_rememberable and question.rule:
            yield "a", f"yes, always: allow {one_line(question.rule)}{_in_file(self._sources.user_file)}"
            yield "p", f"yes, always in this project: the same{_in_file(self._sources.file_of('local'))}"
        if question.is_rememberable and question.server_rule and not self._is_single:
            rule, server = one_line(question.server_rule), one_line(question.server, 60)
            file = _in_file(self._sources.user_file)
            yield "w", f"yes, always, for every tool of {server}: allow {rule}{file}"
        yield "n", "no"
        if not self._is_single:
            yield "t", "no, with a message to the model"
        if any(row.is_cut for row in _argument_rows(question)):
            yield "v", "show the complete arguments"


class CommandLineUser:
    """The person who typed a command: that is a yes, unless a rule wants a question or the tool destroys."""

    def __init__(self, sources: Sources, *, says_yes: bool) -> None:
        self._terminal = TerminalInteraction(sources.cwd, is_single=True)
        self._says_yes = says_yes

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        if is_allowed_by_typing(question, says_yes=self._says_yes):
            return PermissionAnswer(True, "typed on the command line")
        if is_interactive():
            return await self._terminal.allow(question)
        why = "the server declares it destructive; " if question.risk == "destroys" else ""
        raise NoInteraction(f"{why}give --yes to call it")

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        return await self._attended().elicit_form(question)

    async def elicit_url(self, question: UrlElicitation) -> Literal["accept", "decline", "cancel"]:
        return await self._attended().elicit_url(question)

    async def wait_for_url(self, question: UrlElicitation) -> bool:
        return await self._attended().wait_for_url(question)

    async def review_sampling(self, review: SamplingReview) -> SamplingReview | None:
        return review if self._says_yes else await self._attended().review_sampling(review)

    def _attended(self) -> TerminalInteraction:
        if not is_interactive():
            raise NoInteraction("run it in a terminal to answer it")
        return self._terminal


def is_allowed_by_typing(question: PermissionQuestion, *, says_yes: bool) -> bool:
    """Whether the person who typed the command is not asked."""
    return says_yes or (question.is_rememberable and question.risk != "destroys")


def show(question: PermissionQuestion) -> None:
    """Who wants what, with which arguments, and why it is asked."""
    who = one_line(question.server, 80) or "a built-in tool"
    name = click.style(one_line(question.tool, 100), bold=True)
    mark = click.style("?", fg="yellow", bold=True)
    click.echo(f"\n{mark} {click.style(who, bold=True)}: {name}{_made_by(question)}", err=True)
    about = " · ".join(filter(None, (title := _title(question), *_about(question))))
    if cells(click.unstyle(about)) > columns() - 3:
        about = "\n  ".join(filter(None, (indented(title, 2), *_about(question))))
    click.echo(f"  {about}", err=True)
    _show_arguments(question)
    if question.folder:
        click.echo(f"  in the folder {indented(one_line(question.folder, 1000), 4)}", err=True)
    if mixed := mixed_words((question.title, question.arguments)):
        words = f"These words mix alphabets: {', '.join(mixed)}"
        click.secho(f"  ! {indented(words, 4)}", fg="red", err=True)
    if question.has_changed:
        click.secho("  ! It was allowed before, and has changed since.", fg="red", err=True)
    if question.reason:
        click.secho(f"  {indented(one_line(question.reason, 300), 2)}", dim=True, err=True)


def _made_by(question: PermissionQuestion) -> str:
    return f", called by the agent {one_line(question.agent, 80)}" if question.agent else ""


def _title(question: PermissionQuestion) -> str:
    """It is a server's, and may say anything: it is shown in quotes."""
    title = one_line(question.title, 100)
    return "" if not title or title in question.tool else quoted(title)


def _about(question: PermissionQuestion) -> list[str]:
    words, colour = _RISKS[question.risk]
    by = " by the server" if question.server and question.risk != "writes" else ""
    return [click.style(words + by, fg=colour), *["may access external systems"] * question.reaches_out]


class ArgumentRow(NamedTuple):
    """One argument as it is shown."""

    name: str
    value: str
    is_cut: bool


def _show_arguments(question: PermissionQuestion, *, full: bool = False) -> None:
    rows = list(_argument_rows(question, full=full))
    if not rows:
        click.secho("    (no arguments)", dim=True, err=True)
    names = max((cells(row.name) for row in rows), default=0)
    for row in rows:
        if names <= SHOWN_NAME:
            name = click.style(filled(row.name, names), fg="cyan")
            click.echo(f"    {name}  {indented(row.value, names + 6)}", err=True)
        else:
            click.secho(f"    {indented(row.name, 4)}", fg="cyan", err=True)
            click.echo(f"        {indented(row.value, 8)}", err=True)


def _argument_rows(question: PermissionQuestion, *, full: bool = False) -> Iterator[ArgumentRow]:
    arguments = list(question.arguments.items())
    for name, value in arguments if full else arguments[:SHOWN_LINES]:
        shown, text = _name(str(name)), _written(value)
        if full:
            yield ArgumentRow(shown, text, False)
        else:
            is_cut = len(text) > SHOWN_CHARACTERS or len(shown) > SHOWN_CHARACTERS
            yield ArgumentRow(cut(shown), cut(text), is_cut)
    if not full and len(arguments) > SHOWN_LINES:
        yield ArgumentRow("…", f"[{len(arguments) - SHOWN_LINES} more arguments]", True)


def _name(name: str) -> str:
    """In quotes unless it is plain: one with blanks could look like a name and its value."""
    return name if _PLAIN_NAME.fullmatch(name) else _written(name)


_PLAIN_NAME: Final = re.compile(r"[\w.$-]+", re.ASCII)


def _written(value: Any) -> str:
    """As JSON, with what cannot be seen escaped: text that looks like another argument stays inside
    quotes."""
    return visible(json.dumps(value, ensure_ascii=False, default=repr))


def _in_file(path: object) -> str:
    return f"\nin {one_line(str(path))}"
