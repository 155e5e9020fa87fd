"""Converts variables as each host writes them. Pure.

Converts `${env:X}`, `$X`, `${input:id}` and similar forms to `${X}` and `${X:-default}`, and back. No
variable is read or expanded. A form without a counterpart stays unchanged and is noted; so is a text that the
other host would read differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from re import Match, Pattern
from typing import Final

from msgspec import Struct

from dragoman.config.interchange.shared import Noting, ignore_note

OURS: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
"""A variable in Dragoman's form: name and optional default."""

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

WORKSPACE: Final = "${WORKSPACE_FOLDER:-.}"
"""The folder that is open in an editor. The default is the folder that the server is started in: that of the
project for scope `project` and `local`, a folder of its own for scope `user`."""


class VariableSyntax(Struct, frozen=True, kw_only=True):
    """How one host writes variables."""

    host: str
    placeholder: Pattern[str] | None
    """Everything the host replaces: group `env` is a variable's name, group `word` anything else."""
    spelling: str | None
    """A variable of the environment, with `{}` for its name. None: the host replaces nothing."""
    defaults: bool = False
    words: Mapping[str, str] = {}
    """Special words of the host → their replacement."""
    inputs: Mapping[str, str] = {}
    """The host's inputs, by id → the default."""


_BRACES = re.compile(r"\$\{(?:env:(?P<env>[^}]*)|(?P<word>[^}]*))\}")
_SHELL = re.compile(r"\$(?:(?P<env>\w+)|\{(?P<word>[^}]+)\})")
_BARE = re.compile(r"\$(?P<env>\w+)(?P<word>(?!))?")
"""The part of `_SHELL` that needs no brace."""
_EDITOR_WORDS = {
    "userHome": "${HOME}",
    "workspaceFolder": WORKSPACE,
    "workspaceFolderBasename": "${WORKSPACE_FOLDER_BASENAME}",
    "pathSeparator": "/",
    "/": "/",
}


def dollar_braces(host: str) -> VariableSyntax:
    """`${X}` and `${X:-default}`: Claude Code."""
    return VariableSyntax(host=host, placeholder=OURS, spelling="${{{}}}", defaults=True)


def editor_variables(host: str) -> VariableSyntax:
    """`${env:X}`, and words such as `${workspaceFolder}`: VS Code and Cursor."""
    return VariableSyntax(host=host, placeholder=_BRACES, spelling="${{env:{}}}", words=_EDITOR_WORDS)


def plain_editor_variables(host: str) -> VariableSyntax:
    """`${env:X}` alone: Windsurf."""
    return VariableSyntax(host=host, placeholder=_BRACES, spelling="${{env:{}}}")


def shell_variables(host: str) -> VariableSyntax:
    """`$X` and `${X}`: Gemini CLI. A variable that is not set stays as text there."""
    return VariableSyntax(host=host, placeholder=_SHELL, spelling="${{{}}}")


def no_variables(host: str) -> VariableSyntax:
    """Text is text: Claude Desktop and Codex."""
    return VariableSyntax(host=host, placeholder=None, spelling=None)


def has_variable(text: str) -> bool:
    return OURS.search(_closed(text)) is not None


def _closed(text: str) -> str:
    """The text up to its last brace. What follows holds no `${…}`, and looking for one there from every
    `${` to the end would take quadratic time."""
    return text[: text.rfind("}") + 1]


def _substitute(pattern: Pattern[str], write: Callable[[Match[str]], str], text: str) -> str:
    closed = _closed(text)
    rest = text[len(closed) :]
    return pattern.sub(write, closed) + (_BARE.sub(write, rest) if pattern is _SHELL else rest)


def whole_variable(text: str) -> tuple[str, str | None] | None:
    """Name and default, if the text is exactly one variable."""
    found = OURS.fullmatch(text)
    return None if found is None else (found.group(1), found.group(2))


# ---- import


