"""Shows questions of servers in a terminal, as plain prompts: forms, URLs, sampling.

Text from servers is shown as data: escaped, in quotes, and never to the left of the prompts. Values are
checked when they are entered, and asked for again until they are valid. Ctrl-D and Escape cancel a question.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, cast

import click
from msgspec import UNSET

from dragoman.browser import open_page, opener
from dragoman.cleaning import one_line, visible
from dragoman.cli.render.columns import cells, padded
from dragoman.cli.terminal_input import ask_key, cut, indented, quoted, read_answer, show_keys
from dragoman.forms import FormField, value_of
from dragoman.interaction import (
    FormAnswer,
    FormElicitation,
    RelatedCall,
    SamplingReview,
    UrlElicitation,
    blocks_text,
)

Action = Literal["accept", "decline", "cancel"]
CANCEL_KEY: Final = "c"
"""The key that cancels a question; Ctrl-D and Escape do the same."""
_KINDS: Final[Mapping[str, str]] = {
    "number": "a number",
    "integer": "a whole number",
    "boolean": "yes or no",
    "choice": "a number or name from the list",
    "choices": "numbers or names from the list, with commas",
}
_FORMATS: Final[Mapping[str, str]] = {
    "email": "an e-mail address",
    "uri": "a URI",
    "date": "a date: 2026-07-28",
    "date-time": "a date and time: 2026-07-28T12:00:00Z",
}


def show_heading(server: str, asks: str, message: str, calls: Iterable[RelatedCall]) -> None:
    """Shows the server that asks, the call during which it asks, and its message in quotes."""
    mark, who = click.style("?", fg="yellow", bold=True), click.style(one_line(server, 80), bold=True)
    click.echo(f"\n{mark} {who} {asks}", err=True)
    names = [one_line(call.name, 80) for call in calls]
    if names:
        during = f"during {names[0]}" if len(names) == 1 else f"during one of {', '.join(names)}"
        click.secho(f"  {indented(during, 2)}", dim=True, err=True)
    if message:
        click.echo(f"  message: {indented(quoted(one_line(message, 500)), 11)}", err=True)


# Forms.


async def fill_in(question: FormElicitation) -> FormAnswer:
    """Asks for each field, shows the values, and asks whether to send them."""
    show_heading(question.server, "asks for information", question.message, question.calls)
    fields, entered = question.fields, dict[str, Any]()
    if fields:
        hint = "An empty line takes the value in brackets, or leaves the field out. Ctrl-D stops."
        click.secho(f"  {indented(hint, 2)}", dim=True, err=True)
    while True:
        for field in fields:
            if not await _enter(field, entered):
                return FormAnswer("cancel")
        if fields:
            click.echo("  This will be sent:", err=True)
        labels = [one_line(field.label, 60) for field in fields]
        room = max((cells(label) for label in labels), default=0)
        for field, label in zip(fields, labels, strict=True):
            value = _sent(field, entered[field.name]) if field.name in entered else "(left out)"
            name = click.style(padded(label, room), fg="cyan")
            click.echo(f"    {name}  {indented(value, room + 6)}", err=True)
        meanings = {"y": "send this", "n": "no, decline", CANCEL_KEY: "leave without an answer"}
        if fields:
            meanings = {"y": "send this", "e": "enter it again", **meanings}
        show_keys(meanings)
        match await ask_key(meanings, CANCEL_KEY):
            case "y":
                return FormAnswer("accept", entered)
            case "n":
                return FormAnswer("decline")
            case "c":
                return FormAnswer("cancel")
            case _:
                continue


async def _enter(field: FormField, entered: dict[str, Any]) -> bool:
    """Reads one field into `entered`. Returns false if the person cancels the form."""
    _show_field(field)
    default = entered.get(field.name, field.default)
    brackets = "" if default is UNSET else f" [{_titles(field, default)}]"
    while True:
        click.echo(f"    {_prompt(field, brackets)} ", nl=False, err=True)
        text = await read_answer()
        if text is None:
            click.echo(err=True)
            return False
        try:
            if text or (default is UNSET and field.is_required and field.kind == "text"):
                entered[field.name] = value_of(field, text)
            elif default is not UNSET:
                entered[field.name] = default
            elif field.is_required:
                raise ValueError("is required")
            return True
        except ValueError as problem:
            words = f"{one_line(field.label, 60)} {one_line(str(problem), 200)}"
            click.secho(f"    ! {indented(words, 6)}", fg="red", err=True)


def _show_field(field: FormField) -> None:
    if field.description:
        click.secho(f"    {indented(quoted(one_line(field.description, 300)), 4)}", dim=True, err=True)
    if field.is_secret:
        warning = "This field asks for a secret. The server sees what you enter."
        click.secho(f"    ! {indented(warning, 6)}", fg="red", err=True)
    for number, choice in enumerate(field.choices, 1):
        click.echo(f"      {number:>2}  {indented(one_line(choice.title, 100), 10)}", err=True)


def _prompt(field: FormField, brackets: str) -> str:
    """The label, the expected kind of value, and the default, in lines that fit."""
    kind = _FORMATS.get(field.format or "", _KINDS.get(field.kind, ""))
    about = ", ".join(filter(None, (kind, "required" if field.is_required else "")))
    label = one_line(field.label, 60)
    text = indented(f"{label}{f' ({about})' if about else ''}{brackets}:", 4)
    return click.style(label, fg="cyan") + text.removeprefix(label) if text.startswith(label) else text


def _titles(field: FormField, value: Any) -> str:
    """The default value; choices are shown by their titles."""
    titles = {choice.value: one_line(choice.title, 100) for choice in field.choices}
    if not titles:
        return _written(value)
    values: Any = (value,) if isinstance(value, str) else value
    return cut(", ".join(titles.get(each, str(each)) for each in values))


def _sent(field: FormField, value: Any) -> str:
    """The value as it is sent, followed by the titles of choices, if they differ from it."""
    written, titles = _written(value), _titles(field, value)
    return written if written == titles else f"{written} ({titles})"


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return cut(visible(value))
    if isinstance(value, list | tuple):
        return cut(visible(", ".join(map(str, cast("tuple[Any, ...]", value)))))
    return json.dumps(value)


# URLs.


async def ask_to_open(question: UrlElicitation) -> Action:
    """Shows the URL and its host, and opens it in a browser if the person agrees."""
    show_heading(question.server, "asks you to open a web page first:", question.message, question.calls)
    click.echo(f"  {_with_host_bold(visible(question.url))}", err=True)
    click.echo(f"  host: {click.style(one_line(question.host, 300), bold=True)}", err=True)
    for warning in question.warnings:
        click.secho(f"  ! {indented(one_line(warning, 400), 4)}", fg="red", err=True)
    note = "Dragoman has not opened or fetched it. Open it only if you trust the server."
    click.secho(f"  {note}", dim=True, err=True)
    opens = "yes, open it in the browser" if opener() else "yes, I open it myself"
    meanings = {"y": opens, "n": "no", CANCEL_KEY: "leave without an answer"}
    show_keys(meanings)
    key = await ask_key(meanings, CANCEL_KEY)
    if key != "y":
        return "decline" if key == "n" else "cancel"
    if opener() and not open_page(question.url):
        click.echo("  The browser could not be started: open the page yourself.", err=True)
    return "accept"


async def ask_if_done(question: UrlElicitation) -> bool:
    click.echo(f"  Waiting until you are done with the page at {one_line(question.host, 300)}.", err=True)
    meanings = {"d": "done, continue", CANCEL_KEY: "give up"}
    show_keys(meanings)
    return await ask_key(meanings, CANCEL_KEY) == "d"


def _with_host_bold(url: str) -> str:
    scheme, _, rest = url.partition("://")
    end = next((place for place, sign in enumerate(rest) if sign in "/?#"), len(rest))
    user, at, host = rest[:end].rpartition("@")
    return f"{scheme}://{user}{at}{click.style(host, bold=True)}{rest[end:]}"


# Sampling.


async def review(sampling: SamplingReview) -> SamplingReview | None:
    """Shows a request to the model, or its answer. The person sends it, changes its text, or refuses."""
    request, answer = sampling.request, sampling.answer
    asks = "asks your model for an answer" if answer is None else "is about to be sent this answer"
    show_heading(request.server, asks, "", request.calls)
    full = False
    while True:
        _show_sampling(sampling, full=full)
        to = "send it to the model" if answer is None else "send it to the server"
        meanings = {"y": to, "e": "replace its text", "v": "show all of it", "n": "no"}
        show_keys(meanings)
        match await ask_key(meanings):
            case "y":
                return sampling
            case "e":
                sampling = await _edited(sampling)
            case "v":
                full = True
            case _:
                return None


def _show_sampling(sampling: SamplingReview, *, full: bool) -> None:
    request, answer = sampling.request, sampling.answer
    rows = [("model", answer.model), ("answer", blocks_text(answer.content))] if answer else []
    if answer is None:
        rows = [("system", request.system_prompt)]
        rows += [(message.role, blocks_text(message.content)) for message in request.messages]
        rows += request.further_texts
        rows += [("limit", f"{request.max_tokens} tokens")]
    for name, text in rows:
        if text:
            shown = visible(text) if full else cut(visible(text))
            click.echo(f"    {click.style(f'{name:<9}', fg='cyan')}  {indented(quoted(shown), 15)}", err=True)


async def _edited(sampling: SamplingReview) -> SamplingReview:
    """Reads a new text for the last message of the request, or for the answer."""
    click.echo("    new text: ", nl=False, err=True)
    text = await read_answer()
    if not text:
        return sampling
    return sampling.with_text(text)
