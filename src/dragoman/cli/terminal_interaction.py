"""Asks a person in a terminal whether a call may be made. Shows questions of servers
(`terminal_questions.py`).

Defines the texts and the meaning of keys. Text from a server or a model is shown as data, escaped; text that
is cut can be shown in full before the answer. Questions go to stderr, so that results can be piped.
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
from dragoman.cli.render.columns import cells, padded
from dragoman.cli.render.progress import TerminalStatus
from dragoman.cli.terminal_input import (
    SHOWN_CHARACTERS,
    SHOWN_LINES,
    ask_key,
    columns,
    cut,
    drop_typed,
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
"""The most columns for names beside their values; longer names are on separate lines."""
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
        """`cwd`: the folder for which the host is configured; None: the current folder. It determines the
        file that is shown for a permanent permission. `is_single`: whether the person typed a single call, so
        that there is no model and no session."""
        self._sources = Sources.here(Path(cwd) if cwd is not None else None)
        self._is_single = is_single
        self._turn = asyncio.Lock()
        """Held while a question is shown, so that a key answers only the question on the screen."""

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        """Shows the call, waits for a key, and returns its answer."""
        return await self._ask_in_turn(self._allow, question)

    async def _ask_in_turn(self, ask: Callable[[Q], Awaitable[A]], question: Q) -> A:
        async with self._turn:
            TerminalStatus.hide_current()
            drop_typed()
            try:
                return await ask(question)
            except asyncio.CancelledError:
                click.secho("\n  This question is no longer needed.", dim=True, err=True)
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
        """Shows the form on a separate screen; where that is not possible, asks for the fields one by one."""
        if has_screen():
            from dragoman.tui import questions

            return await self._ask_in_turn(questions.fill_in, question)
        return await self._ask_in_turn(terminal_questions.fill_in, question)

    async def elicit_url(self, question: UrlElicitation) -> Literal["accept", "decline", "cancel"]:
        """Shows the URL, and opens it in a browser if the person agrees."""
        return await self._ask_in_turn(terminal_questions.ask_to_open, question)

    async def wait_for_url(self, question: UrlElicitation) -> bool:
        """Waits until the person is done with the page, or gives up."""
        return await self._ask_in_turn(terminal_questions.ask_if_done, question)

    async def review_sampling(self, review: SamplingReview) -> SamplingReview | None:
        """Shows the request to the model, or its answer."""
        if has_screen():
            from dragoman.tui import questions

            return await self._ask_in_turn(questions.review, review)
        return await self._ask_in_turn(terminal_questions.review, review)

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
    """The person who typed a command. Typing it allows its call, unless a rule asks or the tool is declared
    destructive."""

    def __init__(self, sources: Sources, *, assumes_yes: bool) -> None:
        self._terminal = TerminalInteraction(sources.cwd, is_single=True)
        self._assumes_yes = assumes_yes

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        if is_allowed_by_command(question, assumes_yes=self._assumes_yes):
            return PermissionAnswer(True, "typed on the command line")
        if is_interactive():
            return await self._terminal.allow(question)
        why = "the server declares it destructive; " if question.risk == "destroys" else ""
        raise NoInteraction(f"{why}give --yes to call it")

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        return await self._required_terminal().elicit_form(question)

    async def elicit_url(self, question: UrlElicitation) -> Literal["accept", "decline", "cancel"]:
        return await self._required_terminal().elicit_url(question)

    async def wait_for_url(self, question: UrlElicitation) -> bool:
        return await self._required_terminal().wait_for_url(question)

    async def review_sampling(self, review: SamplingReview) -> SamplingReview | None:
        return review if self._assumes_yes else await self._required_terminal().review_sampling(review)

    def _required_terminal(self) -> TerminalInteraction:
        """The terminal. Raises `NoInteraction` if there is none."""
        if not is_interactive():
            raise NoInteraction("run it in a terminal to answer it")
        return self._terminal


def is_allowed_by_command(question: PermissionQuestion, *, assumes_yes: bool) -> bool:
    """Whether the command itself allows the call, without a question."""
    return assumes_yes or (question.is_rememberable and question.risk != "destroys")


def show(question: PermissionQuestion) -> None:
    """Shows the tool, its server, the arguments, and the reason for the question."""
    from dragoman.permissions.decide import DEFINITION_CHANGED  # loaded already if there is a question

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
    if question.reason and question.reason != DEFINITION_CHANGED:  # shown as a warning
        click.secho(f"  {indented(one_line(question.reason, 300), 2)}", dim=True, err=True)


def _made_by(question: PermissionQuestion) -> str:
    return f", called by the agent {one_line(question.agent, 80)}" if question.agent else ""


def _title(question: PermissionQuestion) -> str:
    """The title of the tool in quotes, because it is text of a server."""
    title = one_line(question.title, 100)
    return "" if not title or title in question.tool else quoted(title)


def _about(question: PermissionQuestion) -> list[str]:
    words, colour = _RISKS[question.risk]
    by = " by the server" if question.server and question.risk != "writes" else ""
    return [click.style(words + by, fg=colour), *["may access external systems"] * question.open_world]


class ArgumentRow(NamedTuple):
    """The text of one argument."""

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
            name = click.style(padded(row.name, names), fg="cyan")
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
    """The name. It is in quotes unless it is plain, because a name with blanks could look like a name and its
    value."""
    return name if _PLAIN_NAME.fullmatch(name) else _written(name)


_PLAIN_NAME: Final = re.compile(r"[\w.$-]+", re.ASCII)


def _written(value: Any) -> str:
    """The value as JSON, with invisible characters escaped. Text cannot leave its quotes."""
    return visible(json.dumps(value, ensure_ascii=False, default=repr))


def _in_file(path: object) -> str:
    return f"\nin {one_line(str(path))}"
