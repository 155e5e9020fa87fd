"""Prompts as commands: what a person types.

Parses a command line, and decides which argument of the prompt each word is for.

The grammar: `/mcp__server__prompt word "two words" name=value`. Words fill the prompt's arguments in its own
order, skipping those given by name; the last argument takes all remaining words, with one space between them.
`name=` is recognised only if the prompt has such an argument. Quotes, single or double, are recognised only
where a word or a value begins, so that `don't` is a word; in double ones `\\"` and `\\\\` mean the character
itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from dragoman.catalog.naming import near
from dragoman.catalog.prompts import Prompt
from dragoman.cleaning import one_line
from dragoman.errors import CallError, InvalidArguments
from dragoman.names import QualifiedName


class PromptCommand(NamedTuple):
    prompt: Prompt
    arguments: Mapping[str, str]


class _Word(NamedTuple):
    text: str
    name: str | None = None
    """The name of the argument, if the person gives it."""


def split_command(line: str) -> tuple[str, str]:
    """The name of the prompt, and the text after it."""
    name, *rest = line.strip().removeprefix("/").split(maxsplit=1) or [""]
    return name, "".join(rest)


def find(name: str, prompts: Iterable[Prompt]) -> Prompt:
    known = {prompt.name: prompt for prompt in prompts}
    if name in known:
        return known[QualifiedName(name)]
    meant = near(name, known)
    hint = f"Did you mean {', '.join(meant)}?" if meant else "List the prompts to see what there is."
    raise CallError(None, f"there is no prompt named {one_line(name, 200)}", hint=hint)


def read_arguments(prompt: Prompt, text: str) -> dict[str, str]:
    """The arguments that a person typed after a prompt's name."""
    return _filled_in(prompt, _words(prompt, text))


def arguments_of(prompt: Prompt, words: Iterable[str]) -> dict[str, str]:
    """Like `read_arguments`, for words that a shell has already split."""
    free, found = _names(prompt), list[_Word]()
    for word in words:
        name = _take_name(word, 0, free)
        found.append(_Word(word) if name is None else _Word(word[len(name) + 1 :], name))
    return _filled_in(prompt, found)


def _names(prompt: Prompt) -> list[str]:
    return [argument.name for argument in prompt.arguments]


def _filled_in(prompt: Prompt, words: Sequence[_Word]) -> dict[str, str]:
    names = _names(prompt)
    given = {word.name: word.text for word in words if word.name is not None}
    free = [name for name in names if name not in given]
    plain = [word.text for word in words if word.name is None]
    if plain and not free:
        what = "takes no arguments" if not names else "has no argument left for"
        problem = f"it {what} {one_line(plain[0], 80)!r}" if names else f"it {what}"
        raise InvalidArguments(prompt.server, prompt.name, (problem, f"usage: {prompt.usage}"))
    if len(plain) > len(free):
        plain = [*plain[: len(free) - 1], " ".join(plain[len(free) - 1 :])]
    arguments = {**dict(zip(free, plain)), **given}
    prompt.check(arguments)
    return {name: arguments[name] for name in names if name in arguments}


def _words(prompt: Prompt, text: str) -> list[_Word]:
    words: list[_Word] = []
    free = _names(prompt)
    place = 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        name = _take_name(text, place, free)
        if name is not None:
            place += len(name) + 1
        word, place = _value_at(prompt, text, place)
        words.append(_Word(word, name))
    return words


def _take_name(text: str, place: int, free: list[str]) -> str | None:
    """The argument name in `name=value` at this place; marks the name as used."""
    name = max((name for name in free if text.startswith(f"{name}=", place)), key=len, default=None)
    if name is not None:
        free.remove(name)
    return name


def _value_at(prompt: Prompt, text: str, place: int) -> tuple[str, int]:
    """The word or value that begins here, and where it ends."""
    letters: list[str] = []
    if place < len(text) and text[place] in "\"'":
        quote, start = text[place], place
        place += 1
        while place < len(text) and text[place] != quote:
            if quote == '"' and text[place] == "\\" and text[place + 1 : place + 2] in ('"', "\\"):
                place += 1
            letters.append(text[place])
            place += 1
        if place == len(text):
            raise InvalidArguments(
                prompt.server,
                prompt.name,
                (f"the quote that begins with {text[start : start + 20]} has no end",),
            )
        place += 1
    end = place
    while end < len(text) and not text[end].isspace():
        end += 1
    return "".join(letters) + text[place:end], end