def incoming(syntax: VariableSyntax, text: str, note: Noting, field: str) -> str:
    """The host's text with variables in Dragoman's form."""
    if syntax.placeholder is OURS:
        return text
    if syntax.placeholder is None:
        if has_variable(text):
            note(field, f"{syntax.host} passes ${{…}} on as text; here it is a variable")
        return text
    return _substitute(syntax.placeholder, _reader(syntax, note, field), text)


def _reader(syntax: VariableSyntax, note: Noting, field: str) -> Callable[[Match[str]], str]:
    def read(found: Match[str]) -> str:
        named, word = found.group("env"), found.group("word")
        if word is not None:
            return _word(syntax, word, found.group(), note, field)
        if OURS.fullmatch("${" + named + "}") is None:
            return _left(syntax, found.group(), note, field)
        if found.group()[1] != "{" and found.start() and found.string[found.start() - 1].isalnum():
            # Its name is not shown: it may be the end of a password that contains a $.
            note(field, f"a $ inside the text is read as a variable, as {syntax.host} does")
        return "${" + named + "}"

    return read


def _word(syntax: VariableSyntax, word: str, written: str, note: Noting, field: str) -> str:
    """Any text in `${…}` without `env:`."""
    if word in syntax.words:
        meant = syntax.words[word]
        note(field, f"{written} became {meant}")
        return meant
    if word.startswith("input:"):
        return _input(syntax, word.removeprefix("input:"), written, note, field)
    if syntax.placeholder is _SHELL and whole_variable(written):
        return written
    if ours := whole_variable(written):  # its default may be secret, so only the name is shown
        note(field, f"${{{ours[0]}}} has no meaning in {syntax.host}; here it is a variable")
        return written
    return _left(syntax, written, note, field)


def _input(syntax: VariableSyntax, identifier: str, written: str, note: Noting, field: str) -> str:
    name, default = input_variable(identifier), syntax.inputs.get(identifier)
    text = f"what is asked for as {written} is here the environment variable {name}"
    if default is None or "}" in default or "${" in default:
        note(field, f"{text}: set it")
        return "${" + name + "}"
    note(field, f"{text}, with the same default")
    return "${" + name + ":-" + default + "}"


def _left(syntax: VariableSyntax, written: str, note: Noting, field: str) -> str:
    if syntax.placeholder is not _SHELL:
        note(field, f"a variable of {syntax.host} has no equivalent here and is kept as text")
    elif not written[1:].isalnum():
        note(field, "a variable with an unusual name is kept as text")
    return written


def input_variable(identifier: str) -> str:
    """The environment variable in place of an input that VS Code would ask for."""
    return "INPUT_" + re.sub(r"[^A-Z0-9]+", "_", identifier.upper()).strip("_")


# ---- export


def outgoing(syntax: VariableSyntax, text: str, note: Noting, field: str) -> str | None:
    """The text with variables in the host's form; None if it contains one and the host has no variables."""
    spelling = syntax.spelling
    if spelling is None:
        return None if has_variable(text) else text
    if syntax.placeholder is OURS:
        return text
    written = _substitute(OURS, lambda found: _spelled(syntax, spelling, found), text)
    found = OURS.finditer(_closed(text))
    for name in sorted({each.group(1) for each in found if _loses_default(syntax, each)}):
        note(field, f"{syntax.host} knows no defaults: set the variable {name} there")
    if incoming(syntax, written, ignore_note, field) != _without_defaults(syntax, text):
        note(field, f"{syntax.host} reads part of the text as a variable of its own")
    return written


def _spelled(syntax: VariableSyntax, spelling: str, found: Match[str]) -> str:
    if found.group() == WORKSPACE and "workspaceFolder" in syntax.words:
        return "${workspaceFolder}"
    return spelling.format(found.group(1))


def _loses_default(syntax: VariableSyntax, found: Match[str]) -> bool:
    kept = found.group() == WORKSPACE and "workspaceFolder" in syntax.words
    return found.group(2) is not None and not kept


def _without_defaults(syntax: VariableSyntax, text: str) -> str:
    def plain(found: Match[str]) -> str:
        return "${" + found.group(1) + "}" if _loses_default(syntax, found) else found.group()

    return _substitute(OURS, plain, text)
